import type { LiteralSlots, LiteralTest } from '../../bind/index.js';
import type { Expr, Query } from '../../plan/plan.js';
import { isMoment } from '../../types/types.js';

/**
 * True if an expression that reads no row provably never fails, such as `now() - interval '7 days'`. Anything else
 * might fail, and the error would reveal that some row was reached.
 */
export function cannotFail(expr: Expr, literals: LiteralSlots): boolean {
  return (
    isNearMomentExpr(expr, literals, { nodes: MAX_NODES, steps: MAX_STEPS }) ||
    isShortText(expr, literals, { nodes: MAX_NODES, steps: 0 }) ||
    isSmallNumber(expr, literals, { nodes: MAX_NODES, steps: MAX_STEPS })
  );
}

/** True for short literals and for such texts concatenated, trimmed or case-folded. Long texts may exhaust memory. */
function isShortText(expr: Expr, literals: LiteralSlots, budget: FoldBudget): boolean {
  if (budget.nodes-- <= 0) return false;
  if (expr.kind === 'parameter')
    return expr.type === 'text' && literals.literalIn(expr.slot)?.holds(isShort) === true;
  const parts = textsIn(expr);
  return parts.length > 0 && parts.every((e) => e !== null && isShortText(e, literals, budget));
}

/** Returns the operands of `||` or of a harmless text function; empty for any other expression. */
function textsIn(expr: Expr): readonly (Expr | null)[] {
  if (expr.kind === 'call' && CASES.has(expr.definition.name)) return expr.args;
  return expr.kind === 'operation' && expr.definition.name === '||' ? [expr.left, expr.right] : [];
}

const CASES: ReadonlySet<string> = new Set(['lower', 'upper', 'btrim', 'ltrim', 'rtrim']);
const isShort = (text: string): boolean => text.length <= 1_000;

/** True for small literals, also widened, rounded, or combined a few times by `+`, `-` or (except in int4) `*`. */
function isSmallNumber(expr: Expr, literals: LiteralSlots, budget: FoldBudget): boolean {
  if (budget.nodes-- <= 0 || !NUMBERS.has(expr.type)) return false;
  const isSmall = (e: Expr): boolean => isSmallNumber(e, literals, budget);
  switch (expr.kind) {
    case 'parameter':
      return literals.literalIn(expr.slot)?.holds(isFewDigits) === true;
    case 'cast':
      return WIDENED.has(`${expr.arg.type} ${expr.type}`) && expr.modifiers.length === 0 && isSmall(expr.arg);
    case 'call': {
      const [arg, ...more] = expr.args;
      return ROUNDED.has(expr.definition.name) && arg !== undefined && more.length === 0 && isSmall(arg);
    }
    case 'operation':
      return (
        (ADDED.has(expr.definition.name) || (expr.definition.name === '*' && expr.type !== 'int4')) &&
        budget.steps-- > 0 &&
        expr.left !== null &&
        isSmall(expr.left) &&
        isSmall(expr.right)
      );
    default:
      return false;
  }
}

const NUMBERS: ReadonlySet<string> = new Set(['int4', 'int8', 'numeric', 'float8']);
const WIDENED: ReadonlySet<string> = new Set([
  'int4 int8',
  'int4 numeric',
  'int4 float8',
  'int8 numeric',
  'int8 float8',
  'numeric float8',
]);
/** Functions whose result exceeds the argument's absolute value by at most one. */
export const ROUNDED: ReadonlySet<string> = new Set([
  'abs',
  'sign',
  'ceil',
  'ceiling',
  'floor',
  'round',
  'trunc',
]);
const ADDED: ReadonlySet<string> = new Set(['+', '-']);
/** True for numbers below two million with up to five decimals. The product of three fits into an int8. */
export const isFewDigits = (text: string): boolean =>
  /^-?\d{1,7}(\.\d{1,5})?$/.test(text) && Math.abs(Number(text)) < 2_000_000;

/** `nodes`: how many more nodes to inspect. `steps`: how many more times to shift a timestamp or combine numbers. */
interface FoldBudget {
  nodes: number;
  steps: number;
}

const MAX_NODES = 16;
/** A timestamp near the present stays in range after a few shifts, but might not after many. */
const MAX_STEPS = 2;

function isNearMomentExpr(expr: Expr, literals: LiteralSlots, budget: FoldBudget): boolean {
  if (budget.nodes-- <= 0) return false;
  const isSound = (e: Expr): boolean => isNearMomentExpr(e, literals, budget);
  switch (expr.kind) {
    case 'parameter':
      return literals.literalIn(expr.slot)?.holds(isBounded) === true;
    case 'structural':
      return true;
    case 'cast':
      // A text may be an invalid timestamp, even if it looks like a timestamp.
      return (
        isMoment(expr.type) && isMoment(expr.arg.type) && expr.modifiers.length === 0 && isSound(expr.arg)
      );
    case 'call':
      if (expr.definition.name === 'make_date') return isDay(expr.args, literals);
      return CALLS.has(expr.definition.name) && expr.args.length <= 2 && expr.args.every(isSound);
    case 'operation':
      return (
        (expr.definition.name === '+' || expr.definition.name === '-') &&
        isMoment(expr.type) &&
        budget.steps-- > 0 &&
        expr.left !== null &&
        isSound(expr.left) &&
        isSound(expr.right)
      );
    default:
      return false;
  }
}

/** True if year, month and day are literals within ranges that are valid in any combination. */
function isDay(args: readonly Expr[], literals: LiteralSlots): boolean {
  return (
    args.length === PARTS_OF_A_DAY.length &&
    PARTS_OF_A_DAY.every((isPart, i) => {
      const arg = args[i];
      return arg?.kind === 'parameter' && literals.literalIn(arg.slot)?.holds(isPart) === true;
    })
  );
}

const PARTS_OF_A_DAY: readonly LiteralTest[] = [
  (year) => /^[1-9]\d{0,3}$/.test(year),
  (month) => /^(?:[1-9]|1[0-2])$/.test(month),
  (day) => /^(?:[1-9]|1\d|2[0-8])$/.test(day),
];

/** True if a LIMIT, OFFSET or length is absent or a literal from 0 to 999,999,999. A negative value would fail. */
export function isCount(expr: Expr | null, literals: LiteralSlots): boolean {
  return (
    expr === null || (expr.kind === 'parameter' && literals.literalIn(expr.slot)?.holds(isFewRows) === true)
  );
}

/** True if a query yields at most one row because of a literal LIMIT. */
export function isOneRow(query: Query, literals: LiteralSlots): boolean {
  if (query.kind === 'values' || query.withTies || query.limit?.kind !== 'parameter') return false;
  return literals.literalIn(query.limit.slot)?.holds(isNoneOrOne) === true;
}

const isFewRows: LiteralTest = (text) => /^(?:0|[1-9]\d{0,8})$/.test(text);
const isNoneOrOne: LiteralTest = (text) => text === '0' || text === '1';

const CALLS: ReadonlySet<string> = new Set(['now', 'date_trunc']);

/** Small counts, dates of a four-digit year, and intervals of one unit below two thousand years. */
const BOUNDED: readonly RegExp[] = [
  /^-?\d{1,5}$/,
  /^\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?$/,
  /^[+-]?\d{1,5} (second|minute|hour|day|week)s?$/i,
  /^[+-]?\d{1,4} months?$/i,
  /^[+-]?\d{1,3} years?$/i,
];

function isBounded(text: string): boolean {
  return BOUNDED.some((form) => form.test(text));
}
