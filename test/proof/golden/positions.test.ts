import { readFileSync } from 'node:fs';
import { PGlite } from '@electric-sql/pglite';
import { ALL_FEATURES, compile, emit, oidOf, QueryError, type TypeName } from 'osl-compiler';
import pg from 'pg';
import t from 'tap';
import { emptyDatabaseOfItsOwn } from '../../support/embedded-data.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { type Case, parseCases } from './cases.js';
import { CATALOG, SHOP_SQL } from './catalog.js';
import { CASES, caseFiles } from './files.js';
import { callerNamed } from './outcome.js';

/**
 * The question of every golden case in every place where a query may stand: the compiler refuses it, or both engines
 * prepare what it emits, with the types that it promises. Invalid SQL of ours would be an error of the database.
 */

/** Places of each case that are tried; there are as many as `PLACES` has, and CI takes some of them in turn. */
const PER_CASE = Number(process.env['OSL_GOLDEN_PLACES'] ?? 4);
const BATCH = 100;

t.setTimeout(3_600_000);

interface Asked {
  readonly golden: Case;
  readonly place: string;
  readonly text: string;
  readonly sql: string;
  readonly parameters: readonly TypeName[];
  readonly promised: readonly TypeName[];
}

type Place = (query: string, columns: readonly TypeName[]) => string | null;

/** A key of `tag` that one column can be looked for in. */
function keyFor([only, ...more]: readonly TypeName[]): string | null {
  if (only === undefined || more.length > 0) return null;
  return only === 'text' ? 'label' : /^(int[248]|numeric)$/.test(only) ? 'id' : null;
}

const nulls = (columns: readonly TypeName[]): string => columns.map((c) => `null::${c}`).join(', ');
const within = (key: string | null, text: string): string | null => (key === null ? null : text);

const PLACES: Readonly<Record<string, Place>> = {
  'a common table': (q) => `with p as (${q}) select * from p`,
  'a materialized table': (q) => `with p as materialized (${q}) select * from p order by 1`,
  'a table written out': (q) => `with p as not materialized (${q}) select * from p, p as r`,
  'a table of a table': (q) => `with p as (${q}), r as (select * from p) select count(*) from r`,
  'a table within a table': (q) => `with r as (with p as (${q}) select * from p) select * from r`,
  'a derived table': (q) => `select * from (${q}) as p`,
  'a derived table under other names': (q, c) =>
    `select * from (${q}) as p(${c.map((_, i) => `n${i}`).join(', ')})`,
  IN: (q, c) => within(keyFor(c), `select id from tag where ${keyFor(c)} in (${q})`),
  'NOT IN': (q, c) => within(keyFor(c), `select id from tag where ${keyFor(c)} not in (${q})`),
  ANY: (q, c) => within(keyFor(c), `select id from tag where ${keyFor(c)} = any (${q})`),
  lateral: (q) => `select p.* from tag as z, lateral (${q}) as p`,
  'lateral on the outer side': (q) => `select p.* from tag as z left join lateral (${q}) as p on true`,
  'an arm of a union': (q) => `(${q}) union all (${q})`,
  'an arm of a difference': (q) => `select * from ((${q}) except (${q})) as p`,
  'an arm behind VALUES': (q, c) => `with p as ((values (${nulls(c)})) union all (${q})) select * from p`,
  'an arm behind VALUES of a derived table': (q, c) =>
    `select * from ((values (${nulls(c)})) union all (${q})) as p`,
  'an arm before VALUES': (q, c) => `select * from ((${q}) union (values (${nulls(c)}))) as p`,
  EXISTS: (q) => `select id from tag where exists (${q})`,
  'a value': (q, c) => (c.length === 1 ? `select id, (${q}) from tag` : null),
  'an array': (q, c) => (c.length === 1 ? `select array(${q})` : null),
};

/** Cases of the text lane; metrics bodies have no place in a statement. */
const GOLDEN = caseFiles()
  .flatMap((file) => parseCases(readFileSync(new URL(file, CASES), 'utf8')))
  .filter(({ query }) => !query.startsWith('{'));

function compiled(golden: Case, text: string, alone: boolean): Omit<Asked, 'place'> | null {
  const features = ALL_FEATURES;
  const catalog = { ...CATALOG, features, joins: alone ? golden.joins : ('any' as const) };
  try {
    const plan = compile(text, catalog, callerNamed(golden.caller).access, { world: golden.world });
    const { sql, slots } = emit(plan);
    return {
      golden,
      text,
      sql,
      parameters: slots.map((s) => s.type),
      promised: plan.outputs.map((o) => o.type),
    };
  } catch (error) {
    if (error instanceof QueryError) return null;
    throw new Error(`${golden.name}: ${text}`, { cause: error });
  }
}

/** What is compiled and not refused, each SQL once. */
function asked(): readonly Asked[] {
  const places = Object.entries(PLACES);
  const step = places.length / PER_CASE;
  const found = new Map<string, Asked>();
  let turn = 0;
  for (const golden of GOLDEN) {
    const query = golden.query.replace(/;\s*$/, '');
    const alone = compiled(golden, query, true);
    if (alone === null) continue;
    turn += 1;
    const columns = alone.promised;
    for (let i = 0; i < PER_CASE; i++) {
      const [place, write] = places[Math.floor(turn + i * step) % places.length] ?? ['', () => null];
      const text = write(query, columns);
      const one = text === null ? null : compiled(golden, text, false);
      if (one !== null) found.set(one.sql, { ...one, place });
    }
  }
  return [...found.values()];
}

const ALL = asked();

type Run = (sql: string) => Promise<unknown>;

/** Each that the engine cannot prepare, with what it says. */
async function unprepared(run: Run, batch: readonly Asked[]): Promise<readonly string[]> {
  const statements = batch.map(({ sql, parameters }, i) => {
    const types = parameters.length === 0 ? '' : `(${parameters.join(', ')})`;
    return `prepare p${i}${types} as ${sql}`;
  });
  try {
    await run(statements.join(';\n'));
    return [];
  } catch (error) {
    const [only, ...more] = batch;
    if (only === undefined) throw error;
    if (more.length === 0)
      return [`${only.golden.name}, as ${only.place}: ${String(error)}\n${only.text}\n${only.sql}`];
  }
  const half = Math.ceil(batch.length / 2);
  const faults: string[] = [];
  for (const part of [batch.slice(0, half), batch.slice(half)]) {
    await run('deallocate all');
    faults.push(...(await unprepared(run, part)));
  }
  return faults;
}

function* batches(): Iterable<readonly Asked[]> {
  for (let from = 0; from < ALL.length; from += BATCH) yield ALL.slice(from, from + BATCH);
}

const TYPES =
  'select name, array(select r::oid from unnest(result_types) r) as oids from pg_prepared_statements';
const AS_SCANNED = `set search_path = pg_catalog; set timezone = 'UTC'`;

t.test('the embedded engine', async (t) => {
  const db = await PGlite.create({ dataDir: await emptyDatabaseOfItsOwn() });
  t.teardown(() => db.close());
  await db.exec(`create schema if not exists shop; ${SHOP_SQL}; ${AS_SCANNED}`);
  for (const batch of batches()) {
    t.strictSame(await unprepared((sql) => db.exec(sql), batch), []);
    const { rows } = await db.query<{ name: string; oids: readonly number[] }>(TYPES);
    const described = new Map(rows.map(({ name, oids }) => [name, oids]));
    for (const [i, { golden, place, promised }] of batch.entries())
      if (described.get(`p${i}`)?.join() !== promised.map(oidOf).join())
        t.fail(`${golden.name}, as ${place}, has other types than promised`);
    await db.exec('deallocate all');
  }
});

const native = await startNativePostgres();

t.test('a native server', { skip: native === null ? NO_NATIVE : false }, async (t) => {
  if (native === null) return;
  t.teardown(() => native.stop());
  const client = new pg.Client({ connectionString: native.url });
  await client.connect();
  await client.query(`create schema shop; ${SHOP_SQL}; ${AS_SCANNED}`);
  for (const batch of batches()) {
    t.strictSame(await unprepared((sql) => client.query(sql), batch), []);
    await client.query('deallocate all');
  }
  await client.end();
});

t.test('enough of them', async (t) => {
  const places = new Set(ALL.map((a) => a.place));
  t.strictSame([...places].sort(), Object.keys(PLACES).sort(), 'every place has some');
  t.comment(
    `${ALL.length} statements of ${GOLDEN.length} cases, ${PER_CASE} of ${Object.keys(PLACES).length} places each`,
  );
  t.ok(ALL.length > GOLDEN.length * PER_CASE * 0.35);
});
