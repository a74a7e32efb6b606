import { GRAINS, type Grain, isOfDays, type Span } from '../../catalog/grain.js';
import { assertNever } from '../../errors/errors.js';
import type { Expr } from '../../plan/plan.js';
import type { BindContext } from '../context.js';
import { operation } from './build.js';
import { interval, truncateTime } from './time.js';

/** The longest unit such that no span and no period begins or ends inside of one. */
export function unitOf(span: Span, grain: Grain): Grain {
  if (span.kind === 'unbounded') return grain;
  const other = span.kind === 'window' || span.kind === 'offset' ? span.unit : span.grain;
  const finest = GRAINS.indexOf(grain) < GRAINS.indexOf(other) ? grain : other;
  return isOfDays(finest) ? 'day' : finest;
}

/** What must hold of the time `at` of a row for the period of `grain` that begins at `begin` to take it. */
export function takesRow(at: Expr, begin: Expr, span: Span, grain: Grain, ctx: BindContext): readonly Expr[] {
  const { from, to } = bounds(begin, span, grain, ctx);
  return [operation('<', at, to, ctx), ...(from === null ? [] : [operation('>=', at, from, ctx)])];
}

/** The rows of a period: from `from` on, or all of them, and before `to`. */
function bounds(begin: Expr, span: Span, grain: Grain, ctx: BindContext): { from: Expr | null; to: Expr } {
  const next = (time: Expr): Expr => operation('+', time, interval(1, grain, ctx), ctx);
  const to = next(begin);
  switch (span.kind) {
    case 'unbounded':
      return { from: null, to };
    case 'window':
      return { from: operation('-', to, interval(span.count, span.unit, ctx), ctx), to };
    case 'to_date': {
      // The last moment of the period decides which month, say, a week is of.
      const last = operation('-', to, ctx.constant('1 microsecond', 'interval'), ctx);
      return { from: truncateTime(last, span.grain, ctx), to };
    }
    case 'offset': {
      const from = operation('-', begin, interval(span.count, span.unit, ctx), ctx);
      return { from, to: next(from) };
    }
    case 'offset_to_grain': {
      const from = truncateTime(begin, span.grain, ctx);
      return { from, to: next(from) };
    }
    default:
      return assertNever(span);
  }
}
