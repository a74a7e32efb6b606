import t, { type Test } from 'tap';
import type {
  ArgumentType,
  CastDefinition,
  FunctionDefinition,
  OperatorDefinition,
} from '../../../compiler/src/functions/define.js';
import type { TypeName } from '../../../compiler/src/types/types.js';
import { type Engine, openEngine } from './support/engine.js';
import { functions, types } from './support/table.js';

/** Every fact of the three tables, against the catalog of the engine itself. */

const MODEL_TYPES: readonly TypeName[] = types.SCALAR_TYPES.flatMap((s) => [s, types.arrayOf(s)]);

/** Where Postgres 15 and 18 differ the table says what holds in both. */
const STABLE_IN_15 = 'date_trunc(text, timestamptz, text)';

interface Procedure {
  readonly kind: string;
  readonly arguments: string;
  readonly defaults: number;
  readonly variadic: string | null;
  readonly result: string;
  readonly volatility: string;
  readonly leakproof: boolean;
  readonly parallel: string;
  readonly returnsSet: boolean;
  /** Types of the arguments that are results. */
  readonly columns: readonly string[] | null;
}

/** Type names as the table spells them; `regtype` would say `integer`. */
const TYPE_NAME = `case when t.typelem <> 0 and t.typlen = -1
  then (select e.typname from pg_type e where e.oid = t.typelem) || '[]' else t.typname end`;

const PROCEDURES = `
  with names as (select t.oid, ${TYPE_NAME} as name from pg_type t)
  select p.proname as name,
    case when p.prokind = 'a' then (select a.aggkind::text from pg_aggregate a where a.aggfnoid = p.oid)
      else p.prokind::text end as kind,
    (select coalesce(string_agg(n.name, ', ' order by a.i), '')
      from unnest(p.proargtypes) with ordinality a (type, i) join names n on n.oid = a.type) as arguments,
    p.pronargdefaults as defaults,
    (select n.name from names n where n.oid = p.provariadic) as variadic,
    (select n.name from names n where n.oid = p.prorettype) as result,
    p.provolatile::text as volatility,
    p.proleakproof as leakproof,
    p.proparallel::text as parallel,
    p.proretset as "returnsSet",
    (select json_agg(n.name order by a.i) from unnest(p.proallargtypes, p.proargmodes) with ordinality a (type, mode, i)
      join names n on n.oid = a.type where a.mode = 'o') as columns
  from pg_proc p where p.pronamespace = 'pg_catalog'::regnamespace`;

const KINDS = { scalar: 'f', aggregate: 'n', ordered_set: 'o', window: 'w', rows: 'f' } as const;
const VOLATILITIES = { immutable: 'i', stable: 's', volatile: 'v' } as const;

function spelled(f: FunctionDefinition): string {
  return `${f.name}(${f.arguments.join(', ')})`;
}

/** `proargtypes` of `f`: a variadic argument is declared as an array, except `any`. */
function declared(f: FunctionDefinition): string {
  if (functions.PATH_FUNCTIONS.has(f.name))
    return f.arguments.map((a, i) => (i === 1 ? 'jsonpath' : a)).join(', ');
  if (functions.ENCODING_FUNCTIONS.has(f.name)) return [...f.arguments.slice(0, -1), 'name'].join(', ');
  if (functions.isConfigured(f)) return ['regconfig', ...f.arguments.slice(1)].join(', ');
  if (f.variadic === null || f.variadic === 'any') return f.arguments.join(', ');
  return [...f.arguments.slice(0, -1), `${f.variadic}[]`].join(', ');
}

/** True if `args` is what a caller may write for `p`, leaving out arguments that have defaults. */
function isCallable(p: Procedure, args: string): boolean {
  const all = p.arguments === '' ? [] : p.arguments.split(', ');
  const given = args === '' ? [] : args.split(', ');
  return given.length + p.defaults >= all.length && all.slice(0, given.length).join(', ') === args;
}

async function procedures(engine: Engine): Promise<ReadonlyMap<string, readonly Procedure[]>> {
  const byName = new Map<string, Procedure[]>();
  for (const row of await engine.rows(PROCEDURES)) {
    const name = String(row['name']);
    const list = byName.get(name) ?? [];
    list.push(row as unknown as Procedure); // the query above names exactly these columns
    byName.set(name, list);
  }
  return byName;
}

function checkFunction(t: Test, f: FunctionDefinition, p: Procedure, major: number): void {
  // Rows of several columns are of their last one's type in the table.
  const result = f.kind === 'rows' && p.result === 'record' ? p.columns?.at(-1) : p.result;
  t.equal(f.result, result, `${spelled(f)} result`);
  if (f.kind === 'rows')
    t.equal(functions.columnsOfRows(f, 'text').length, p.columns?.length ?? 1, `${spelled(f)} columns`);
  t.equal(p.variadic, f.variadic, `${spelled(f)} variadic`);
  t.equal(f.leakproof, p.leakproof, `${spelled(f)} leakproof`);
  t.equal(p.returnsSet, f.kind === 'rows', `${spelled(f)} returns one value, or rows`);
  // Only a generator of numbers has a state, which nobody can set.
  t.equal(p.parallel, f.volatility === 'volatile' ? 'r' : 's', `${spelled(f)} touches no session state`);
  const volatility = spelled(f) === STABLE_IN_15 && major > 15 ? 'i' : VOLATILITIES[f.volatility];
  t.equal(p.volatility, volatility, `${spelled(f)} volatility`);
}

async function checkFunctions(t: Test, engine: Engine): Promise<void> {
  const byName = await procedures(engine);
  for (const f of functions.FUNCTIONS) {
    const args = declared(f);
    const found = byName.get(f.name)?.filter((p) => p.kind === KINDS[f.kind] && isCallable(p, args)) ?? [];
    const [p] = found;
    if (p === undefined || found.length > 1) t.fail(`${spelled(f)} stands for ${found.length} procedures`);
    else checkFunction(t, f, p, engine.major);
  }
}

const OPERATORS = `
  with names as (select t.oid, ${TYPE_NAME} as name from pg_type t)
  select (select n.name from names n where n.oid = o.oprleft) as "left", o.oprname as name,
    (select n.name from names n where n.oid = o.oprright) as "right",
    (select n.name from names n where n.oid = o.oprresult) as result,
    p.proleakproof as leakproof, p.provolatile::text as volatility
  from pg_operator o join pg_proc p on p.oid = o.oprcode
  where o.oprnamespace = 'pg_catalog'::regnamespace`;

function operatorKey(left: unknown, name: unknown, right: unknown): string {
  return `${left ?? ''} ${name} ${right}`.trim();
}

async function checkOperators(t: Test, engine: Engine): Promise<void> {
  const rows = await engine.rows(OPERATORS);
  const byKey = new Map(rows.map((r) => [operatorKey(r['left'], r['name'], r['right']), r]));
  for (const o of functions.OPERATORS) {
    const key = operatorKey(o.left, o.name, o.right);
    const row = byKey.get(key);
    t.equal(o.result, row?.['result'], `${key} result`);
    t.equal(o.leakproof, row?.['leakproof'], `${key} leakproof`);
    t.ok(['i', 's'].includes(String(row?.['volatility'])), `${key} is not volatile`);
  }
}

const CASTS = `
  with names as (select t.oid, ${TYPE_NAME} as name from pg_type t)
  select f.name as "from", s.name as "to", c.castcontext::text as context,
    case c.castmethod when 'b' then true when 'f' then p.proleakproof else false end as leakproof
  from pg_cast c join names f on f.oid = c.castsource join names s on s.oid = c.casttarget
    left join pg_proc p on p.oid = c.castfunc
  where c.castsource <> c.casttarget`;

const CONTEXTS = { implicit: 'i', assignment: 'a', explicit: 'e' } as const;
const NEWER_CASTS = ['int2', 'int4', 'int8'].flatMap((i) => [`${i} as bytea`, `bytea as ${i}`]);

function castKey(from: unknown, to: unknown): string {
  return `${from} as ${to}`;
}

async function checkCatalogCasts(t: Test, engine: Engine): Promise<void> {
  const ours = new Map(functions.CATALOG_CASTS.map((c) => [castKey(c.from, c.to), c]));
  const model: ReadonlySet<unknown> = new Set(MODEL_TYPES);
  const theirs = (await engine.rows(CASTS)).filter((r) => model.has(r['from']) && model.has(r['to']));
  for (const row of theirs) {
    const key = castKey(row['from'], row['to']);
    if (NEWER_CASTS.includes(key)) continue;
    const found = ours.get(key);
    ours.delete(key);
    t.equal(found && CONTEXTS[found.context], row['context'], `${key} context`);
    t.equal(found?.leakproof, row['leakproof'], `${key} leakproof`);
  }
  t.strictSame([...ours.keys()], [], 'no other cast');
}

/** The weakest context in which the engine converts; null where it never does. */
async function contextOf(
  engine: Engine,
  from: TypeName,
  to: TypeName,
): Promise<CastDefinition['context'] | null> {
  if (typeof (await engine.typeOf(`select null::${from}::${to} where false`)) === 'string') return null;
  const column = `c${MODEL_TYPES.indexOf(to)}`;
  const assigned = await engine.typeOf(`insert into every_type (${column}) select null::${from} where false`);
  if (typeof assigned === 'string') return 'explicit';
  const called = await engine.typeOf(`select takes_${column}(null::${from}) where false`);
  return typeof called === 'string' ? 'assignment' : 'implicit';
}

async function checkEveryPair(t: Test, engine: Engine): Promise<void> {
  await engine.rows(`create temp table every_type (${MODEL_TYPES.map((m, i) => `c${i} ${m}`).join(', ')})`);
  await engine.rows('create schema taking');
  await engine.rows('set search_path = taking, pg_catalog, pg_temp');
  for (const [i, type] of MODEL_TYPES.entries()) {
    await engine.rows(`create function takes_c${i}(${type}) returns int4 language sql as 'select 1'`);
  }
  for (const from of MODEL_TYPES) {
    for (const to of MODEL_TYPES) {
      const key = castKey(from, to);
      if (from === to) t.equal(functions.castBetween(from, to), null, key);
      else if (!NEWER_CASTS.includes(key.replaceAll('[]', ''))) {
        t.equal(functions.castBetween(from, to)?.context ?? null, await contextOf(engine, from, to), key);
      }
    }
  }
  await engine.rows('drop schema taking cascade');
}

async function checkTextForm(t: Test, engine: Engine): Promise<void> {
  const names = types.SCALAR_TYPES.map((s) => `'${s}'`).join();
  const rows = await engine.rows(`select t.typname, p.proname from pg_type t
    join pg_proc p on p.oid in (t.typinput, t.typoutput) where t.typname in (${names}) and p.proleakproof`);
  t.strictSame(rows, [], 'no input or output function is leakproof');
  for (const type of MODEL_TYPES.filter((m) => m !== 'bpchar')) {
    t.not(functions.castBetween(type, 'text')?.leakproof, true, `${type} as text`);
    t.not(functions.castBetween('text', type)?.leakproof, true, `text as ${type}`);
  }
}

const SAMPLES: Readonly<Partial<Record<ArgumentType, string>>> = {
  tsquery: "'cat'::tsquery",
  date: `date '2020-02-03'`,
  time: `time '04:05:06'`,
  timestamp: `timestamp '2020-02-03 04:05:06'`,
  timestamptz: `timestamptz '2020-02-03 04:05:06+00'`,
  interval: `interval '1 year 2 days 3 hours'`,
  text: `'UTC'`,
};

async function checkUnits(t: Test, engine: Engine): Promise<void> {
  for (const f of functions.FUNCTIONS) {
    for (const [position, units] of f.structural) {
      // No option of a headline, and no words to search.
      const text = functions.isConfigured(f) ? "''" : SAMPLES.text;
      const args = f.arguments.map((a) => (a === 'text' ? text : SAMPLES[a]) ?? '');
      for (const unit of units) {
        args[position] = `'${unit}'`;
        const answer = await engine.typeOf(`select pg_catalog."${f.name}"(${args.join(', ')})`);
        t.type(answer, 'number', `${spelled(f)}: ${unit}`);
      }
    }
  }
}

function checkDistinct(t: Test): void {
  const seen = new Set<string>();
  const once = (key: string): void => {
    t.notOk(seen.has(key), `${key} is there once`);
    seen.add(key);
  };
  for (const f of functions.FUNCTIONS) once(`${f.kind} ${f.name}(${declared(f)})`);
  for (const o of functions.OPERATORS) once(operatorKey(o.left, o.name, o.right));
}

function checkFrozen(t: Test): void {
  const rows: readonly (FunctionDefinition | OperatorDefinition | CastDefinition)[] = [
    ...functions.FUNCTIONS,
    ...functions.OPERATORS,
    ...functions.CATALOG_CASTS,
  ];
  t.ok(rows.every((row) => Object.isFrozen(row)));
  t.ok(functions.FUNCTIONS.every((f) => Object.isFrozen(f.arguments)));
  t.ok([functions.FUNCTIONS, functions.OPERATORS, functions.CATALOG_CASTS].every((l) => Object.isFrozen(l)));
}

t.test('the tables say what the engine does', async (t) => {
  const engine = await openEngine();
  t.teardown(() => engine.close());
  await t.test('functions', (t) => checkFunctions(t, engine));
  await t.test('operators', (t) => checkOperators(t, engine));
  await t.test('casts of pg_cast', (t) => checkCatalogCasts(t, engine));
  await t.test('casts through the text form', (t) => checkTextForm(t, engine));
  await t.test('units', (t) => checkUnits(t, engine));
  await t.test('casts between any two types', (t) => checkEveryPair(t, engine));
});

t.test('no overload is there twice', async (t) => checkDistinct(t));
t.test('the tables are frozen', async (t) => checkFrozen(t));
