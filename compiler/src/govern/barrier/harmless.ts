import type { LiteralSlots } from '../../bind/index.js';
import { assertNever } from '../../errors/errors.js';
import type {
  Aggregate,
  Cast,
  ColumnRef,
  CommonTable,
  Expr,
  FunctionCall,
  Operation,
  Query,
  WindowCall,
} from '../../plan/plan.js';
import { childrenOf, exprsOf, leavesOf, queryOf } from '../../plan/walk.js';
import { cannotFail, isCount, isFewDigits } from './constants.js';

/** Callbacks that decide whether columns, calls and other nodes can fail. */
export interface HarmlessContext {
  readonly literals: LiteralSlots;
  /** True if the expression behind a column is harmless. */
  readonly column: (ref: ColumnRef) => boolean;
  /** True if an aggregate or window call is harmless where it occurs. */
  readonly call: (call: Aggregate | WindowCall) => boolean;
  /** True if the type of a text's column limits the length of its values, as `varchar(20)` does. */
  readonly isLimited: (text: Expr) => boolean;
  /** True if a node that none of the lists in `LISTED` covers is harmless where it occurs. */
  readonly node: (e: Expr) => boolean;
  /** Cached results for queries inside expressions. */
  readonly queries: WeakMap<Query, boolean>;
}

/**
 * True if an expression can be computed for any stored row and any parameter without an error, so that no error reveals
 * a value or the existence of a row. Uses a list of operations proved not to fail, each with its reason;
 * `test/proof/oracle/harmless.test.ts` tests each with the extreme values of every type.
 */
export function isHarmless(expr: Expr, context: HarmlessContext): boolean {
  return isListed(expr, context) || cannotFail(expr, context.literals);
}

function isListed(expr: Expr, context: HarmlessContext): boolean {
  if (expr.kind === 'column') return context.column(expr);
  if (expr.kind === 'aggregate' || expr.kind === 'window') return context.call(expr);
  if (!isHarmlessNode(expr, context.literals) && !isCaseOfLimited(expr, context) && !context.node(expr))
    return false;
  const inner = queryOf(expr);
  if (inner !== null && !isHarmlessQuery(inner, context)) return false;
  return childrenOf(expr).every((e) => isHarmless(e, context));
}

/** True if nothing evaluated in `query`, at any depth, can fail. LIMIT and OFFSET must be literal counts. */
export function isHarmlessQuery(query: Query, context: HarmlessContext): boolean {
  const known = context.queries.get(query);
  if (known !== undefined) return known;
  const within: HarmlessContext = { ...context, call: (c) => isHarmlessCall(c, within), node: () => false };
  const found =
    (query.kind === 'values' ||
      (isCount(query.limit, context.literals) && isCount(query.offset, context.literals))) &&
    exprsOf(query).every((e) => isHarmless(e, within)) &&
    operandsOf(query).every((q) => q !== null && isHarmlessQuery(q, context));
  context.queries.set(query, found);
  return found;
}

/** Returns the queries that `query` reads; null for each source that may generate too many rows. */
function operandsOf(query: Query): readonly (Query | null)[] {
  switch (query.kind) {
    case 'values':
      return [];
    case 'set_operation':
      return [...tablesOf(query.with), query.left, query.right];
    case 'select':
      return [
        ...tablesOf(query.with),
        ...leavesOf(query.from).flatMap((l) =>
          l.kind === 'derived' ? [l.query] : l.kind === 'spine' || l.kind === 'rows' ? [null] : [],
        ),
      ];
    default:
      return assertNever(query);
  }
}

function tablesOf(tables: readonly CommonTable[]): readonly (Query | null)[] {
  return tables.map((t) => (t.recursive === true ? null : t.query));
}

/** True for aggregates that count or compare. Others may fail: a sum may overflow. */
function isHarmlessCall(call: Aggregate | WindowCall, context: HarmlessContext): boolean {
  return (
    call.kind === 'aggregate' &&
    COUNTING.has(call.definition.name) &&
    childrenOf(call).every((e) => isHarmless(e, context))
  );
}

const COUNTING: ReadonlySet<string> = new Set(['count', 'min', 'max', 'bool_and', 'bool_or', 'every']);

/** Operators whose result depends only on the order of two values, which is defined for every pair. */
const COMPARISONS: ReadonlySet<string> = new Set(['=', '<>', '<', '<=', '>', '>=']);

const SPANS = ['anyrange', 'anymultirange'] as const;

/** Operators that cannot fail, by name and operand types, with the reason. */
const OPERATORS: ReadonlyMap<string, string> = new Map([
  ['text ^@ text', 'compares bytes; the emitter names a collation that has an order of them'],
  ['anyarray && anyarray', 'equality of elements'],
  ['anyarray @> anyarray', 'equality of elements'],
  ['anyarray <@ anyarray', 'equality of elements'],
  ['jsonb -> text', 'yields NULL where there is no such key, and for what is not an object'],
  ['jsonb -> int4', 'yields NULL where there is no such element, and for what is not an array'],
  ['jsonb ? text', 'looks at the keys of one level'],
  ['jsonb ?| text[]', 'looks at the keys of one level'],
  ['jsonb ?& text[]', 'looks at the keys of one level'],
  ...['<<', '<<=', '>>', '>>=', '&&'].map((name) => [`inet ${name} inet`, 'compares bits'] as const),
  ...['&&', '@>', '<@', '<<', '>>', '&<', '&>'].flatMap((name) =>
    SPANS.flatMap((left) =>
      SPANS.map((right) => [`${left} ${name} ${right}`, 'compares ends by the order of their type'] as const),
    ),
  ),
  ...SPANS.flatMap((span) => [
    [`${span} @> anyelement`, 'compares ends by the order of their type'] as const,
    [`anyelement <@ ${span}`, 'compares ends by the order of their type'] as const,
  ]),
]);

/** LIKE can fail only through its pattern (`isSoundPattern`); ILIKE changes case, which fails on a very long text. */
const PATTERNS: ReadonlySet<string> = new Set(['text ~~ text', 'text !~~ text']);

/** Postgres descends into a stored jsonb only as deep as the value searched for: see `isSoundContained`. */
const CONTAINMENT = 'jsonb @> jsonb';

/** Functions that cannot fail, by name and argument types, with the reason. */
const CALLS: ReadonlyMap<string, string> = new Map([
  ['length text', 'counts characters'],
  ['char_length text', 'counts characters'],
  ['character_length text', 'counts characters'],
  ['length bytea', 'reads a header'],
  ['octet_length text', 'reads a header'],
  ['octet_length bytea', 'reads a header'],
  ['md5 text', 'digests any bytes'],
  ['md5 bytea', 'digests any bytes'],
  ['sha224 bytea', 'digests any bytes'],
  ['sha256 bytea', 'digests any bytes'],
  ['sha384 bytea', 'digests any bytes'],
  ['sha512 bytea', 'digests any bytes'],
  ['starts_with text text', 'compares bytes; the emitter names a collation that has an order of them'],
  ['isfinite date', 'compares with the two infinities'],
  ['isfinite timestamp', 'compares with the two infinities'],
  ['isfinite timestamptz', 'compares with the two infinities'],
  ['isfinite interval', 'compares with the two infinities'],
  ['extract text date', 'the binder knows the units; every stored moment can be taken apart'],
  ['extract text time', 'the binder knows the units; every stored moment can be taken apart'],
  ['extract text timestamp', 'the binder knows the units; every stored moment can be taken apart'],
  ['extract text timestamptz', 'the binder knows the units; every stored moment can be taken apart'],
  ['extract text interval', 'the binder knows the units; every stored interval can be taken apart'],
  ['date_part text time', 'as extract'],
  ['date_part text timestamp', 'as extract'],
  ['date_part text timestamptz', 'as extract'],
  ['date_part text interval', 'as extract'],
  ['now', 'reads the clock'],
  ['transaction_timestamp', 'reads the clock'],
  ['statement_timestamp', 'reads the clock'],
]);

/** Casts that are defined for every source value. Not from date to timestamp: timestamp has the smaller range. */
const CASTS: ReadonlySet<string> = new Set([
  'int2 int4',
  'int2 int8',
  'int2 numeric',
  'int2 float4',
  'int2 float8',
  'int4 int8',
  'int4 numeric',
  'int4 float4',
  'int4 float8',
  'int8 numeric',
  'int8 float4',
  'int8 float8',
  'float4 float8',
  'float4 numeric',
  'float8 numeric',
  'bool int4',
  'int4 bool',
  'time interval',
  'timestamp date',
  'int2 text',
  'int4 text',
  'int8 text',
  'uuid text',
  'cidr inet',
]);

/** Functions that return a part of a text: see `isPart`. */
const ENDS: ReadonlySet<string> = new Set(['left', 'right']);
const MIDDLES: ReadonlySet<string> = new Set(['substring', 'substr']);
/** Functions that change the case of a text: see `isCaseOfLimited`. */
const CASES: ReadonlySet<string> = new Set(['lower', 'upper']);

/** The lists of harmless operations, exported for tests that try extreme values on every entry. */
export const LISTED = Object.freeze({
  comparisons: COMPARISONS,
  patterns: PATTERNS,
  operators: OPERATORS,
  calls: CALLS,
  casts: CASTS,
  parts: [...ENDS, ...MIDDLES],
  cases: [...CASES],
});

function isHarmlessNode(e: Expr, literals: LiteralSlots): boolean {
  switch (e.kind) {
    case 'base':
    case 'parameter':
    case 'null':
    case 'boolean':
    case 'structural':
    case 'and':
    case 'or':
    case 'not':
    case 'null_test':
    case 'truth_test':
    case 'case':
    case 'array':
    case 'exists':
      return true;
    // Uses only the equality and order of the operands' own type.
    case 'distinct_test':
    case 'membership':
    case 'in_query':
      return true;
    // Does not change the value.
    case 'collate':
    // Depends only on the grouping set, not on values.
    case 'grouping':
      return true;
    case 'row_comparison':
      return e.pairs.every((p) => COMPARISONS.has(p.definition.name));
    // Ordering tsquery values fails in Postgres for some of them.
    case 'conditional':
      return e.type !== 'tsquery';
    case 'quantified':
      return COMPARISONS.has(e.definition.name);
    case 'operation':
      return isHarmlessOperation(e, literals);
    case 'cast':
      return isHarmlessCast(e);
    case 'call':
      return (
        CALLS.has(callKey(e)) ||
        isInUtc(e) ||
        isSearch(e, literals) ||
        isPlaceInList(e) ||
        isPart(e, literals)
      );
    // Fails if the query yields several rows.
    case 'scalar_query':
    case 'bit_number':
    case 'row_text':
    case 'slice':
    case 'column':
    case 'aggregate':
    case 'window':
    case 'literal':
    case 'subscript':
    case 'distance':
    case 'stored_vector':
    case 'attribute_match':
      return false;
    default:
      return assertNever(e);
  }
}

function isHarmlessOperation({ definition, left, right }: Operation, literals: LiteralSlots): boolean {
  const { name } = definition;
  if (COMPARISONS.has(name)) return left !== null;
  const key = `${definition.left ?? ''} ${name} ${definition.right}`;
  // The recursion depth depends only on the tsquery, not on the text searched.
  if (key === 'tsvector @@ tsquery') return right.kind === 'call' && isSearch(right, literals);
  const test = PATTERNS.has(key) ? isSoundPattern : key === CONTAINMENT ? isSoundContained : null;
  if (test === null) return OPERATORS.has(key);
  return right.kind === 'parameter' && literals.literalIn(right.slot)?.holds(test) === true;
}

function isHarmlessCast({ arg, type, modifiers }: Cast): boolean {
  return modifiers.length === 0 && CASTS.has(`${arg.type} ${type}`);
}

/** True for `array_position` of a text in a list such as `array[…]`. In multidimensional arrays it would fail. */
function isPlaceInList({ definition, args: [list, text, ...more] }: FunctionCall): boolean {
  return (
    definition.name === 'array_position' &&
    list?.kind === 'array' &&
    list.type === 'text[]' &&
    text?.type === 'text' &&
    more.length === 0
  );
}

/** True for a part of a text at a position given by literals. Only a negative length can fail. */
function isPart({ definition, args: [text, first, ...more] }: FunctionCall, literals: LiteralSlots): boolean {
  if (text?.type !== 'text' || first?.kind !== 'parameter' || first.type !== 'int4') return false;
  if (ENDS.has(definition.name)) return more.length === 0 && isCount(first, literals);
  if (!MIDDLES.has(definition.name) || literals.literalIn(first.slot)?.holds(isFewDigits) !== true)
    return false;
  return more.every((length) => isCount(length, literals));
}

/** True for a change of case in a column such as `varchar(20)`. A text of 256 MiB would need too much memory. */
function isCaseOfLimited(e: Expr, context: HarmlessContext): boolean {
  if (e.kind !== 'call' || !CASES.has(e.definition.name)) return false;
  const [text] = e.args;
  return e.args.length === 1 && text?.type === 'text' && context.isLimited(text);
}

/** True for a text search query made from a literal. Unlike `to_tsquery`, these functions never raise syntax errors. */
function isSearch({ definition, args }: FunctionCall, literals: LiteralSlots): boolean {
  const words = args.at(-1);
  if (!SEARCHES.has(definition.name) || words?.kind !== 'parameter') return false;
  if (args.length === 2 && args[0]?.kind !== 'structural') return false;
  return literals.literalIn(words.slot)?.holds(isFewWords) === true;
}

const SEARCHES: ReadonlySet<string> = new Set([
  'plainto_tsquery',
  'phraseto_tsquery',
  'websearch_to_tsquery',
]);
/** Each minus sign nests the search one level deeper, and Postgres supports about thirty levels. */
export const isFewWords = (text: string): boolean => text.length <= 1_000 && text.split('-').length <= 20;

/** Returns the key of a call in `CALLS`: its name and argument types. No listed function is polymorphic. */
function callKey({ definition, args }: FunctionCall): string {
  return [definition.name, ...args.map((a) => a.type)].join(' ');
}

/** True for `timezone('UTC', ...)`. In another zone, a timestamp may leave the range of its type. */
function isInUtc({ definition, args: [zone] }: FunctionCall): boolean {
  return definition.name === 'timezone' && zone?.kind === 'structural' && zone.text === 'UTC';
}

/**
 * True if LIKE with this pattern cannot fail on any text. A pattern that ends in an escape fails when matching reaches
 * its end; a pattern with very many `%` may overflow the stack.
 */
export function isSoundPattern(pattern: string): boolean {
  let wild = 0;
  for (let i = 0; i < pattern.length; i++) {
    if (pattern[i] === '\\' && ++i === pattern.length) return false;
    if (pattern[i] === '%') wild++;
  }
  return wild <= MOST_WILD;
}

const MOST_WILD = 100;

/**
 * True if a search for this JSON cannot fail on any stored value. Postgres descends only as deep as the value searched
 * for. To find an object or array inside an array, however, it lists all objects and arrays in the stored array, and
 * that list may be too large.
 */
export function isSoundContained(json: string): boolean {
  if (json.length > MOST_CONTAINED) return false;
  try {
    JSON.parse(json);
  } catch {
    return false;
  }
  // The text itself is examined: of members with equal names, `JSON.parse` returns only the last.
  const brackets = json.replaceAll(/"(?:[^"\\]|\\.)*"/g, '').replaceAll(/[^[\]{}]/g, '');
  if (/\[[[{]/.test(brackets)) return false;
  let level = 0;
  return [...brackets].every((c) => (level += c === '[' || c === '{' ? 1 : -1) <= MOST_LEVELS);
}

const MOST_CONTAINED = 10_000;
const MOST_LEVELS = 50;
