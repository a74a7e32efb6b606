import type { GovernedPlan } from 'osl-compiler';
import { test } from 'tap';
import {
  Approvals,
  compileSnapshot,
  effectiveAccess,
  type Identity,
  NO_CIRCUMSTANCES,
  RevokedTokens,
} from '../../policy/index.js';
import { RunningQueries } from '../../src/ask/data/running-queries.js';
import type { Caller } from '../../src/ask/request/caller.js';
import { CATALOG, policy } from '../policy/fixtures.js';
import { identity } from '../policy/tokens.js';

/* Queries that run while the policy changes. Those whose rights are other ones now are stopped, and no others. */

const ISSUER = { issuer: 'https://issuer.example', subject: 'user:{sub}', ceiling: ['analyst'] };

/** The policy, in which role `restricted` denies these columns. */
function denying(...columns: readonly string[]) {
  return policy({
    subjects: { 'user:ann': { ceiling: ['analyst', 'restricted'] } },
    roles: {
      analyst: { grants: [{ on: 'order', columns: '*' }] },
      restricted: { grants: [], deny: [{ on: 'order', columns }] },
    },
    exchange: [{ name: 'staff', ...ISSUER }],
  });
}

const PLAN = { runtime: [], query: {} } as unknown as GovernedPlan; // not looked at: the manifest stays the same

/** True if a query of `caller` goes on when the second policy replaces the first. */
function goesOn(caller: Identity, before = denying('ssn'), after = denying('ssn', 'email')): boolean {
  const manifest = { catalog: CATALOG };
  const modelOf = (document: typeof before) => ({ manifest, snapshot: compileSnapshot(document, CATALOG) });
  const [model, next] = [modelOf(before), modelOf(after)];
  const running = new RunningQueries(new RevokedTokens(), new Approvals());
  const circumstances = NO_CIRCUMSTANCES;
  const asker = { identity: caller, model, ...model, circumstances } as unknown as Caller; // as much of one as is looked at
  const { signal, end } = running.begin(asker, PLAN, null, asker.model);
  running.onModelChange(next as unknown as Caller['model']);
  end();
  return !signal.aborted;
}

test('a deny rule that a token does not claim stops the query of an exchanged token, which it applies to', async (t) => {
  const [{ id: rule = '' } = {}] = compileSnapshot(denying('ssn'), CATALOG).exchange.rules;
  const members = [{ rule, roles: ['analyst'], attributes: new Map() }];
  const exchanged = identity({ chain: ['user:ann'], aclRoles: ['analyst'], members });
  t.notOk(goesOn(exchanged));
  t.ok(goesOn(exchanged, denying('ssn'), denying('ssn')), 'nothing has changed');
  t.ok(
    goesOn(identity({ chain: ['user:ann'], aclRoles: ['analyst'] })),
    'an actor token has the roles it claims',
  );
  t.notOk(goesOn(identity({ chain: ['user:ann'], aclRoles: ['analyst', 'restricted'] })));
});

test('the query of a grant that was approved stops once the approval has ended', async (t) => {
  const grant = { on: 'order', columns: ['id'], approval: { by: 'steward', minutes: 60 } };
  const document = policy({
    subjects: { 'user:ann': { ceiling: ['analyst', 'steward'] } },
    roles: { analyst: { grants: [grant] }, steward: { grants: [] } },
  });
  const snapshot = compileSnapshot(document, CATALOG);
  const [{ approval } = {}] = [...(snapshot.roles.get('analyst')?.conditions.values() ?? [])];
  const ann = identity({ chain: ['user:ann'], aclRoles: ['analyst'] });
  const approved = (id: string, grants: readonly string[], task: string | null = null) => {
    const now = Date.now();
    return { id, chain: ann.chain, grants, purpose: null, task, startsAt: now - 1_000, endsAt: now + 60_000 };
  };
  const [used, other] = [approved('used', [approval?.grant ?? '']), approved('other', ['another'])];
  const approvals = new Approvals();
  approvals.replace([used, other]);
  const running = new RunningQueries(new RevokedTokens(), approvals);
  const manifest = { catalog: CATALOG };
  const model = { manifest, snapshot };
  const circumstances = {
    ...NO_CIRCUMSTANCES,
    now: Date.now(),
    approved: approvals.inForce(ann, null, null),
  };
  const access = effectiveAccess(ann, snapshot, CATALOG, circumstances);
  t.equal(access.metConditions.length, 1);
  const caller = { identity: ann, ...model, model, access, circumstances, purpose: null, task: null };
  const asker = caller as unknown as Caller; // as much of one as is looked at
  const { signal } = running.begin(asker, PLAN, null, asker.model);
  approvals.replace([used]);
  t.notOk(signal.aborted, 'one that it did not need has ended');
  t.ok(running.mayAnswer(asker, PLAN, asker.model));
  approvals.replace([]);
  t.ok(signal.aborted);
  t.match(signal.reason, { entry: 'rightsChanged' });
  t.notOk(running.mayAnswer(asker, PLAN, asker.model));
});
