import t, { type Test } from 'tap';
import type { AuditEntry } from '../../policy/index.js';
import {
  type Asker,
  type Caller,
  type Cell,
  type Frontends,
  type Reply,
  SURFACES,
  type SurfaceName,
  startFrontends,
} from '../support/frontends.js';
import { AUDITOR, CLERK, leaksIn, openShop, REAL, TWIN } from './shop.js';
import { ATTACKS, type Expected, SUGGESTIONS, type Try } from './table.js';

const shop = await openShop(REAL);
const fronts = await startFrontends(shop.open);
const twin = await openShop(TWIN, shop);
const twinFronts = await startFrontends(twin.open);
t.teardown(async () => {
  for (const a of askers.values()) a.end();
  await Promise.all([fronts.stop(), twinFronts.stop()]);
  await Promise.all([shop.close(), twin.close()]);
});

/** One session for each caller and surface, as long as it lives. */
const askers = new Map<string, Asker>();

async function askerOf(of: Frontends, surface: SurfaceName, caller: Caller): Promise<Asker> {
  const key = `${of.pgPort} ${surface} ${JSON.stringify(caller)}`;
  const known = askers.get(key) ?? (await of.asker(surface, caller));
  askers.set(key, known);
  return known;
}

/** A guess in a text: both its readings. One reading where it has none. */
function readings(text: string): readonly string[] {
  const guess = /⟨([^|⟩]*)\|([^⟩]*)⟩/g;
  if (!text.includes('⟨')) return [text];
  return [text.replace(guess, '$1'), text.replace(guess, '$2')];
}

const HASH = /\b[0-9a-f]{64}\b/g;

interface Shown {
  readonly code?: string;
  readonly sqlstate?: string;
  readonly rows?: readonly (readonly Cell[])[];
}

/** What a reply decides, in the form of `Expected`. Rows without an order are sorted. */
function shown({ outcome }: Reply, text: string): Shown {
  if (outcome.kind === 'refused') return { code: outcome.code, sqlstate: outcome.sqlstate };
  return {
    rows: inOrder(
      text,
      outcome.rows.map((r) => r.map((c) => c?.replace(HASH, '<hash>') ?? null)),
    ),
  };
}

function inOrder(text: string, rows: readonly (readonly Cell[])[]): readonly (readonly Cell[])[] {
  if (/order by [^()]*$/i.test(text)) return rows;
  return [...rows].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

function expectedOf(expected: Expected, text: string, reading: number): Shown {
  if ('code' in expected) return expected;
  const read = (c: Cell): Cell => (c === null ? null : (readings(c)[reading] ?? readings(c)[0] ?? c));
  return {
    rows: inOrder(
      text,
      expected.rows.map((r) => r.map(read)),
    ),
  };
}

/** Everything that the caller can tell apart in two replies. */
function observable({ outcome, types }: Reply): unknown {
  return { outcome, types };
}

/** What the audit log was told of one request, without what no caller decides. */
function audited(entries: readonly AuditEntry[]): readonly object[] {
  return entries.map(({ kind, surface, subject, chain, decision, code, outcome, rows }) =>
    kind === 'decision'
      ? { kind, surface, subject, chain, decision: decision === 'allow' ? 'allow' : 'refuse', code }
      : { kind, surface, subject, chain, outcome, code, rows },
  );
}

/** What it must have been told. What fails while it runs was allowed before. */
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
  if (code === 'E0510') return [allowed, { kind: 'outcome', ...by, outcome: 'error', code, rows: 0 }];
  return [{ kind: 'decision', ...by, decision: 'refuse', code }];
}

const brief = (text: string): string =>
  text.length > 150 ? `${text.slice(0, 100)}… (${text.length} characters)` : text;

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

async function attempt(t: Tap, surface: SurfaceName, [text, expected, caller = CLERK]: Try, kind: string) {
  const asker = await askerOf(fronts, surface, caller);
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

/** Answers that rightly show what only some may not see: a friend's cell in the clear, a guess selected as such. */
function mayShow(expected: Expected): boolean {
  return 'rows' in expected && leaksIn(Buffer.from(JSON.stringify(expected.rows))).length > 0;
}

function echoes(expected: Expected): boolean {
  return 'rows' in expected && JSON.stringify(expected.rows).includes('⟨');
}

t.test('a shop that differs only in what is hidden answers the same', async (t) => {
  for (const surface of SURFACES) {
    for (const { n, name, tries } of ATTACKS) {
      await t.test(`${surface}: ${n}. ${name}`, async (t) => {
        for (const [text, expected, caller = CLERK] of tries) {
          if (mayShow(expected)) continue;
          for (const reading of readings(text)) {
            const [real, other] = await Promise.all(
              [fronts, twinFronts].map(async (f) => (await askerOf(f, surface, caller)).ask(reading)),
            );
            if (real === undefined || other === undefined) throw new Error('two shops give two replies');
            t.strictSame(unordered(other, reading), unordered(real, reading), brief(reading));
          }
        }
      });
    }
  }
});

/** Everything that can be told apart, but the order of rows that have none. */
function unordered(reply: Reply, text: string): unknown {
  const { outcome } = reply;
  if (outcome.kind === 'refused') return outcome;
  return { ...outcome, rows: inOrder(text, outcome.rows) };
}

t.test('46. suggestions', async (t) => {
  for (const surface of SURFACES) {
    for (const [text, verb, name, caller = CLERK] of SUGGESTIONS) {
      const { outcome } = await (await askerOf(fronts, surface, caller)).ask(text);
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

t.test('the harness finds what it looks for', async (t) => {
  const { ask } = await fronts.asker('simple wire', AUDITOR);
  const found = new Set<string>();
  for (const { tries } of ATTACKS) {
    for (const [text] of tries) {
      for (const reading of readings(text)) for (const s of leaksIn((await ask(reading)).raw)) found.add(s);
    }
  }
  t.ok(found.size > 10, `an auditor's answers hold ${found.size} of the secrets`);
  t.ok(found.has('770077007') && found.has('SECRET') && found.has('1977-07-17'));
  const real = await (await fronts.asker('REST', AUDITOR)).ask('select id, ssn from customer order by id');
  const other = await (await twinFronts.asker('REST', AUDITOR)).ask(
    'select id, ssn from customer order by id',
  );
  t.notSame(observable(other), observable(real), 'an auditor tells the two shops apart');
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

type Tap = Test;
