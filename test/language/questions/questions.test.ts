import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { ensureDemo } from '../../../cli/demo/load.js';
import { openService } from '../../../src/service/open.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { emptyDatabases } from '../../support/embedded-data.js';
import { type Caller, type Outcome, postQuery, startFrontends, WireClient } from '../../support/frontends.js';
import { countInstallation } from './installation.js';
import { QUESTIONS, type Rows, type Value } from './table.js';

// A loaded machine may take longer than tap's half minute.
t.setTimeout(600_000);

const root = join(import.meta.dirname, '..', '..', '..', '..');
const dir = mkdtempSync(join(tmpdir(), 'osl-questions-'));
/** The demo's own policy, without its limit of requests. */
const policyFile = join(dir, 'policy.yaml');
const examples = join(root, 'examples', 'supply-chain');
writeFileSync(
  policyFile,
  readFileSync(join(examples, 'policy.yaml'), 'utf8').replace('query: 60', 'query: 100000'),
);

const quiet = (): void => undefined;
await emptyDatabases(join(dir, 'data'), readFileSync(join(examples, 'manifest.yaml'), 'utf8'));
const open = await openService(
  settingsFrom({}, dir, {
    manifestFile: join(examples, 'manifest.yaml'),
    policyFile,
    dataDir: join(dir, 'data'),
  }),
  { info: quiet, warn: quiet, error: quiet },
);
const [engine] = open.databases.values();
if (engine === undefined) throw new Error('the demo has one connector');
await ensureDemo(engine.system, root);
const fronts = await startFrontends(open);
const installation = countInstallation(root);

const CALLERS = {
  auditor: { subject: 'user:auditor', aclRoles: ['auditor'] },
  analyst: { subject: 'user:analyst', aclRoles: ['analyst'] },
  counsel: { subject: 'user:counsel', aclRoles: ['copyleft'] },
} satisfies Record<string, Caller>;

const sessions = new Map<string, WireClient>();
t.teardown(async () => {
  for (const s of sessions.values()) s.end();
  await fronts.stop();
  await open.close();
  rmSync(dir, { recursive: true, force: true });
});

async function overWire(caller: Caller, sql: string, parameters: readonly Value[]): Promise<Outcome> {
  const known = sessions.get(caller.subject);
  const client = known ?? (await WireClient.login(fronts.pgPort, caller.subject, await fronts.token(caller)));
  sessions.set(caller.subject, client);
  const values = parameters.map((v) => (v === null ? null : String(v)));
  const { outcome } =
    parameters.length === 0 ? await client.simple(sql) : await client.extended(sql, { values });
  return outcome;
}

async function overRest(caller: Caller, sql: string, parameters: readonly Value[]): Promise<Outcome> {
  const headers = { authorization: `Bearer ${await fronts.token(caller)}` };
  const body = parameters.length === 0 ? { osql: sql } : { osql: sql, parameters };
  return (await postQuery(fronts.httpPort, body, headers)).outcome;
}

/** The answer as Postgres writes it, sorted unless the question asks for an order. */
function written(rows: Rows, sql: string): readonly (readonly (string | null)[])[] {
  const cells = rows.map((r) =>
    r.map((v) => (v === null ? null : typeof v === 'boolean' ? (v ? 't' : 'f') : String(v))),
  );
  if (/order by [^()]*(\([^()]*\)[^()]*)*$/i.test(sql)) return cells;
  return cells.sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

t.test('the count has something to compare', async (t) => {
  t.ok(installation.packages.length > 100);
  t.ok(installation.people.length > 50);
  t.ok(installation.dependencies.length > 100);
  t.ok(QUESTIONS.length >= 60);
});

for (const { question, sql, answer, parameters = [], as = 'auditor' } of QUESTIONS) {
  t.test(question, async (t) => {
    const expected = written(answer(installation), sql);
    for (const [surface, ask] of [
      ['wire', overWire],
      ['REST', overRest],
    ] as const) {
      const outcome = await ask(CALLERS[as], sql, parameters);
      if (outcome.kind === 'refused') t.fail(`${surface}: ${outcome.code} ${outcome.message}`);
      else t.strictSame(written(outcome.rows, sql), expected, surface);
    }
  });
}

/** The examples of docs/raw-sql.md: what each asks, and the code that it must be refused with, if any. */
function rawExamples(): readonly { readonly sql: string; readonly code: string | null }[] {
  const text = readFileSync(join(root, 'docs', 'raw-sql.md'), 'utf8');
  return [...text.matchAll(/^```sql\n(?:-- (E\d{4})\n)?(.*?)^```$/gms)].map(([, code, sql = '']) => {
    return { sql: sql.trim(), code: code ?? null };
  });
}

t.test('the examples of docs/raw-sql.md do what it says, in {sql} and on the wire', async (t) => {
  const examples = rawExamples();
  t.ok(examples.length >= 9 && examples.some((e) => e.code === null));
  const headers = { authorization: `Bearer ${await fronts.token(CALLERS.analyst)}` };
  for (const { sql, code } of examples) {
    const { outcome } = await postQuery(fronts.httpPort, { sql }, headers);
    t.equal(outcome.kind === 'refused' ? outcome.code : null, code, sql);
    if (outcome.kind === 'rows') t.ok(outcome.rows.length > 0, 'and finds something');
    const wire = await overWire(CALLERS.analyst, sql, []);
    t.equal(wire.kind === 'refused' ? wire.code : null, code);
    if (outcome.kind === 'rows' && wire.kind === 'rows') t.strictSame(wire.rows, outcome.rows);
  }
});

t.test('a wrong count would be noticed', async (t) => {
  const { packages } = installation;
  const changed = {
    ...installation,
    packages: packages.map((p, n) => (n === 0 ? { ...p, bytes: p.bytes + 1, license: 'X' } : p)),
  };
  const different = QUESTIONS.filter(
    ({ answer, sql }) =>
      JSON.stringify(written(answer(changed), sql)) !== JSON.stringify(written(answer(installation), sql)),
  );
  t.ok(different.length > 5, `${different.length} answers depend on one byte and one licence of one package`);
});
