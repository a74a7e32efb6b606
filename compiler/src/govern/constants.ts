import type { LiteralSlots } from '../bind/index.js';
import type { Expr } from '../plan.js';

/**
 * Whether a value that no row takes part in can be seen never to fail: the moments that reports compare with,
 * `now() - interval '7 days'`. Anything else might, and whether it does would tell that some row was reached.
 */
export function cannotFail(expr: Expr, literals: LiteralSlots): boolean {
  switch (expr.kind) {
    case 'parameter':
      return literals.literalIn(expr.slot)?.holds(isBounded) === true;
    case 'structural':
      return true;
    case 'cast':
      return MOMENTS.has(expr.type) && expr.modifiers.length === 0 && cannotFail(expr.arg, literals);
    case 'call':
      return (
        CALLS.has(expr.definition.name) &&
        expr.args.length <= 2 &&
        expr.args.every((a) => cannotFail(a, literals))
      );
    case 'operation':
      return (
        (expr.definition.name === '+' || expr.definition.name === '-') &&
        MOMENTS.has(expr.type) &&
        (expr.left === null || cannotFail(expr.left, literals)) &&
        cannotFail(expr.right, literals)
      );
    default:
      return false;
  }
}

const MOMENTS: ReadonlySet<string> = new Set(['date', 'timestamp', 'timestamptz']);
const CALLS: ReadonlySet<string> = new Set(['now', 'date_trunc']);

/** Small counts, days of a four-digit year, and intervals of one small part. */
const BOUNDED: readonly RegExp[] = [
  /^-?\d{1,5}$/,
  /^\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?$/,
  /^[+-]?\d{1,5} (second|minute|hour|day|week|month|year)s?$/i,
];

function isBounded(text: string): boolean {
  return BOUNDED.some((form) => form.test(text));
}
