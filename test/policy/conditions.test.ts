import { ready } from 'osl-compiler';
import t from 'tap';
import { accessUntil, effectiveAccess } from '../../policy/access.js';
import { ALL_APPROVED, type Approval, Approvals, type ApprovedGrants } from '../../policy/approvals.js';
import { compileSnapshot } from '../../policy/compile-snapshot.js';
import { type Circumstances, NO_CIRCUMSTANCES } from '../../policy/conditions.js';
import type { GrantDocument } from '../../policy/document.js';
import { PolicyProblems } from '../../policy/problems.js';
import { sessionRights } from '../../policy/session-rights.js';
import { CATALOG, policy } from './fixtures.js';
import { identity } from './tokens.js';

await ready();

type Terms = Partial<GrantDocument>;

const snapshotOf = (terms: Terms) =>
  compileSnapshot(
    policy({
      subjects: { ada: { ceiling: ['r'], purposes: ['care'] }, bot: { ceiling: ['r'] } },
      purposes: { care: {} },
      roles: {
        r: {
          grants: [
            { on: 'order', columns: ['id'] },
            { on: 'customer', columns: '*', ...terms },
          ],
        },
      },
    }),
    CATALOG,
  );
const ADA = identity({ chain: ['ada'], aclRoles: ['r'], claims: new Map([['amr', ['mfa']]]) });
const HERE: Circumstances = {
  ...NO_CIRCUMSTANCES,
  now: Date.parse('2026-03-27T11:30:00Z'),
  surface: 'rest',
  address: '10.0.0.7',
};

function counts(terms: Terms, over: Partial<Circumstances> = {}, who = ADA): boolean {
  const access = effectiveAccess(who, snapshotOf(terms), CATALOG, { ...HERE, ...over });
  t.ok(access.relations.has('order'), 'what has no condition always counts');
  return access.relations.has('customer');
}

const at = (text: string) => ({ now: Date.parse(text) });

t.test('a start is the first moment, an end is the first one without', async (t) => {
  const terms = { starts: '2026-03-27T12:00:00+01:00', ends: '2026-03-27T13:00:00Z' };
  t.notOk(counts(terms, at('2026-03-27T10:59:59.999Z')));
  t.ok(counts(terms, at('2026-03-27T11:00:00Z')));
  t.ok(counts(terms, at('2026-03-27T12:59:59.999Z')));
  t.notOk(counts(terms, at('2026-03-27T13:00:00Z')));
});

t.test('a clock on the wall has its days, its midnight and its summer', async (t) => {
  const when = (from: string, to: string, days: NonNullable<Terms['when']>['days'] = ['fri']) => ({
    when: { hours: { from, to }, zone: 'Europe/Berlin', ...(days === undefined ? {} : { days }) },
  });
  t.ok(counts(when('08:00', '18:00'), at('2026-03-27T07:00:00Z')), 'winter: UTC+1');
  t.notOk(counts(when('08:00', '18:00'), at('2026-03-27T06:59:00Z')));
  t.notOk(counts(when('08:00', '18:00'), at('2026-03-27T17:00:00Z')));
  t.ok(counts(when('08:00', '18:00', ['mon']), at('2026-03-30T06:00:00Z')), 'summer: UTC+2');
  t.notOk(counts(when('08:00', '18:00', ['sun']), at('2026-03-30T06:00:00Z')));
  t.ok(counts(when('22:00', '06:00'), at('2026-03-27T21:00:00Z')), 'the night that begins on a Friday');
  t.ok(counts(when('22:00', '06:00'), at('2026-03-28T04:59:00Z')), 'ends on Saturday');
  t.notOk(counts(when('22:00', '06:00'), at('2026-03-27T04:00:00Z')), 'that of Thursday does not count');
  t.ok(counts(when('00:00', '24:00'), at('2026-03-27T22:59:00Z')));
  t.ok(counts({ when: { days: ['fri'], zone: 'Asia/Kathmandu' } }, at('2026-03-26T18:15:00Z')), 'UTC+5:45');
  t.notOk(counts({ when: { days: ['fri'], zone: 'Asia/Kathmandu' } }, at('2026-03-26T18:14:00Z')));
});

t.test('surface, network, claims and purpose', async (t) => {
  t.ok(counts({ when: { surfaces: ['rest', 'mcp'] } }));
  t.notOk(counts({ when: { surfaces: ['wire'] } }));
  const near = { when: { networks: ['10.0.0.0/24', 'fd00::/8'] } };
  for (const address of ['10.0.0.7', '::ffff:10.0.0.7', 'fd00::1', 'fd12::1%eth0'])
    t.ok(counts(near, { address }), address);
  for (const address of ['10.0.1.7', '::ffff:10.0.1.7', 'fe80::1', '', 'x', '10.0.0.7, 1.1.1.1', null])
    t.notOk(counts(near, { address }), String(address));
  t.ok(counts({ when: { claims: { amr: ['mfa', 'hwk'] } } }));
  t.notOk(counts({ when: { claims: { amr: 'mfa', acr: 'high' } } }), 'each of them');
  t.notOk(counts({ when: { claims: { amr: 'MFA' } } }));
  t.notOk(counts({ when: { claims: { amr: 'mfa' } } }, {}, identity({ chain: ['ada'], aclRoles: ['r'] })));
  t.ok(counts({ for: ['care'] }, { purpose: 'care' }));
  t.notOk(counts({ for: ['care'] }));
  t.notOk(
    counts({ for: ['care'] }, { purpose: 'care' }, identity({ chain: ['ada', 'bot'], aclRoles: ['r'] })),
  );
  const claimed = (...purpose: string[]) =>
    identity({ chain: ['ada'], aclRoles: ['r'], claims: new Map([['purpose', purpose]]) });
  t.ok(counts({ for: ['care'] }, {}, claimed('care')), 'a token of one purpose says it by itself');
  t.notOk(counts({ for: ['care'] }, {}, claimed('care', 'study')));
  t.notOk(counts({ for: ['care'] }, { purpose: 'care' }, claimed('study')));
});

t.test('a broken glass counts for its minutes, and for nobody who acts for another', async (t) => {
  const terms = { break_glass: { minutes: 30, per_day: 1 } };
  const emergency = { id: 'e', startedAt: HERE.now - 29 * 60_000 };
  t.notOk(counts(terms));
  t.ok(counts(terms, { emergency }));
  t.notOk(counts(terms, { emergency: { id: 'e', startedAt: HERE.now - 30 * 60_000 } }));
  t.notOk(counts(terms, { emergency: { id: 'e', startedAt: HERE.now + 1 } }));
  t.notOk(counts(terms, { emergency }, identity({ chain: ['ada', 'bot'], aclRoles: ['r'] })));
});

t.test('an approval counts for its time, and for exactly the grant that was approved', async (t) => {
  const terms = { approval: { by: 'r', minutes: 30 } };
  const hashOf = (over: Terms): string => {
    const [first] = [...(snapshotOf(over).roles.get('r')?.conditions.values() ?? [])];
    return first?.approval?.grant ?? '';
  };
  const approvals = new Approvals();
  const approve = (over: Partial<Approval> = {}): ApprovedGrants => {
    const { chain } = ADA;
    const whole = { id: 'a', chain, grants: [hashOf(terms)], task: null, purpose: null };
    approvals.replace([{ ...whole, startsAt: HERE.now, endsAt: HERE.now + 60_000, ...over }]);
    return approvals.inForce(ADA, 'care', 'july', HERE.now);
  };
  const { now } = HERE;
  t.notOk(counts(terms));
  t.ok(counts(terms, { approved: approve() }));
  t.notOk(counts(terms, { approved: approve(), now: now - 1 }), 'not before');
  t.notOk(counts(terms, { approved: approve(), now: now + 60_000 }), 'not after');
  t.notOk(counts(terms, { approved: approve({ chain: ['ada', 'bot'] }) }), 'another chain');
  t.notOk(counts(terms, { approved: approve({ purpose: 'study' }) }), 'another purpose');
  t.notOk(counts(terms, { approved: approve({ task: 'june' }) }), 'another task');
  t.ok(counts(terms, { approved: approve({ purpose: 'care', task: 'july' }) }));
  t.notOk(counts(terms, { approved: approve({ grants: [hashOf({ approval: { by: 'r', minutes: 31 } })] }) }));
  t.notOk(counts({ ...terms, for: ['care'] }, { approved: ALL_APPROVED }), 'the other conditions remain');
  const until = accessUntil(ADA, snapshotOf(terms), HERE);
  t.ok(until > now && until <= now + 1_000, 'it is looked at again soon');
});

t.test('what is no request meets no condition, whatever it is', async (t) => {
  const all: readonly Terms[] = [
    { starts: '2020-01-01T00:00:00Z' },
    { ends: '2999-01-01T00:00:00Z' },
    { when: { networks: ['0.0.0.0/0', '::/0'] } },
    { when: { surfaces: ['rest', 'wire', 'mcp'] } },
    { when: { days: ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'], zone: 'UTC' } },
    { when: { claims: { amr: 'mfa' } } },
    { for: ['care'] },
    { break_glass: { minutes: 1, per_day: 1 } },
    { approval: { by: 'r', minutes: 1 } },
  ];
  for (const terms of all) {
    const access = effectiveAccess(ADA, snapshotOf(terms), CATALOG);
    t.notOk(access.relations.has('customer'), JSON.stringify(terms));
  }
});

t.test('rights are kept no longer than they hold, and have a signature of their own', async (t) => {
  const end = Date.parse('2026-03-27T11:30:20.500Z');
  const until = (terms: Terms, over: Partial<Circumstances> = {}) =>
    accessUntil(ADA, snapshotOf(terms), { ...HERE, ...over });
  t.equal(until({}), Number.POSITIVE_INFINITY);
  t.equal(until({ ends: '2026-03-27T11:30:20.5Z' }), end);
  t.equal(until({ starts: '2026-03-27T11:30:20.5Z' }), end);
  t.equal(until({ ends: '2026-03-27T11:30:00Z' }), Number.POSITIVE_INFINITY, 'what is over stays over');
  t.equal(until({ when: { days: ['fri'], zone: 'UTC' } }), HERE.now + 60_000, 'the next minute');
  t.equal(until({ when: { networks: ['10.0.0.0/8'] } }), Number.POSITIVE_INFINITY);
  const emergency = { id: 'e', startedAt: HERE.now - 1_000 };
  t.equal(until({ break_glass: { minutes: 1, per_day: 1 } }, { emergency }), HERE.now + 59_000);

  const snapshot = snapshotOf({ ends: '2026-03-27T11:30:20.5Z' });
  const before = effectiveAccess(ADA, snapshot, CATALOG, HERE);
  const after = effectiveAccess(ADA, snapshot, CATALOG, { ...HERE, now: end });
  t.not(before.signature, after.signature);
  t.equal(effectiveAccess(ADA, snapshot, CATALOG, HERE), before, 'the same moment, the same object');
  t.strictSame(sessionRights(ADA, snapshot, after.metConditions, null).roles, ['r']);
  const [, conditional = ''] = sessionRights(ADA, snapshot, before.metConditions, null).roles;
  t.match(conditional, /^r\?[0-9a-f]{16}$/, 'row security is told of what holds');
});

t.test('a condition with a fault refuses the policy', async (t) => {
  const faults: readonly (readonly [Terms, string])[] = [
    [{ starts: '2026-01-01' }, 'starts'],
    [{ starts: '2026-01-01T00:00:00' }, 'starts'],
    [{ starts: '2026-02-30T00:00:00Z' }, 'starts'],
    [{ ends: '2026-01-01T25:00:00Z' }, 'ends'],
    [{ starts: '2026-01-02T00:00:00Z', ends: '2026-01-01T00:00:00Z' }, 'ends'],
    [{ when: {} }, 'when'],
    [{ when: { zone: 'UTC' } }, 'when.zone'],
    [{ when: { days: ['mon'] } }, 'when'],
    [{ when: { days: ['mon'], zone: 'Europe/Atlantis' } }, 'when.zone'],
    [{ when: { days: ['mon'], zone: '+02:00' } }, 'when.zone'],
    [{ when: { days: [], zone: 'UTC' } }, 'when.days'],
    [{ when: { hours: { from: '8:00', to: '18:00' }, zone: 'UTC' } }, 'when.hours'],
    [{ when: { hours: { from: '24:00', to: '18:00' }, zone: 'UTC' } }, 'when.hours'],
    [{ when: { hours: { from: '08:00', to: '25:00' }, zone: 'UTC' } }, 'when.hours'],
    [{ when: { hours: { from: '08:00', to: '08:00' }, zone: 'UTC' } }, 'when.hours'],
    [{ when: { networks: ['10.0.0.0/33'] } }, 'when.networks'],
    [{ when: { networks: ['example.com'] } }, 'when.networks'],
    [{ for: ['love'] }, 'for'],
    [{ for: [] }, 'for'],
    [{ approval: { by: 'nobody', minutes: 5 } }, 'approval.by'],
  ];
  for (const [terms, path] of faults) {
    try {
      snapshotOf(terms);
      t.fail(JSON.stringify(terms));
    } catch (error) {
      if (!(error instanceof PolicyProblems)) throw error;
      t.match(error.problems, [{ code: 'P0117', path: ['roles', 'r', 'grants', 1, ...path.split('.')] }]);
    }
  }
});
