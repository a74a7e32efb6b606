import { isMoment, isNumber } from 'osl-compiler/types';
import type { GridSort } from '../grid/grid-data.js';
import { type JsonValue, momentOf, textOf } from './row-store.js';

/** Column to sort by. */
interface SortColumn {
  readonly rows: number;
  /** Type of the column in the model; values of an unknown type are sorted as text. */
  readonly type: string;
  at(row: number): JsonValue;
}

/** Number of rows or comparisons between two yields. */
const STEP = 4_096;

/**
 * Computes the row numbers in the sort order of a column. Numbers are compared exactly, whatever their number of
 * digits; times, intervals and money by value; false before true; everything else as text by code point. NULL is last
 * in both directions; rows with equal values keep their order. Yields often, for use with `inTurns`.
 */
export function* sortRows(
  column: SortColumn,
  direction: GridSort['direction'],
): Generator<void, Uint32Array> {
  const keys = yield* keysOf(column);
  const sign = direction === 'ascending' ? 1 : -1;
  const compare = (a: number, b: number): number =>
    sign * ((keys.ranks[a] ?? 0) - (keys.ranks[b] ?? 0) || keys.tie(a, b)) || a - b;
  const sorted = yield* mergeSort(keys.present, compare);
  const order = new Uint32Array(column.rows);
  order.set(sorted);
  order.set(keys.absent, sorted.length);
  return order;
}

interface SortKeys {
  /** Row numbers of the rows that have a value; `absent` contains the row numbers of the rows with NULL. */
  readonly present: Uint32Array;
  readonly absent: Uint32Array;
  /** For each row, a number that is compared before `tie` is called; never NaN. */
  readonly ranks: Float64Array;
  /** Compares two rows with the same rank. */
  tie(a: number, b: number): number;
}

function* keysOf(column: SortColumn): Generator<void, SortKeys> {
  const { rows, type, at } = column;
  const rankOf = RANKS.find(([has]) => has(type))?.[1] ?? null;
  const texts = rankOf === null ? yield* textsOf(column) : null;
  const [present, absent] = [new Uint32Array(rows), new Uint32Array(rows)];
  const ranks = new Float64Array(rows);
  let [some, none] = [0, 0];
  for (let row = 0; row < rows; row += 1) {
    if (row % STEP === STEP - 1) yield;
    const value = at(row);
    if (value === null) absent[none++] = row;
    else {
      present[some++] = row;
      ranks[row] = texts?.rankOf(row) ?? rankOf?.(value) ?? 0;
    }
  }
  return {
    present: present.subarray(0, some),
    absent: absent.subarray(0, none),
    ranks,
    tie: texts?.compare ?? tieOf(column),
  };
}

function tieOf({ type, at }: SortColumn): SortKeys['tie'] {
  const textAt = (row: number): string => textOf(at(row));
  if (isNumber(type)) return (a, b) => compareNumerals(textAt(a), textAt(b));
  const microsAt = (row: number): number => momentOf(textAt(row))?.micros ?? 0;
  return isMoment(type) ? (a, b) => microsAt(a) - microsAt(b) : () => 0;
}

interface TextKeys {
  rankOf(row: number): number;
  compare(a: number, b: number): number;
}

/** Ranks texts by their first characters, since comparing numbers is much faster than comparing texts. */
function* textsOf({ rows, at }: SortColumn): Generator<void, TextKeys> {
  const texts: string[] = [];
  let isNarrow = true;
  for (let row = 0; row < rows; row += 1) {
    if (row % STEP === STEP - 1) yield;
    const text = textOf(at(row));
    isNarrow &&= !WIDE.test(text);
    texts.push(text);
  }
  const compare = isNarrow ? compareUnits : comparePoints;
  const [units, base] = isNarrow ? [6, 0x101] : [3, 0x10001];
  return {
    rankOf: (row) => prefixOf(texts[row] ?? '', units, base),
    compare: (a, b) => compare(texts[a] ?? '', texts[b] ?? ''),
  };
}

/** Maps the first UTF-16 units of a text to a number below 2^53 that sorts in the order of code points. */
function prefixOf(text: string, units: number, base: number): number {
  let prefix = 0;
  for (let i = 0; i < units; i += 1)
    prefix = prefix * base + (i < text.length ? rotated(text.charCodeAt(i)) + 1 : 0);
  return prefix;
}

type Rank = (value: NonNullable<JsonValue>) => number;

/** Conversions to the numbers that are compared first, by type. Values of all other types are compared as text. */
const RANKS: readonly (readonly [(type: string) => boolean, Rank])[] = [
  [isNumber, rankOfNumber],
  [isMoment, (value) => momentOf(String(value))?.seconds ?? infinityOf(String(value))],
  [(type) => type === 'bool', Number],
  [(type) => type === 'interval', (value) => secondsOf(String(value))],
  [(type) => type === 'money', (value) => centsOf(String(value))],
];

function rankOfNumber(value: NonNullable<JsonValue>): number {
  const number = Number(value);
  return Number.isNaN(number) ? Number.POSITIVE_INFINITY : number;
}

function infinityOf(text: string): number {
  return text.startsWith('-') ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
}

const PARTS = /([+-]?\d+) (year|mon|day)|([+-]?)(\d+):(\d\d):(\d\d(?:\.\d+)?)/g;
const PART_SECONDS = { year: 360 * 86_400, mon: 30 * 86_400, day: 86_400 };

/** Returns the seconds of an interval such as `1 mon -3 days 04:05:06`; a month is 30 days as in Postgres. */
function secondsOf(text: string): number {
  if (/infinity/.test(text)) return infinityOf(text);
  let seconds = 0;
  for (const [, count, unit, sign, hours, minutes, rest] of text.matchAll(PARTS)) {
    if (unit === 'year' || unit === 'mon' || unit === 'day') seconds += Number(count) * PART_SECONDS[unit];
    else seconds += (sign === '-' ? -1 : 1) * (Number(hours) * 3_600 + Number(minutes) * 60 + Number(rest));
  }
  return seconds;
}

/** Returns an amount of money in its smallest unit, whatever its separators and currency. */
function centsOf(text: string): number {
  return (/[-(]/.test(text) ? -1 : 1) * Number(text.replace(/\D/g, ''));
}

const SPECIAL: ReadonlyMap<string, number> = new Map([
  ['-Infinity', -1],
  ['Infinity', 1],
  ['NaN', 2],
]);

/** Compares two numbers in decimal notation digit by digit; as in Postgres, NaN is the largest. */
function compareNumerals(a: string, b: string): number {
  if (a === b) return 0;
  const classes = (SPECIAL.get(a) ?? 0) - (SPECIAL.get(b) ?? 0);
  if (classes !== 0 || SPECIAL.has(a)) return classes;
  const [x, y] = [digitsOf(a), digitsOf(b)];
  if (x.sign !== y.sign) return x.sign - y.sign;
  return (
    x.sign *
    (x.whole.length - y.whole.length ||
      compareUnits(x.whole, y.whole) ||
      compareUnits(x.fraction, y.fraction))
  );
}

function digitsOf(text: string): {
  readonly sign: number;
  readonly whole: string;
  readonly fraction: string;
} {
  const [whole = '', fraction = ''] = text.replace(/^[+-]?0*/, '').split('.');
  const sign = text.startsWith('-') ? -1 : 1;
  return { sign, whole, fraction: fraction.replace(/0+$/, '') };
}

const WIDE = /[^\0-\xff]/;

function compareUnits(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Compares texts by code point, which differs from UTF-16 order for characters above U+FFFF. */
function comparePoints(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x !== y) return rotated(x) - rotated(y);
  }
  return a.length - b.length;
}

/** Moves surrogates above all other units, because they encode the largest code points. */
function rotated(unit: number): number {
  return unit < 0xd800 ? unit : unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** Sorts runs of `STEP` rows, then merges them. `compare` must not return 0 for two different rows. */
function* mergeSort(
  rows: Uint32Array,
  compare: (a: number, b: number) => number,
): Generator<void, Uint32Array> {
  let from = rows;
  let to: Uint32Array = new Uint32Array(rows.length);
  for (let at = 0; at < rows.length; at += STEP) {
    from.subarray(at, at + STEP).sort(compare);
    yield;
  }
  for (let width = STEP; width < rows.length; width *= 2) {
    for (let at = 0; at < rows.length; at += 2 * width) {
      const middle = Math.min(at + width, rows.length);
      yield* merge(from, to, at, middle, Math.min(middle + width, rows.length), compare);
    }
    [from, to] = [to, from];
  }
  return from;
}

function* merge(
  from: Uint32Array,
  to: Uint32Array,
  start: number,
  middle: number,
  end: number,
  compare: (a: number, b: number) => number,
): Generator<void> {
  let left = start;
  let right = middle;
  for (let at = start; at < end; at += 1) {
    if (at % STEP === STEP - 1) yield;
    const a = from[left] ?? 0;
    const b = from[right] ?? 0;
    const takesLeft = right >= end || (left < middle && compare(a, b) < 0);
    to[at] = takesLeft ? a : b;
    if (takesLeft) left += 1;
    else right += 1;
  }
}
