import { type Days, lastDayOf, periodOf, placeIn } from '../choice/period.js';
import type { Reading, Row } from './columns.js';

/** A row, and the one of the other period that belongs to it. Null on a side that has none. */
export interface Pair {
  readonly now: Row | null;
  readonly before: Row | null;
}

/** Two answers of one question, over two periods. */
export interface Compared {
  readonly pairs: readonly Pair[];
  /** The other period. */
  readonly before: Days;
}

/**
 * Puts the rows of two answers together: those of the same categories whose periods have the same place in their
 * ranges. Nothing is worked out here that an answer does not have.
 */
export function comparedOf(now: Reading, days: Days, before: Reading, earlier: Days): Compared {
  const rest = new Map(before.rows.map((row) => [placeOf(row, before, earlier), row]));
  const pairs = now.rows.map((row): Pair => {
    const place = placeOf(row, now, days);
    const other = rest.get(place) ?? null;
    rest.delete(place);
    return { now: row, before: other };
  });
  return {
    pairs: [...pairs, ...[...rest.values()].map((row) => ({ now: null, before: row }))],
    before: earlier,
  };
}

function placeOf(row: Row, { time, categories }: Reading, { start }: Days): string {
  const words = categories.map((c) => row[c.name] ?? null);
  if (time === null) return JSON.stringify(words);
  const period = row[time.column.name];
  return JSON.stringify([...words, typeof period === 'string' ? placeIn(period, start, time.grain) : null]);
}

/** The range that an answer covers, from its first period to its last; null where it has no times. */
export function daysOf({ time, rows }: Reading): Days | null {
  if (time === null) return null;
  const periods = rows.map((row) => row[time.column.name]).filter((p) => typeof p === 'string');
  periods.sort();
  const [first, last] = [periods[0], periods.at(-1)];
  if (first === undefined || last === undefined || !/^\d{4}-/.test(first) || !/^\d{4}-/.test(last))
    return null;
  return { start: periodOf(first, time.grain), end: lastDayOf(last.slice(0, 10), time.grain) };
}
