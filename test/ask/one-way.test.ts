import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';

/**
 * Every request takes one way, `respond` in `src/ask/request/respond.ts`: it alone writes the records of a request and counts it.
 * All others that may touch the log or the limits are named here, with the reason.
 */
const WRITES_RECORDS: Readonly<Record<string, string>> = {
  'src/ask/request/recorder.ts': 'decision and outcome of every request',
  'src/ask/parsing/marks.ts': 'event of the service: a text that it died of',
  'src/ask/request/probes.ts':
    'counts of what is asked of the process itself, and of refusals without a valid token beyond the first',
  'src/service/auditing/reader.ts': 'event of the service: who has read the log, and by which filter',
  'src/service/reload/reload.ts': 'events of the service: its reloads, a policy that is missing',
  'src/service/directory-origin.ts': 'events of the service: its data came out of a backup, or is a copy',
  'src/service/lineage/description.ts': 'event of lineage: what was delivered, or given up',
};
const COUNTS: Readonly<Record<string, string>> = {
  'src/ask/request/limit.ts': 'a request against the bucket of its kind',
  'src/ask/request/refusals.ts': 'a refusal without a valid token, by its address',
  'src/ask/request/session.ts': 'a password, before it is a login, or as a wrong one',
};
/**
 * Users of the seals around the log, the limits and what runs plans (`Sealed`). Without one tsc refuses to make a Ledger, a
 * Recorder or a PermittedRequest (`test/house/closed-doors.test.ts`); outside ask it does not know how to open one.
 */
const USES_SEALS: Readonly<Record<string, string>> = {
  'src/ask/data/entity-counts.ts': 'counts the entities that an answer shows',
  'src/ask/data/runtime/step.ts': 'finds the engine of a plan; counts rows, bytes and time of an answer',
  'src/ask/request/limit.ts': 'counts a request',
  'src/ask/request/refusals.ts': 'begins the records of a request, and counts refusals',
  'src/ask/request/session.ts': 'counts passwords',
  'src/ask/routes/fast-question.ts': 'begins the records of a request under a permit',
  'src/service/open.ts': 'seals them at start',
  'src/service/service.ts': 'seals other limits, for tests of a policy',
};
/** Makers of identities: each holds proof of the claims, or asks databases that were made for a test. */
const MINTS_IDENTITIES: Readonly<Record<string, string>> = {
  'policy/exchange/exchange.ts': 'of tokens that a rule of the policy takes',
  'policy/identity.ts': 'makes them',
  'policy/reasons.ts': '`testIdentity`, for `osl policy test`',
  'policy/tokens/claims.ts': 'of claims of a token, and of who proved a password or a certificate',
};
/** Generators of SQL, which quote what they put in; all other SQL of the gateway's own is static (`Sql`). */
const GENERATES_SQL: Readonly<Record<string, string>> = {
  'src/base/sql.ts': 'makes it',
  'src/engine/pglite/modes.ts': 'settings of governed sessions, from a table of constants',
  'src/content/rollups/rollups.ts': 'query of a rollup, as the manifest was compiled',
  'src/model/row-security/script.ts': 'policies of tables, with predicates of the compiler',
  'cli/policy-tests/tables.ts': 'tables of tests, with types of the compiler’s table',
  'cli/rls/prove/scratch.ts': 'tables, functions and policies of a database, made again in an embedded one',
};
/** Openers of databases, which hold a system engine then. */
const OPENS_DATABASES = /^(?:src\/(?:engine|service)|cli)\//;

const sources: ReadonlyMap<string, string> = new Map(
  ['src', 'policy', 'audit', 'cli', 'interchange']
    .flatMap((folder) =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
    )
    .filter((file) => file.endsWith('.ts'))
    .map((file) => [file, withoutComments(readFileSync(file, 'utf8'))]),
);

function withoutComments(text: string): string {
  return text.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '');
}

function filesWith(pattern: RegExp): readonly string[] {
  return [...sources].flatMap(([file, text]) => (pattern.test(text) ? [file] : [])).toSorted();
}

t.test('records are written by those that are named, and by nobody else', async (t) => {
  t.strictSame(filesWith(/\baudit\??\.append(?:Form)?\b/), Object.keys(WRITES_RECORDS).toSorted());
  t.strictSame(
    filesWith(/\bappend\s*(?:,[^=]*|:\s*\w+[^=]*)?\}\s*=[^=]*audit/),
    [],
    'not by another name either',
  );
});

t.test('requests are counted by those that are named, and by nobody else', async (t) => {
  t.strictSame(
    filesWith(/\blimiter\??\.(?:take|takeIfLeft|takeAddress|guesses)\b/),
    Object.keys(COUNTS).toSorted(),
  );
  t.strictSame(
    filesWith(/\{[^}]*\b(?:take|takeIfLeft|takeAddress|guesses)\b[^}]*\}\s*=[^=]*limiter/),
    [],
    'not by another name either',
  );
});

t.test('seals are made and opened by those that are named, and by nobody else', async (t) => {
  t.strictSame(filesWith(/import \{ SealedValue \}|\bSealedValue[.(]/), Object.keys(USES_SEALS).toSorted());
});

t.test('identities are made by those that verify them, and by nobody else', async (t) => {
  t.strictSame(filesWith(/\bmintIdentity\b/), Object.keys(MINTS_IDENTITIES).toSorted());
  t.strictSame(filesWith(/\btestIdentity\b/), ['cli/policy-tests/observe.ts', 'policy/reasons.ts']);
});

t.test('SQL is generated by those that are named, and all other is static', async (t) => {
  t.strictSame(filesWith(/\bgeneratedSql\b/), Object.keys(GENERATES_SQL).toSorted());
  t.strictSame(filesWith(/\bsql\s*\(/), ['src/base/sql.ts'], 'the tag is never called as a function');
});

t.test('databases are opened by service start and tools alone', async (t) => {
  const openers = filesWith(/\b(?:openEngine|surveyPostgres|openPostgres|openPglite|SystemEngine\()/);
  t.strictSame(
    openers.filter((file) => !OPENS_DATABASES.test(file)),
    [],
  );
});

t.test('`osl demo` alone has the sign-in without a password', async (t) => {
  const importers = (file: string) => filesWith(new RegExp(`(?:from|import\\() ?'[^']*/${file}\\.js'`));
  t.strictSame(importers('console/demo'), ['cli/serve/demo.ts']);
  t.strictSame(
    importers('serve/demo'),
    ['cli/commands/demo.ts'],
    'the command; `serve`, its workers and `init` do not reach it',
  );
  t.strictSame(
    importers('\\.?/demo').filter((file) => file.startsWith('src/surfaces/console/')),
    [],
  );
  t.strictSame(filesWith(/demo-token/), ['src/surfaces/console/demo.ts'], 'and the route is nowhere else');
});

t.test('the patterns find what they are to find', async (t) => {
  t.match('await this.#parts.audit.append(entry)', /\baudit\??\.append\b/);
  t.notMatch(withoutComments('/** audit.append */ // audit.append'), /append/);
});
