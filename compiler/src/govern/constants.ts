import type { Expr, Slot } from '../plan.js';

/**
 * Whether a value that no row takes part in can be seen never to fail: the moments that reports compare with,
 * `now() - interval '7 days'`. Anything else might, and whether it does would tell that some row was reached.
 */
export function cannotFail(expr: Expr, slots: readonly Slot[]): boolean {
  switch (expr.kind) {
    case 'parameter':
      return BOUNDED.some((form) => form.test(literalOf(slots[expr.slot])));
    case 'structural':
      return true;
    case 'cast':
      return MOMENTS.has(expr.type) && expr.modifiers.length === 0 && cannotFail(expr.arg, slots);
    case 'call':
      return (
        CALLS.has(expr.definition.name) &&
        expr.args.length <= 2 &&
        expr.args.every((a) => cannotFail(a, slots))
      );
    case 'operation':
      return (
        (expr.definition.name === '+' || expr.definition.name === '-') &&
        MOMENTS.has(expr.type) &&
        (expr.left === null || cannotFail(expr.left, slots)) &&
        cannotFail(expr.right, slots)
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

function literalOf(slot: Slot | undefined): string {
  return slot?.kind === 'literal' && typeof slot.value === 'string' ? slot.value : '';
}
