import t, { type Test } from 'tap';
import type { AuditEntry } from '../../../audit/index.js';
import {
  type Asker,
  type Caller,
  type Reply,
  SURFACES,
  type SurfaceName,
  startFrontends,
} from '../../support/frontends.js';
import { brief, echoes, expectedOf, mayShow, observable, readings, shown } from './reading.js';
import { AUDITOR, CLERK, leaksIn, openShop } from './shop.js';
import { ATTACKS, SUGGESTIONS, type Try } from './table.js';

// A loaded machine may take longer than tap's half minute.
t.setTimeout(600_000);

const shop = await openShop();
const fronts = await startFrontends(shop.open);
t.teardown(async () => {
  for (const a of askers.values()) a.end();
  await fronts.stop();
  await shop.close();
});

/** One session for each caller and surface, as long as it lives. */
const askers = new Map<string, Asker>();

async function askerOf(surface: SurfaceName, caller: Caller): Promise<Asker> {
  const key = `${surface} ${JSON.stringify(caller)}`;
  const known = askers.get(key) ?? (await fronts.asker(surface, caller));
  askers.set(key, known);
  return known;
}

/** Entries of the audit log for one request, without what no caller decides. */
function audited(entries: readonly AuditEntry[]): readonly object[] {
  return entries.map(({ kind, surface, subject, chain, decision, code, outcome, rows }) =>
    kind === 'decision'
      ? { kind, surface, subject, chain, decision: decision === 'allow' ? 'allow' : 'refuse', code }
      : { kind, surface, subject, chain, outcome, code: code ?? null, rows },
  );
}

/** Entries that it must have. A request that fails while it runs was allowed before. */
function recordsOf({ outcome }: Reply, surface: SurfaceName, caller: Caller): readonly object[] {
  const by = {
    surface: surface === 'REST' ? 'rest' : 'wire',
    subject: caller.subject,
    chain: caller.chain ?? [caller.subject],
  };
  const allowed = { kind: 'decision', ...by, decision: 'allow', code: undefined };
  if (outcome.kind === 'rows') {
    return [allowed, { kind: 'outcome', ...by, outcome: 'ok', code: null, rows: outcome.rows.length }];
  }
  const { code } = outcome;
  if (code === 'E0529') return [allowed, { kind: 'outcome', ...by, outcome: 'error', code, rows: 0 }];
  return [{ kind: 'decision', ...by, decision: 'refuse', code }];
}

for (const surface of SURFACES) {
  t.test(surface, async (t) => {
    for (const { n, name, tries, benign } of ATTACKS) {
      await t.test(`${n}. ${name}`, async (t) => {
        for (const one of tries) await attempt(t, surface, one, 'attack');
        for (const one of benign) await attempt(t, surface, one, 'benign');
      });
    }
  });
}

async function attempt(t: Test, surface: SurfaceName, [text, expected, caller = CLERK]: Try, kind: string) {
  const asker = await askerOf(surface, caller);
  const replies: Reply[] = [];
  for (const [i, reading] of readings(text).entries()) {
    fronts.takeAudit();
    const reply = await asker.ask(reading);
    const entries = fronts.takeAudit();
    replies.push(reply);
    t.strictSame(shown(reply, text), expectedOf(expected, text, i), `${kind}: ${brief(reading)}`);
    t.strictSame(audited(entries), recordsOf(reply, surface, caller), 'one decision is recorded');
    if (caller !== AUDITOR && !mayShow(expected))
      t.strictSame(leaksIn(reply.raw), [], 'no secret in any byte');
  }
  const [right, wrong] = replies;
  if (right !== undefined && wrong !== undefined && !echoes(expected))
    t.strictSame(observable(right), observable(wrong), 'a right guess looks like a wrong one');
}

t.test('46. suggestions', async (t) => {
  for (const surface of SURFACES) {
    for (const [text, verb, name, caller = CLERK] of SUGGESTIONS) {
      const { outcome } = await (await askerOf(surface, caller)).ask(text);
      if (outcome.kind === 'rows') t.fail(`${text} must be refused`);
      // The message repeats what the caller wrote; the hint is ours.
      else
        t.equal(
          outcome.hint?.includes(name) ?? false,
          verb === 'shows',
          `${surface}: ${text} ${verb} ${name}`,
        );
    }
  }
});

t.test('every record is in the log', async (t) => {
  const { records, failure } = shop.open.service.audit.stats();
  t.equal(failure, null);
  t.ok(records > 1_000);
  t.strictSame(
    shop.logged.filter((l) => l.startsWith('internal error')),
    [],
    'nothing went wrong inside',
  );
});
