import { parseInstant } from '../catalog/grain.js';
import type { OperatorDefinition } from '../functions/define.js';
import { fingerprint } from '../plan/fingerprint.js';
import { allOf, anyOf, equalsAny, isNotNull, operationNode } from '../plan/nodes.js';
import type { BaseColumn, Expr, Literal } from '../plan/plan.js';
import { storedType } from '../types/column-form.js';
import { arrayOf, elementOf, isArray, type ScalarType } from '../types/types.js';

/**
 * Returns the disjunction of `filters`. Filters that equate the same column with values are merged into one list, and
 * ranges of the same column into disjoint ranges in order; others stay unchanged. Postgres looks up a list by hash, but
 * tries the arms of an OR one by one for each row.
 */
export function anyRow(filters: readonly Expr[]): Expr {
  const [only] = filters;
  if (only !== undefined && filters.length === 1) return only;
  const folds = new Map<string, Fold>();
  const arms: (Expr | Fold)[] = [];
  for (const filter of filters) {
    const part = valuesIn(filter) ?? rangeIn(filter);
    const known = part === null ? undefined : folds.get(part.key);
    if (part === null) arms.push(filter);
    else if (known === undefined) {
      const fold: Fold = { parts: [part], filters: [filter] };
      folds.set(part.key, fold);
      arms.push(fold);
    } else {
      known.parts.push(part);
      known.filters.push(filter);
    }
  }
  return anyOf(arms.flatMap((arm) => ('parts' in arm ? folded(arm) : [arm])));
}

/** Filters that can be merged into fewer conditions, often a single one. */
interface Fold {
  readonly parts: FilterPart[];
  readonly filters: Expr[];
}

type FilterPart = ColumnInList | ColumnRange;

/** `column` equals one of `values`. */
interface ColumnInList {
  readonly kind: 'values';
  /** Equal for parts that can be merged with each other. */
  readonly key: string;
  readonly column: BaseColumn;
  readonly equality: OperatorDefinition;
  readonly type: ScalarType;
  readonly values: readonly string[];
}

/** A range of `column` with at least one bound. */
interface ColumnRange {
  readonly kind: 'range';
  readonly key: string;
  readonly column: BaseColumn;
  readonly lower: RangeBound | null;
  readonly upper: RangeBound | null;
}

interface RangeBound {
  readonly condition: Expr;
  readonly value: Comparable;
  readonly inclusive: boolean;
}

function folded({ parts, filters }: Fold): readonly Expr[] {
  if (filters.length === 1) return filters;
  const values = parts.filter((p) => p.kind === 'values');
  const [first] = values;
  if (first === undefined) return disjoint(parts.filter((p) => p.kind === 'range'));
  return [oneOf(first, [...new Set(values.flatMap((v) => v.values))])];
}

function oneOf({ column, equality, type }: ColumnInList, values: readonly string[]): Expr {
  const [only] = values;
  if (only !== undefined && values.length === 1)
    return operationNode(equality, column, Object.freeze({ kind: 'literal', value: only, type }));
  const array: Expr = { kind: 'literal', value: Object.freeze([...values]), type: arrayOf(type) };
  return equalsAny(equality, column, Object.freeze(array));
}

/** Returns the values that a filter equates a column with; null for any other kind of filter. */
function valuesIn(filter: Expr): ColumnInList | null {
  if (filter.kind === 'operation') {
    const { definition, left, right } = filter;
    if (definition.name !== '=' || left?.kind !== 'base' || right.kind !== 'literal') return null;
    const { type, value } = right;
    return isArray(type) || typeof value !== 'string' ? null : valuesOf(left, definition, type, [value]);
  }
  if (filter.kind !== 'quantified' || filter.quantifier !== 'any' || filter.definition.name !== '=')
    return null;
  const { arg, array, definition } = filter;
  if (arg.kind !== 'base' || array.kind !== 'literal' || !isArray(array.type)) return null;
  if (typeof array.value === 'string') return null;
  // NULL equals nothing, and a row whose filter is NULL is hidden.
  const values = array.value.filter((v) => v !== null);
  return valuesOf(arg, definition, elementOf(array.type), values);
}

/** Returns null for an enum column: an index on it can look up a single label by `=`, but not a list of labels. */
function valuesOf(
  column: BaseColumn,
  equality: OperatorDefinition,
  type: ScalarType,
  values: readonly string[],
): ColumnInList | null {
  if (column.stored !== undefined && storedType(column.stored)?.isEnum === true) return null;
  const key = `= ${type} ${fingerprint(column)} ${equality.left} ${equality.right}`;
  return { kind: 'values', key, column, equality, type, values };
}

/** Returns the range that a filter restricts a column to; null for other filters or unusable bounds. */
function rangeIn(filter: Expr): ColumnRange | null {
  const conditions = filter.kind === 'and' ? filter.args : [filter];
  let found: ColumnRange | null = null;
  for (const condition of conditions) {
    const bounded = boundIn(condition);
    if (bounded === null) return null;
    const { column, order, side, bound } = bounded;
    const key = `range ${order} ${fingerprint(column)}`;
    found ??= { kind: 'range', key, column, lower: null, upper: null };
    if (found.key !== key || found[side] !== null) return null;
    found = { ...found, [side]: bound };
  }
  return found;
}

interface ColumnBound {
  readonly column: BaseColumn;
  readonly order: ValueOrder;
  readonly side: 'lower' | 'upper';
  readonly bound: RangeBound;
}

const COMPARISONS: ReadonlyMap<string, { readonly side: ColumnBound['side']; readonly inclusive: boolean }> =
  new Map([
    ['>', { side: 'lower', inclusive: false }],
    ['>=', { side: 'lower', inclusive: true }],
    ['<', { side: 'upper', inclusive: false }],
    ['<=', { side: 'upper', inclusive: true }],
  ]);

function boundIn(condition: Expr): ColumnBound | null {
  if (condition.kind !== 'operation') return null;
  const { definition, left: column, right: literal } = condition;
  const comparison = COMPARISONS.get(definition.name);
  if (comparison === undefined || column?.kind !== 'base' || literal.kind !== 'literal') return null;
  const order = ORDERS.get(column.type);
  if (order === undefined || ORDERS.get(literal.type) !== order || column.stored !== undefined) return null;
  const value = comparable(literal, order);
  if (value === null) return null;
  return {
    column,
    order,
    side: comparison.side,
    bound: { condition, value, inclusive: comparison.inclusive },
  };
}

/** The Postgres sort orders that are reproduced here. */
type ValueOrder = 'number' | 'date' | 'timestamp' | 'timestamptz';

const ORDERS: ReadonlyMap<string, ValueOrder> = new Map([
  ['int2', 'number'],
  ['int4', 'number'],
  ['int8', 'number'],
  ['numeric', 'number'],
  ['date', 'date'],
  ['timestamp', 'timestamp'],
  ['timestamptz', 'timestamptz'],
] as const);

/**
 * A value in comparable form: numbers as integers scaled by 10^FRACTION_DIGITS, timestamps as texts of equal length.
 */
type Comparable = bigint | string;

const FRACTION_DIGITS = 30;
const NUMBER = /^([+-]?)(\d{1,100})(?:\.(\d{0,30}))?$/;
const OFFSET = /:\d{2}(?:\.\d+)?\s*(?:z|[+-]\d{2}(?::?\d{2})?)$/i;

/** Returns the comparable form of a literal; null for a text that Postgres may interpret differently. */
function comparable({ value }: Literal, order: ValueOrder): Comparable | null {
  if (typeof value !== 'string') return null;
  if (order === 'number') {
    const [, sign, whole, fraction = ''] = NUMBER.exec(value) ?? [];
    if (whole === undefined) return null;
    const units = BigInt(`${whole}${fraction.padEnd(FRACTION_DIGITS, '0')}`);
    return sign === '-' ? -units : units;
  }
  const instant = parseInstant(value);
  if (instant === null || OFFSET.test(value) !== (order === 'timestamptz')) return null;
  if (order === 'date') return instant.isDay ? instant.text : null;
  return instant.isDay ? `${instant.text} 00:00:00.000` : instant.text;
}

/** Merges ranges of one column into disjoint ranges, lowest first. */
function disjoint(ranges: readonly ColumnRange[]): readonly Expr[] {
  const merged: ColumnRange[] = [];
  for (const range of [...ranges].sort(byLower)) {
    const last = merged.at(-1);
    if (last === undefined || !touches(last, range)) merged.push(range);
    else merged[merged.length - 1] = { ...last, upper: higher(last.upper, range.upper) };
  }
  return merged.map(({ column, lower, upper }) => {
    const conditions = [lower, upper].flatMap((bound) => (bound === null ? [] : [bound.condition]));
    return conditions.length === 0 ? isNotNull(column) : allOf(conditions);
  });
}

function byLower({ lower: a }: ColumnRange, { lower: b }: ColumnRange): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? -1 : 1;
  if (a.value !== b.value) return a.value < b.value ? -1 : 1;
  return Number(b.inclusive) - Number(a.inclusive);
}

/** True if two ranges overlap or adjoin. The lower bound of the first must not exceed that of the second. */
function touches({ upper }: ColumnRange, { lower }: ColumnRange): boolean {
  if (upper === null || lower === null || lower.value < upper.value) return true;
  return lower.value === upper.value && (lower.inclusive || upper.inclusive);
}

function higher(a: RangeBound | null, b: RangeBound | null): RangeBound | null {
  if (a === null || b === null) return null;
  if (a.value !== b.value) return a.value < b.value ? b : a;
  return a.inclusive ? a : b;
}
