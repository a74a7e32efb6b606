import {
  dayAfter,
  GRAINS,
  type Grain,
  type Instant,
  isDayOrLonger,
  type PeriodSpan,
} from '../../catalog/grain.js';
import { assertNever } from '../../errors/errors.js';
import { inType } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import type { TypeName } from '../../types/types.js';
import type { BindContext } from '../context.js';
import { call, operation, structural } from './build.js';

const TIMES: ReadonlySet<TypeName> = new Set<TypeName>(['date', 'timestamp', 'timestamptz']);

export function isTime(type: TypeName): boolean {
  return TIMES.has(type);
}

export function inUtc(time: Expr, ctx: BindContext): Expr {
  return time.type === 'timestamptz'
    ? call('timezone', [structural('UTC'), time], ctx)
    : inType(time, 'timestamp');
}

/** Returns the start of the period of `time`: a date for grains of a day or longer, else a UTC timestamp. */
export function periodStart(time: Expr, grain: Grain, ctx: BindContext): Expr {
  if (time.type === 'date' && grain === 'day') return time;
  return shownPeriod(truncateTime(inUtc(time, ctx), grain, ctx), grain);
}

export function shownPeriod(begin: Expr, grain: Grain): Expr {
  return isDayOrLonger(grain) ? inType(begin, 'date') : begin;
}

export function truncateTime(timestamp: Expr, grain: Grain, ctx: BindContext): Expr {
  return call('date_trunc', [structural(grain), timestamp], ctx);
}

export function interval(count: number, grain: Grain, ctx: BindContext): Expr {
  const text = grain === 'quarter' ? `${3 * count} months` : `${count} ${grain}s`;
  return ctx.constant(text, 'interval');
}

/** Returns `time >= start`, compared in the column's own type so that indexes apply. */
export function notBefore(time: Expr, start: Instant, ctx: BindContext): Expr {
  return operation('>=', time, instantAs(time.type, start.text, start.isDay, ctx), ctx);
}

/** Returns `time <= end`, which includes the whole day if `end` is a day. */
export function notAfter(time: Expr, end: Instant, ctx: BindContext): Expr {
  if (!end.isDay) return operation('<=', time, instantAs(time.type, end.text, false, ctx), ctx);
  if (time.type === 'date') return operation('<=', time, instantAs('date', end.text, true, ctx), ctx);
  return operation('<', time, instantAs(time.type, dayAfter(end.text), true, ctx), ctx);
}

function instantAs(type: TypeName, text: string, isDay: boolean, ctx: BindContext): Expr {
  if (type === 'date') return isDay ? ctx.constant(text, 'date') : ctx.constant(text, 'timestamp');
  const whole = isDay ? `${text} 00:00:00` : text;
  return type === 'timestamptz' ? ctx.constant(`${whole}+00`, type) : ctx.constant(whole, type);
}

/** Returns a unit that divides all periods and spans exactly: at most a day, unless the span is unbounded. */
export function unitOf(span: PeriodSpan, grain: Grain): Grain {
  if (span.kind === 'unbounded') return grain;
  const other = span.kind === 'window' || span.kind === 'offset' ? span.unit : span.grain;
  const finest = GRAINS.indexOf(grain) < GRAINS.indexOf(other) ? grain : other;
  return isDayOrLonger(finest) ? 'day' : finest;
}

/** Returns the conditions under which a row at time `at` is in the span of the period that starts at `begin`. */
export function isInSpan(
  at: Expr,
  begin: Expr,
  span: PeriodSpan,
  grain: Grain,
  ctx: BindContext,
): readonly Expr[] {
  const { from, to } = bounds(begin, span, grain, ctx);
  return [operation('<', at, to, ctx), ...(from === null ? [] : [operation('>=', at, from, ctx)])];
}

/** Returns the bounds of the span: `from` is inclusive (null if unbounded), `to` is exclusive. */
function bounds(
  begin: Expr,
  span: PeriodSpan,
  grain: Grain,
  ctx: BindContext,
): { from: Expr | null; to: Expr } {
  const next = (time: Expr): Expr => operation('+', time, interval(1, grain, ctx), ctx);
  const to = next(begin);
  switch (span.kind) {
    case 'unbounded':
      return { from: null, to };
    case 'window':
      return { from: operation('-', to, interval(span.count, span.unit, ctx), ctx), to };
    case 'to_date': {
      // Truncates the last instant of the period: a week, for example, belongs to the month in which it ends.
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
