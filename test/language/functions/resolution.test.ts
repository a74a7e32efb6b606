import t, { type Test } from 'tap';
import type { Operand } from '../../../compiler/src/functions/conversions.js';
import type { ArgumentType, FunctionDefinition } from '../../../compiler/src/functions/define.js';
import type { FunctionResolution, OperatorResolution } from '../../../compiler/src/functions/resolve.js';
import type { TypeName } from '../../../compiler/src/types/types.js';
import { type Engine, openEngine } from './support/engine.js';
import { Random } from './support/random.js';
import { functions, types } from './support/table.js';

/** Random calls over typed NULLs, resolved by the table and by the engine. */
const SEED = Number(process.env['OSL_TEST_SEED'] ?? 20_260_101);
const CALLS = Number(process.env['OSL_TEST_CALLS'] ?? 1500);
/** Number of calls of each sort that are compared overload by overload. */
const VIEWS = Number(process.env['OSL_TEST_VIEWS'] ?? 400);

const SCALARS: readonly TypeName[] = types.SCALAR_TYPES;
const ARRAYS: readonly TypeName[] = types.SCALAR_TYPES.map(types.arrayOf);

/** A call over typed NULLs. */
interface Call {
  readonly key: string;
  /** The call's expression for arguments in SQL. */
  readonly sql: (args: readonly string[]) => string;
  readonly args: readonly Operand[];
  readonly resolved: FunctionResolution | OperatorResolution;
}

function operand(type: Operand): string {
  return type === null ? 'null' : `null::${type}`;
}

/** An argument that might be passed where `declared` stands: often its type, sometimes unknown or any other. */
function argumentFor(random: Random, declared: ArgumentType): Operand {
  const chance = random.next();
  if (chance < 0.2) return null;
  if (chance < 0.4) return random.pick(SCALARS);
  if (chance < 0.45) return random.pick(ARRAYS);
  switch (declared) {
    case 'any':
    case 'anyelement':
    case 'anynonarray':
    case 'anycompatible':
      return random.pick(random.next() < 0.8 ? ['int4', 'int8', 'numeric', 'text', 'date'] : SCALARS);
    case 'anyarray':
    case 'anycompatiblearray':
      return random.pick(
        random.next() < 0.8 ? ['int4[]', 'int8[]', 'numeric[]', 'text[]', 'date[]'] : ARRAYS,
      );
    case 'anyrange':
      return random.pick(types.RANGE_TYPES);
    case 'anymultirange':
      return random.pick(types.MULTIRANGE_TYPES);
    default:
      return declared;
  }
}

function callSql({ name, kind }: FunctionDefinition, args: readonly string[]): string {
  const called = `pg_catalog."${name}"`;
  switch (kind) {
    case 'scalar':
    case 'aggregate':
    case 'rows':
      return `${called}(${args.join(', ')})`;
    case 'window':
      return `${called}(${args.join(', ')}) over ()`;
    case 'ordered_set':
      return `${called}(${args.slice(0, -1).join(', ')}) within group (order by ${args.at(-1) ?? ''})`;
  }
}

/** Those of which some take a text search configuration, a literal that is not text to Postgres. */
const CONFIGURED: ReadonlySet<string> = new Set(
  functions.FUNCTIONS.filter((f) => functions.isConfigured(f)).map((f) => f.name),
);

/** A call of one with several columns has no type of the model, and a path through JSON is of none. */
const OF_ONE_VALUE = functions.FUNCTIONS.filter(
  (f) =>
    functions.columnsOfRows(f, 'text').length === 1 &&
    !functions.PATH_FUNCTIONS.has(f.name) &&
    !functions.ENCODING_FUNCTIONS.has(f.name) &&
    !CONFIGURED.has(f.name),
);

function functionCall(random: Random): Call {
  const definition = random.pick(OF_ONE_VALUE);
  const declared = [...definition.arguments];
  if (definition.variadic !== null && random.next() < 0.5) declared.push(definition.variadic);
  const args = declared.map((type) => argumentFor(random, type));
  return {
    key: `${definition.name}(${args.map((a) => a ?? 'unknown').join(', ')})`,
    sql: (list) => callSql(definition, list),
    args,
    resolved: functions.resolveFunction(definition.name, args, definition.kind),
  };
}

function operatorCall(random: Random): Call {
  const { name, left, right } = random.pick(functions.OPERATORS);
  const r = argumentFor(random, right);
  const operator = `operator(pg_catalog.${name})`;
  if (left === null) {
    return {
      key: `${name} ${r ?? 'unknown'}`,
      sql: (list) => `${operator} (${list.join()})`,
      args: [r],
      resolved: functions.resolveOperator(name, undefined, r),
    };
  }
  const l = argumentFor(random, left);
  return {
    key: `${l ?? 'unknown'} ${name} ${r ?? 'unknown'}`,
    sql: (list) => `(${list.join(`) ${operator} (`)})`,
    args: [l, r],
    resolved: functions.resolveOperator(name, l, r),
  };
}

function distinctCalls(make: (random: Random) => Call): Call[] {
  const random = new Random(SEED);
  const calls = new Map<string, Call>();
  for (let i = 0; i < CALLS; i++) {
    const call = make(random);
    calls.set(call.key, call);
  }
  return [...calls.values()];
}

/** Undefined function, cannot coerce, indeterminate type, wrong object type, undefined object, ambiguous. */
const REFUSALS: ReadonlySet<string> = new Set(['42883', '42804', '42P18', '42809', '42704', '42725']);

/** Result of a call in the engine: its type, or `refused`. */
async function engineResult(engine: Engine, call: Call): Promise<string> {
  const answer = await engine.typeOf(`select ${call.sql(call.args.map(operand))} where false`);
  if (typeof answer === 'number') return types.typeOfOid(answer) ?? `oid ${answer}`;
  return REFUSALS.has(answer) ? 'refused' : `sqlstate ${answer}`;
}

function ourResult({ resolved }: Call): string {
  return typeof resolved === 'string' ? 'refused' : resolved.result;
}

/** To the engine, a type's name called with its own type, text or an unknown literal is a cast; to the table it is not. */
const CAST_NOTATION: ReadonlySet<string> = new Set([
  'date(date)',
  'date(text)',
  'date(bpchar)',
  'date(unknown)',
]);

interface Difference {
  readonly key: string;
  readonly ours: string;
  readonly theirs: string;
}

/**
 * Why the table may answer otherwise than the engine. We refuse more, or we settle what is ambiguous only
 * because of an overload that the language has not; the emitted call has typed arguments and is not ambiguous.
 */
const REASONS: readonly { readonly why: string; readonly covers: (d: Difference) => boolean }[] = [
  {
    why: 'a range of constants is made when the call is planned, with brackets that the test makes up',
    covers: (d) =>
      /^(?:int4|int8|num|date|ts|tstz)range\(/.test(d.key) && /^sqlstate (22000|42601)$/.test(d.theirs),
  },
  {
    why: 'no zone of a timetz is changed, and no field of it taken out',
    covers: (d) =>
      d.ours === 'refused' && (d.theirs === 'timetz' || /^(?:date_part|extract)\(\w+, timetz\)$/.test(d.key)),
  },
  {
    why: 'bits are compared and cast, and nothing is computed of them',
    covers: (d) => d.ours === 'refused' && d.key.includes('varbit') && !/ (=|<>|<|<=|>|>=) /.test(d.key),
  },
  {
    why: 'of searches there is no equality and no order',
    covers: (d) =>
      d.ours === 'refused' &&
      d.theirs === 'bool' &&
      / (=|<>|<|<=|>|>=) /.test(d.key) &&
      /tsquery/.test(d.key),
  },
  {
    why: 'the maker of an address is not asked for',
    covers: (d) => d.ours === 'refused' && /^trunc\(macaddr8?\)$/.test(d.key),
  },
  {
    why: 'overload newer than Postgres 15',
    covers: (d) => d.ours === 'refused' && ['min(bytea)', 'max(bytea)', 'reverse(bytea)'].includes(d.key),
  },
  {
    why: 'format() takes text only',
    covers: (d) => d.ours === 'refused' && d.theirs === 'text' && d.key.startsWith('format('),
  },
  {
    why: 'a cast in function notation',
    covers: (d) => d.ours === 'refused' && CAST_NOTATION.has(d.key),
  },
  {
    why: 'ambiguous to the engine because of json, lseg, xid, bit or macaddr',
    covers: (d) =>
      d.theirs === 'refused' &&
      (/^unknown (->|->>|#>|#>>|\?\|) /.test(d.key) ||
        ['age(unknown)', 'bit_count(unknown)', 'trunc(unknown)'].includes(d.key)),
  },
];

async function compare(t: Test, engine: Engine, calls: readonly Call[]): Promise<void> {
  const counts = new Map<string, number>();
  const unexplained: Difference[] = [];
  for (const call of calls) {
    const difference = { key: call.key, ours: ourResult(call), theirs: await engineResult(engine, call) };
    const agreed = difference.ours === 'refused' ? 'both refuse' : 'both resolve';
    const why =
      difference.ours === difference.theirs ? agreed : REASONS.find((r) => r.covers(difference))?.why;
    if (why === undefined) unexplained.push(difference);
    else counts.set(why, (counts.get(why) ?? 0) + 1);
  }
  for (const [why, n] of counts) t.comment(`${n} ${why}`);
  t.strictSame(unexplained, []);
  t.ok((counts.get('both resolve') ?? 0) >= 500, 'many calls resolve');
}

/** True if a call is settled by both, so that the overloads can be compared. */
type Settled = Call & { readonly resolved: Exclude<Call['resolved'], string> };
function isSettled(call: Call): call is Settled {
  return typeof call.resolved !== 'string';
}

/** Text of a call that the engine has analysed: every conversion is shown. */
async function analysed(engine: Engine, sql: string): Promise<string | null> {
  const made = await engine.typeOf(`create or replace temp view analysed as select ${sql} as value`);
  if (typeof made === 'string') return null;
  const [row] = await engine.rows(`select pg_get_viewdef('analysed') as sql`);
  await engine.rows('drop view analysed');
  return String(row?.['sql']).replaceAll('::unknown', '::text');
}

async function compareOverloads(t: Test, engine: Engine, calls: readonly Call[]): Promise<void> {
  const wrong: string[] = [];
  let compared = 0;
  for (const call of calls.filter(isSettled).slice(0, VIEWS)) {
    if (CAST_NOTATION.has(call.key)) continue;
    const theirs = await analysed(engine, call.sql(call.args.map(operand)));
    const { argumentTypes } = call.resolved;
    const ours = await analysed(
      engine,
      call.sql(call.args.map((arg, i) => `${operand(arg)}::${argumentTypes[i]}`)),
    );
    if (ours === null) wrong.push(`${call.key}: refused with (${argumentTypes})`);
    else if (theirs !== null && theirs !== ours) wrong.push(`${call.key}: ${theirs} is not ${ours}`);
    else compared++;
  }
  t.comment(`${compared} overloads compared`);
  t.strictSame(wrong, []);
}

t.test('random calls have the type that the engine gives them', async (t) => {
  const engine = await openEngine();
  t.teardown(() => engine.close());
  for (const make of [functionCall, operatorCall]) {
    const calls = distinctCalls(make);
    await t.test(`${make.name}: ${calls.length} distinct`, (t) => compare(t, engine, calls));
    await t.test(`${make.name}: the same overload`, (t) => compareOverloads(t, engine, calls));
  }
});
