import type { LiteralSlots } from '../bind/index.js';
import type { Expr } from '../plan.js';

/**
 * Whether a value that no row takes part in can be seen never to fail: the moments that reports compare with,
 * `now() - interval '7 days'`. Anything else might, and whether it does would tell that some row was reached.
 */
export function cannotFail(expr: Expr, literals: LiteralSlots): boolean {
  return (
    isOfOurTime(expr, literals, { nodes: MOST_NODES, steps: MOST_STEPS }) ||
    isShortText(expr, literals, { nodes: MOST_NODES, steps: 0 }) ||
    isSmallNumber(expr, literals, { nodes: MOST_NODES, steps: MOST_STEPS })
  );
}

/** A text of the question in the other case, trimmed or joined to another. Very long ones may need too much room. */
function isShortText(expr: Expr, literals: LiteralSlots, budget: Budget): boolean {
  if (budget.nodes-- <= 0) return false;
  if (expr.kind === 'parameter')
    return expr.type === 'text' && literals.literalIn(expr.slot)?.holds(isShort) === true;
  const parts = textsIn(expr);
  return parts.length > 0 && parts.every((e) => e !== null && isShortText(e, literals, budget));
}

/** What the text is made of; nothing where nobody knows. */
function textsIn(expr: Expr): readonly (Expr | null)[] {
  if (expr.kind === 'call' && CASES.has(expr.definition.name)) return expr.args;
  return expr.kind === 'operation' && expr.definition.name === '||' ? [expr.left, expr.right] : [];
}

const CASES: ReadonlySet<string> = new Set(['lower', 'upper', 'btrim', 'ltrim', 'rtrim']);
const isShort = (text: string): boolean => text.length <= 1_000;

/** A few small numbers added, subtracted or, with room for the digits, multiplied. */
function isSmallNumber(expr: Expr, literals: LiteralSlots, budget: Budget): boolean {
  if (budget.nodes-- <= 0 || !NUMBERS.has(expr.type)) return false;
  const isSmall = (e: Expr): boolean => isSmallNumber(e, literals, budget);
  switch (expr.kind) {
    case 'parameter':
      return literals.literalIn(expr.slot)?.holds(isFewDigits) === true;
    case 'cast':
      return WIDENED.has(`${expr.arg.type} ${expr.type}`) && expr.modifiers.length === 0 && isSmall(expr.arg);
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
const ADDED: ReadonlySet<string> = new Set(['+', '-']);
const isFewDigits = (text: string): boolean => /^-?\d{1,5}(\.\d{1,5})?$/.test(text);

/** What is left of the size that is looked at, and of the steps that a moment may be moved by. */
interface Budget {
  nodes: number;
  steps: number;
}

const MOST_NODES = 16;
/** A few steps from a moment of our time do not leave time; many would. */
const MOST_STEPS = 2;

function isOfOurTime(expr: Expr, literals: LiteralSlots, budget: Budget): boolean {
  if (budget.nodes-- <= 0) return false;
  const isSound = (e: Expr): boolean => isOfOurTime(e, literals, budget);
  switch (expr.kind) {
    case 'parameter':
      return literals.literalIn(expr.slot)?.holds(isBounded) === true;
    case 'structural':
      return true;
    case 'cast':
      // A text may be no moment, however it looks.
      return (
        MOMENTS.has(expr.type) &&
        MOMENTS.has(expr.arg.type) &&
        expr.modifiers.length === 0 &&
        isSound(expr.arg)
      );
    case 'call':
      return CALLS.has(expr.definition.name) && expr.args.length <= 2 && expr.args.every(isSound);
    case 'operation':
      return (
        (expr.definition.name === '+' || expr.definition.name === '-') &&
        MOMENTS.has(expr.type) &&
        budget.steps-- > 0 &&
        expr.left !== null &&
        isSound(expr.left) &&
        isSound(expr.right)
      );
    default:
      return false;
  }
}

const MOMENTS: ReadonlySet<string> = new Set(['date', 'timestamp', 'timestamptz']);
const CALLS: ReadonlySet<string> = new Set(['now', 'date_trunc']);

/** Small counts, days of a four-digit year, and intervals of one part that is less than two thousand years. */
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
