import type { MetricFormat } from 'osl-compiler';
import { formatFigure, padTo, widthOf } from '../table.js';
import type { DotCanvas } from './canvas.js';
import { type Glyphs, glyphsOf, type Style } from './canvas.js';

interface Tick {
  readonly at: number;
  readonly text: string;
}

export interface Axis {
  readonly from: number;
  readonly to: number;
  readonly ticks: readonly Tick[];
}

/** Returns a numeric axis that covers `values`, with about `count` round ticks. */
export function numberAxis(values: readonly number[], format: MetricFormat | null, count: number): Axis {
  const [least, most] = spread(values);
  const step = roundStep((most - least) / Math.max(1, count - 1));
  const first = Math.floor(least / step);
  const last = Math.ceil(most / step);
  const ticks = Array.from({ length: last - first + 1 }, (_, i) => {
    const at = (first + i) * step;
    return { at, text: tickText(at, step, format) };
  });
  return { from: first * step, to: last * step, ticks };
}

/** Returns the minimum and maximum, without the argument limit of `Math.min`; Infinity and -Infinity for no values. */
export function rangeOf(values: Iterable<number>): readonly [least: number, most: number] {
  let [least, most] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return [least, most];
}

/** Returns the minimum and maximum. If they are equal, adds some room on both sides. */
function spread(values: readonly number[]): readonly [number, number] {
  const [least, most] = rangeOf(values);
  if (least < most) return halved(least, most);
  const room = Math.abs(most) / 2 || 1;
  return halved(most - room, most + room);
}

/** Clamps both values to a range in which their difference is finite. */
function halved(least: number, most: number): readonly [number, number] {
  const bound = Number.MAX_VALUE / 8;
  return [Math.max(least, -bound), Math.min(most, bound)];
}

/** Rounds up to 1, 2 or 5 times a power of ten. */
function roundStep(step: number): number {
  const power = 10 ** Math.floor(Math.log10(Math.max(step, Number.MIN_VALUE * 1e16)));
  const factor = [1, 2, 5, 10].find((f) => f * power >= step * 0.999_999) ?? 10;
  return factor * power;
}

/** Tick label in the metric's format, with enough digits to tell ticks apart. */
function tickText(at: number, step: number, format: MetricFormat | null): string {
  const digits = Math.min(15, Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
  const plain = at.toFixed(digits);
  // Beyond 1e21 `toFixed` uses exponents too; for tiny steps it would print mostly zeros.
  if (plain.includes('e') || (step < 1e-9 && step > 0)) return at.toPrecision(4);
  const text = /^-0(\.0*)?$/.test(plain) ? plain.slice(1) : plain;
  if (format === null) return text;
  return formatFigure(text, {
    ...format,
    decimals: Math.max(0, format.kind === 'percent' ? digits - 2 : digits),
  });
}

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Possible steps of a time axis, with the part of the date shown in labels (RFC 3339, UTC). */
const STEPS: readonly {
  readonly unit: 'ms' | 'month';
  readonly length: number;
  readonly text: DatePrecision;
}[] = [
  ...[1, 5, 15, 30].map((n) => ({ unit: 'ms' as const, length: n * SECOND, text: 'second' as const })),
  ...[1, 5, 15, 30].map((n) => ({ unit: 'ms' as const, length: n * MINUTE, text: 'minute' as const })),
  ...[1, 3, 6, 12].map((n) => ({ unit: 'ms' as const, length: n * HOUR, text: 'minute' as const })),
  ...[1, 2, 7, 14].map((n) => ({ unit: 'ms' as const, length: n * DAY, text: 'day' as const })),
  ...[1, 2, 3, 6].map((n) => ({ unit: 'month' as const, length: n, text: 'month' as const })),
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000].map((n) => ({
    unit: 'month' as const,
    length: 12 * n,
    text: 'year' as const,
  })),
];

type DatePrecision = 'second' | 'minute' | 'day' | 'month' | 'year';

/** Axis from the earliest to the latest of `times`, with as many labels as fit into `room` columns. */
export function timeAxis(times: readonly number[], room: number): Axis {
  const [from, to] = rangeOf(times);
  if (from === to)
    return { from: from - DAY / 2, to: to + DAY / 2, ticks: [{ at: from, text: moment(from) }] };
  const oneDay = dayOf(from) === dayOf(to);
  for (const { unit, length, text } of STEPS) {
    const width = textOf(from, text, oneDay).length + 2;
    const most = Math.max(2, Math.floor(room / width));
    const rough = unit === 'ms' ? length : length * 30.4 * DAY;
    if ((to - from) / rough > most) continue;
    const ticks = momentsIn(from, to, unit, length).map((at) => ({ at, text: textOf(at, text, oneDay) }));
    if (ticks.length > 0) return { from, to, ticks };
  }
  return { from, to, ticks: [from, to].map((at) => ({ at, text: dayOf(at) })) };
}

function momentsIn(from: number, to: number, unit: 'ms' | 'month', length: number): readonly number[] {
  const moments: number[] = [];
  if (unit === 'ms') {
    for (let at = Math.ceil(from / length) * length; at <= to; at += length) moments.push(at);
    return moments;
  }
  const first = new Date(from);
  const month = first.getUTCFullYear() * 12 + first.getUTCMonth();
  for (let n = Math.floor(month / length) * length; ; n += length) {
    const at = monthStart(n);
    if (at > to) return moments;
    if (at >= from) moments.push(at);
  }
}

function monthStart(month: number): number {
  const date = new Date(0);
  date.setUTCFullYear(Math.floor(month / 12), month % 12, 1);
  return date.getTime();
}

const LENGTHS = { day: 10, month: 7, year: 4 } as const;

function textOf(at: number, written: DatePrecision, oneDay: boolean): string {
  const text = new Date(at).toISOString();
  switch (written) {
    case 'second':
      return text.slice(11, 19);
    case 'minute':
      return oneDay ? text.slice(11, 16) : `${text.slice(5, 10)} ${text.slice(11, 16)}`;
    default:
      return text.slice(0, LENGTHS[written]);
  }
}

function dayOf(at: number): string {
  return new Date(at).toISOString().slice(0, 10);
}

function moment(at: number): string {
  const text = new Date(at).toISOString();
  return text.slice(11, 19) === '00:00:00' ? text.slice(0, 10) : text.slice(0, 16).replace('T', ' ');
}

export const PLOT_LINES = 12;

/** Returns the number of columns left for the canvas next to the labels of the vertical axis. */
export function canvasColumns(up: Axis, style: Style): number {
  return Math.max(10, style.width - gutterOf(up) - 2);
}

export function dotOf({ from, to }: Axis, value: number, length: number): number {
  const share = (value / 2 - from / 2) / (to / 2 - from / 2 || 1);
  return Math.round(share * (length - 1));
}

export function framed(canvas: DotCanvas, up: Axis, along: Axis, style: Style): readonly string[] {
  const glyphs = glyphsOf(style);
  const gutter = gutterOf(up);
  const drawn = canvas.lines();
  const figures = new Map<number, string>();
  for (const { at, text } of up.ticks) figures.set(drawn.length - 1 - dotOf(up, at, drawn.length), text);
  const lines = drawn.map((line, y) => {
    const figure = figures.get(y);
    const edge = figure === undefined ? glyphs.vertical : glyphs.tickLeft;
    return `${padTo(figure ?? '', gutter, 'right')} ${edge}${line}`.trimEnd();
  });
  return [...lines, ...below(along, canvasColumns(up, style), gutter, glyphs)];
}

function gutterOf({ ticks }: Axis): number {
  return Math.max(0, ...ticks.map(({ text }) => widthOf(text)));
}

function below(along: Axis, columns: number, gutter: number, glyphs: Glyphs): readonly string[] {
  const rule = Array.from({ length: columns }, () => glyphs.horizontal);
  let texts = '';
  for (const { column, start, text } of thinned(along, columns)) {
    rule[column] = glyphs.tickDown;
    texts = texts.padEnd(start) + text;
  }
  const edge = ' '.repeat(gutter + 1);
  return [`${edge}${glyphs.corner}${rule.join('')}`, `${edge} ${texts}`.trimEnd()];
}

interface PlacedTick {
  readonly column: number;
  /** Column of the plot at which the label's text starts. */
  readonly start: number;
  readonly text: string;
}

/** Returns all ticks, or every n-th one if more labels would overlap. */
function thinned(along: Axis, columns: number): readonly PlacedTick[] {
  const all = along.ticks.map(({ at, text }): PlacedTick => {
    const column = Math.max(0, Math.min(columns - 1, dotOf(along, at, columns)));
    const start = Math.max(0, Math.min(columns - text.length, column - Math.floor(text.length / 2)));
    return { column, start, text };
  });
  for (let every = 1; every < all.length; every++) {
    const some = all.filter((_, i) => i % every === 0);
    const fits = some.every(
      ({ start, text }, i) => start + text.length < (some[i + 1]?.start ?? Number.POSITIVE_INFINITY),
    );
    if (fits) return some;
  }
  return all.slice(0, 1);
}
