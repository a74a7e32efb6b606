import { ready } from 'osl-compiler';
import type { Client } from 'pg';
import t, { test } from 'tap';
import type { SecurityCatalog } from '../../../cli/rls/catalog/catalog.js';
import { readCatalog } from '../../../cli/rls/catalog/read.js';
import type { RlsFinding } from '../../../cli/rls/finding.js';
import { RULES } from '../../../cli/rls/rules/index.js';
import { checkCatalog } from '../../../cli/rls/run.js';
import { Sql } from '../../../src/base/sql.js';
import { codeOf } from '../../../src/base/thrown.js';
import { clientOf, NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { CASES } from './cases.js';
import { BASE, type Shown } from './support.js';

t.setTimeout(240_000);
await ready();
const postgres = await startNativePostgres();

test('each rule', { skip: postgres === null && NO_NATIVE }, async (t) => {
  if (postgres === null) return;
  const client = await clientOf(t, postgres);
  for (const {
    code,
    faulty,
    finds,
    sound,
    soundFinds = [],
    shown = [],
    soundShown = [],
    readAs = null,
  } of CASES) {
    await inTransaction(client, faulty, async () => {
      if (readAs !== null) await client.query(`set local role ${readAs}`);
      t.strictSame(await findingsAt(client), finds, `${code}: ${faulty.slice(0, 200)}`);
      if (readAs === null)
        t.strictSame(await unmendedAt(client), [], `${code}: the SQL of each finding mends it`);
      await expectOutcomes(t, client, code, shown);
    });
    await inTransaction(client, sound, async () => {
      t.strictSame(await findingsAt(client), soundFinds, `${code}: none for ${sound.slice(0, 200)}`);
      await expectOutcomes(t, client, `${code}, sound`, soundShown);
    });
    t.notOk(
      soundFinds.some((found) => found.startsWith(code)),
      `${code} is not found in the sound variant`,
    );
  }
  const other = `create schema other authorization rls_owner; grant usage on schema other to rls_app;
    create table other.note (doc uuid constraint note_doc references app.doc); grant insert on other.note to rls_app`;
  await inTransaction(client, other, async () => {
    const scope = { schemas: new Set(['other']), roles: new Set(['rls_app']) };
    const found = checkCatalog(await catalogAt(client), scope).map(nameOf);
    t.strictSame(
      found,
      ['RLS028 note_doc on other.note'],
      'the protected table is in a schema that is not checked',
    );
  });
});

/** Roles are of the whole server: a case leaves none behind, and other tests see none. */
async function inTransaction(client: Client, sql: string, work: () => Promise<void>): Promise<void> {
  await client.query('begin');
  try {
    await client.query(`${BASE}; ${sql}; reset role`);
    await work();
  } finally {
    await client.query('rollback');
  }
}

async function catalogAt(client: Client): Promise<SecurityCatalog> {
  await client.query('savepoint catalog');
  const catalog = await readCatalog({
    query: async (statement) => (await client.query<Record<string, unknown>>(Sql.textOf(statement))).rows,
  });
  await client.query('rollback to savepoint catalog');
  return catalog;
}

/** All findings about the roles of the case, as `code identity`. */
async function findingsAt(client: Client): Promise<readonly string[]> {
  return (await checkAt(client)).map(nameOf).sort();
}

function nameOf({ code, object }: RlsFinding): string {
  return `${code} ${object.identity}`;
}

/** Findings that remain after their SQL has run, each by itself. */
async function unmendedAt(client: Client): Promise<readonly string[]> {
  const unmended: string[] = [];
  for (const finding of await checkAt(client)) {
    if (finding.sql.length === 0) continue;
    await client.query('savepoint mended');
    // CONCURRENTLY is refused in a transaction.
    const failure = await client.query(finding.sql.join(' ').replaceAll('CONCURRENTLY', '')).then(
      () => null,
      (error: unknown) => String(error),
    );
    if (failure !== null) unmended.push(`${nameOf(finding)}: ${failure}`);
    else if ((await findingsAt(client)).includes(nameOf(finding))) unmended.push(nameOf(finding));
    await client.query('rollback to savepoint mended');
  }
  return unmended;
}

async function checkAt(client: Client): Promise<readonly RlsFinding[]> {
  const catalog = await catalogAt(client);
  const roles = new Set(
    [...catalog.roles.values()].map(({ name }) => name).filter((name) => /^rls_/.test(name)),
  );
  return checkCatalog(catalog, { schemas: null, roles });
}

async function expectOutcomes(
  t: Pick<Tap, 'equal' | 'match'>,
  client: Client,
  name: string,
  shown: readonly Shown[],
): Promise<void> {
  for (const [role, sql, outcome] of shown) {
    const found = await outcomeOf(client, role, sql);
    const about = `${name}: ${role ?? 'superuser'}: ${sql}`;
    if (outcome instanceof RegExp) t.match(found.text, outcome, about);
    else if (outcome !== undefined)
      t.equal(typeof outcome === 'number' ? found.rows : found.code, outcome, about);
    else t.equal(found.code, null, about);
  }
}
type Tap = typeof t;

interface Ran {
  readonly rows: number | null;
  /** SQLSTATE of the failure; null if it succeeds. */
  readonly code: string | null;
  readonly text: string;
}

/** Runs a statement as a role and takes its changes back; those of a superuser stay. */
async function outcomeOf(client: Client, role: string | null, sql: string): Promise<Ran> {
  await client.query('savepoint statement');
  try {
    if (role !== null) await client.query(`set local role ${role}`);
    // Of several statements the last one counts.
    const { rows = [], rowCount = null } =
      [await client.query<Record<string, unknown>>(sql)].flat().at(-1) ?? {};
    const text = rows.map((row) => Object.values(row).join(' ')).join('\\n');
    if (role !== null) await client.query('rollback to savepoint statement');
    return { rows: rowCount, code: null, text };
  } catch (error) {
    await client.query('rollback to savepoint statement');
    return { rows: null, code: codeOf(error) ?? String(error), text: String(error) };
  }
}

/** Rules without a case below: about the server itself. */
const ABOUT_SERVER = ['RLS046'];

test('each rule has a case', (t) => {
  const tried = new Set([...CASES.map(({ code }) => code), ...ABOUT_SERVER]);
  t.strictSame(
    RULES.map(({ code }) => code).filter((code) => !tried.has(code)),
    [],
  );
  t.end();
});
