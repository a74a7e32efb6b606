import { InternalError } from '../errors/errors.js';
import { resolveFunction, resolveOperator } from '../functions/resolve.js';
import { allOf, anyOf, callNode, caseNode, nullOf, operationNode } from '../plan/nodes.js';
import type { Aggregate, ColumnRef, Expr, FunctionCall, Operation } from '../plan/plan.js';
import { changed, childrenOf, mapChildren, mapped } from '../plan/walk.js';
import type { TypeName } from '../types/types.js';
import type { GovernedSlots } from './slots.js';

/*
 * Bounded forms of expressions that fail only on extreme values, for queries whose groups must have a minimum size. The
 * bounded form tests the column first and yields NULL (in sums: NaN) for an extreme value, because an error would
 * reveal a row of a group that is hidden for being too small.
 */

/** Index of the argument whose size decides whether a call fails, by function and argument types or by cast. */
const BOUNDED: ReadonlyMap<string, number> = new Map([
  ['lower text', 0],
  ['upper text', 0],
  ['date_trunc text timestamp', 1],
  ['date_trunc text timestamptz', 1],
  ['date_part text date', 1],
  ['date timestamp', 0],
  ['date timestamptz', 0],
]);

/** Functions (timezone only for UTC) and casts that cannot fail. The argument at the index bounds the result. */
const PASSING: ReadonlyMap<string, number> = new Map([
  ['timezone text timestamp', 1],
  ['timezone text timestamptz', 1],
  ['timestamp date', 0],
]);

/** Maximum nesting of these functions: each may lengthen a text or shift a timestamp. */
const MOST_NESTED = 6;

/** Maximum size of a text in bytes. Changing the case of far longer ones would need too much memory. */
const MOST_BYTES = String(1024 * 1024);
/** Timestamps outside this range may overflow in some type or zone, or when truncated. */
const FIRST = '1000-01-01 00:00:00+00 BC';
const LAST = '200000-01-01 00:00:00+00';

/** The largest absolute values whose squares, summed over any table, stay within their type. */
const LARGEST: ReadonlyMap<TypeName, string> = new Map<TypeName, string>([
  ['numeric', '1e1000'],
  ['float8', '1e140'],
  ['float4', '1e25'],
]);

/** Maximum number of factors in a product, by type. */
const MOST_FACTORS: ReadonlyMap<TypeName, number> = new Map<TypeName, number>([
  ['numeric', 32],
  ['float8', 2],
]);

/** True if `boundedExpr` can rewrite the node and its operands so that it cannot fail. */
export function canBeBounded(e: Expr): boolean {
  return decisiveColumn(e) !== null || isProduct(e);
}

/** True if an aggregate can be kept from failing. Sums and averages of intervals and money cannot. */
export function canBeSummed(call: Aggregate): boolean {
  return call.definition.name === 'count' || call.args.every((a) => !/^(?:interval|money)/.test(a.type));
}

/** Rewrites `expr` so that extreme values of its arguments cannot make it fail; queries inside it stay unchanged. */
export function boundedExpr(expr: Expr, slots: GovernedSlots): Expr {
  const deep = (e: Expr): Expr => boundedExpr(e, slots);
  const column = decisiveColumn(expr);
  if (column !== null) return caseNode(isAbsurd(column, slots), nullOf(expr.type), expr);
  // Expressions over aggregates are computed only for groups that are large enough.
  if (isProduct(expr) && !holdsAggregate(expr)) return sizedFactors(expr, slots);
  const below = mapChildren(expr, deep, (q) => q);
  return below.kind === 'aggregate' && below.definition.name !== 'count'
    ? changed(below, { args: mapped(below.args, (a) => sized(a, slots)) })
    : below;
}

/** Returns the argument of `e` whose index is in `nodes`; null if `nodes` does not have `e`. */
function argumentOf(e: Expr, nodes: ReadonlyMap<string, number>): Expr | null {
  if (e.kind === 'cast')
    return e.modifiers.length === 0 && nodes.has(`${e.arg.type} ${e.type}`) ? e.arg : null;
  if (e.kind !== 'call' || !hasKnownZone(e)) return null;
  const index = nodes.get(callKey(e));
  return index === undefined ? null : (e.args[index] ?? null);
}

/** Returns the only column that decides whether `e` and the nodes nested in it fail; null if they depend on more. */
function decisiveColumn(e: Expr): ColumnRef | null {
  let inner: Expr | null = e;
  let fails = false;
  for (let depth = 0; depth <= MOST_NESTED; depth++) {
    if (inner === null) return null;
    if (inner.kind === 'column') return fails ? inner : null;
    const bounded: Expr | null = argumentOf(inner, BOUNDED);
    fails ||= bounded !== null;
    inner = bounded ?? argumentOf(inner, PASSING);
  }
  return null;
}

function hasKnownZone({ definition, args: [zone] }: FunctionCall): boolean {
  return definition.name !== 'timezone' || (zone?.kind === 'structural' && zone.text === 'UTC');
}

function callKey({ definition, args }: FunctionCall): string {
  return [definition.name, ...args.map((a) => a.type)].join(' ');
}

function isAbsurd(value: Expr, slots: GovernedSlots): Expr {
  if (value.type === 'text')
    return compared('>', callOf('octet_length', value), slots.literal(MOST_BYTES, 'int4'));
  const [first, last] = [FIRST, LAST].map((text) => slots.literal(moment(text, value.type), value.type));
  if (first === undefined || last === undefined) throw new InternalError('time has two ends');
  const beyond = anyOf([compared('<', value, first), compared('>', value, last)]);
  // None of the functions in `BOUNDED` fails for an infinite value.
  return allOf([callOf('isfinite', value), beyond]);
}

function moment(text: string, type: TypeName): string {
  if (type === 'timestamptz') return text;
  return type === 'date' ? text.replace(' 00:00:00+00', '') : text.replace('+00', '');
}

// ---------------------------------------------------------------- numbers

/** Returns the number, or NaN if it is so large that a sum of such numbers could overflow its type. */
function sized(value: Expr, slots: GovernedSlots): Expr {
  const largest = LARGEST.get(value.type);
  if (largest === undefined) return value;
  const beyond = anyOf([
    compared('<', value, slots.literal(`-${largest}`, value.type)),
    compared('>', value, slots.literal(largest, value.type)),
  ]);
  return caseNode(beyond, slots.literal('NaN', value.type), value);
}

/** True for sums, differences and products of at most `MOST_FACTORS` columns and constants. */
function isProduct(e: Expr): e is Operation {
  return (
    e.kind === 'operation' && isArithmetic(e) && (factorsOf(e) ?? Infinity) <= (MOST_FACTORS.get(e.type) ?? 0)
  );
}

function isArithmetic({ definition, left, right, type }: Operation): boolean {
  return (
    left !== null &&
    ['+', '-', '*'].includes(definition.name) &&
    MOST_FACTORS.has(type) &&
    left.type === type &&
    right.type === type
  );
}

const FACTORS = new WeakMap<Expr, { readonly count: number | null }>();

/** Returns the number of columns and constants that are multiplied or added; null if there is anything else. */
function factorsOf(e: Expr): number | null {
  const known = FACTORS.get(e);
  if (known !== undefined) return known.count;
  const count = countedFactors(e);
  FACTORS.set(e, { count });
  return count;
}

function countedFactors(e: Expr): number | null {
  if (e.kind === 'column' || e.kind === 'parameter') return 1;
  // Only casts of integer columns: integers are within the bounds of every type here.
  if (e.kind === 'cast') return /^int[248]$/.test(e.arg.type) && e.arg.kind === 'column' ? 1 : null;
  if (e.kind !== 'operation' || e.left === null || !isArithmetic(e)) return null;
  const [left, right] = [factorsOf(e.left), factorsOf(e.right)];
  return left === null || right === null ? null : left + right;
}

function sizedFactors(e: Expr, slots: GovernedSlots): Expr {
  if (e.kind !== 'operation' || e.left === null) return sized(e, slots);
  return changed(e, { left: sizedFactors(e.left, slots), right: sizedFactors(e.right, slots) });
}

const AGGREGATED = new WeakMap<Expr, boolean>();

function holdsAggregate(expr: Expr): boolean {
  const known = AGGREGATED.get(expr);
  if (known !== undefined) return known;
  const found = expr.kind === 'aggregate' || childrenOf(expr).some(holdsAggregate);
  AGGREGATED.set(expr, found);
  return found;
}

// ---------------------------------------------------------------- expressions

function compared(name: '<' | '>', left: Expr, right: Expr): Expr {
  const found = resolveOperator(name, left.type, right.type);
  if (found === 'none' || found === 'ambiguous')
    throw new InternalError(`the operator table has no ${name} of ${left.type}`);
  return operationNode(found.definition, left, right);
}

function callOf(name: 'octet_length' | 'isfinite', value: Expr): Expr {
  const found = resolveFunction(name, [value.type]);
  if (found === 'none' || found === 'ambiguous')
    throw new InternalError(`the function table has no ${name} of ${value.type}`);
  return callNode(found.definition, [value], found.result);
}
