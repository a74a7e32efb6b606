import { isNumber } from 'osl-compiler/types';
import type { ChartSeries, ChartSpec } from '../../../parts/chart/option.js';
import { timeOf } from '../choice/period.js';
import { type MetricsColumn, type MetricsReading, type MetricsRow, numberOf, wordOf } from './columns.js';
import type { AnswerPoint, RowAndEarlier } from './table.js';

/** Maximum number of lines that can be told apart, and of bars that can be read. */
export const MOST_LINES = 8;
export const MOST_BARS = 30;

/** A figure shown on its own, and its earlier value if two periods are compared. */
export interface Tile {
  readonly figure: MetricsColumn;
  readonly now: unknown;
  readonly before: { readonly value: unknown } | null;
}

/** A chart, with the row of the answer that each point represents. */
interface PlottedChart extends ChartSpec {
  /** Indexed by series and point; null if the point has no row in its period. */
  readonly points: readonly (readonly (AnswerPoint | null)[])[];
  /** Column of the answer that each series draws. */
  readonly figures: readonly string[];
}

/** Form in which an answer is drawn: tiles, charts, or nothing, with the reason. */
export type AnswerDrawing =
  | { readonly kind: 'tiles'; readonly tiles: readonly Tile[] }
  | { readonly kind: 'charts'; readonly charts: readonly PlottedChart[] }
  | { readonly kind: 'none'; readonly why: string };

/**
 * Chooses how to draw an answer: lines over time, bars for categories, tiles if there are no groups. Answers with three
 * or more groups are shown only as a table.
 *
 * @param pairs the same rows, each with its counterpart in the other period; null if there is no comparison
 */
export function drawingOf(reading: MetricsReading, pairs: readonly RowAndEarlier[] | null): AnswerDrawing {
  const { time, categories, figures, rows } = reading;
  const drawn = figures.filter((f) => isNumber(f.type));
  if (rows.length === 0) return { kind: 'none', why: 'There are no rows.' };
  if (drawn.length === 0)
    return { kind: 'none', why: 'None of these metrics is a number: the table has them.' };
  if (time === null && categories.length === 0) return { kind: 'tiles', tiles: tilesOf(drawn, rows, pairs) };
  if (categories.length > (time === null ? 2 : 1))
    return { kind: 'none', why: 'With so many ways to group by, the table says more than a chart.' };
  const [first, second] = categories;
  const axis = time?.column ?? first;
  const split = time === null ? second : first;
  if (axis === undefined) return { kind: 'none', why: 'There is nothing to draw it over.' };
  const along: PlotAxis = { column: axis, isTime: time !== null };
  if (split !== undefined)
    return { kind: 'charts', charts: drawn.map((figure) => splitChart(along, split, figure, rows)) };
  return { kind: 'charts', charts: byUnit(drawn, rows).map((group) => chartOf(along, group, rows, pairs)) };
}

interface PlotAxis {
  readonly column: MetricsColumn;
  readonly isTime: boolean;
}

function tilesOf(
  figures: readonly MetricsColumn[],
  rows: readonly MetricsRow[],
  pairs: readonly RowAndEarlier[] | null,
): readonly Tile[] {
  const before = pairs?.[0]?.before ?? null;
  return figures.map((figure) => ({
    figure,
    now: rows[0]?.[figure.name],
    before: pairs === null ? null : { value: before?.[figure.name] ?? null },
  }));
}

/** Maximum ratio of two figures on one axis; above it, the smaller one would be unreadable. */
const MOST_APART = 20;

/** Groups figures that can share an axis, because they have the same format and a similar size. */
function byUnit(
  figures: readonly MetricsColumn[],
  rows: readonly MetricsRow[],
): readonly (readonly MetricsColumn[])[] {
  const groups: { readonly unit: string; readonly most: number; readonly of: MetricsColumn[] }[] = [];
  for (const figure of figures) {
    const { kind = '', currency = '', unit: of = '' } = figure.format ?? {};
    const unit = JSON.stringify([kind, currency, of]);
    const most = rows.reduce((max, row) => Math.max(max, Math.abs(numberOf(row[figure.name]) ?? 0)), 0);
    const known = groups.find((g) => g.unit === unit && areAlike(g.most, most));
    if (known === undefined) groups.push({ unit, most, of: [figure] });
    else known.of.push(figure);
  }
  return groups.map((g) => g.of);
}

function areAlike(a: number, b: number): boolean {
  return Math.max(a, b) <= MOST_APART * Math.min(a, b);
}

function frameOf(
  { column, isTime }: PlotAxis,
  names: readonly string[],
): Pick<ChartSpec, 'kind' | 'x' | 'y'> {
  return {
    kind: isTime ? 'line' : 'bar',
    x: { name: column.name, scale: isTime ? 'time' : 'category' },
    y: { name: names.join(', ') },
  };
}

function pointOf(
  { column, isTime }: PlotAxis,
  row: MetricsRow,
  value: unknown,
): readonly [number | string, number | null] {
  const at = row[column.name];
  return [isTime ? timeOf(String(at)) : wordOf(at), numberOf(value)];
}

/** Returns the rows to draw: on a time axis the rows that have a time, otherwise the first `MOST_BARS` rows. */
function placed(axis: PlotAxis, rows: readonly MetricsRow[]): readonly MetricsRow[] {
  return axis.isTime
    ? rows.filter((row) => Number.isFinite(timeOf(String(row[axis.column.name]))))
    : rows.slice(0, MOST_BARS);
}

function chartOf(
  axis: PlotAxis,
  figures: readonly MetricsColumn[],
  rows: readonly MetricsRow[],
  pairs: readonly RowAndEarlier[] | null,
): PlottedChart {
  const shown = placed(axis, rows);
  const now = figures.map(
    ({ name }): ChartSeries => ({ name, points: shown.map((row) => pointOf(axis, row, row[name])) }),
  );
  const earlier = new Map(
    (pairs ?? []).flatMap((pair) => (pair.now === null ? [] : [[pair.now, pair.before]])),
  );
  const before = figures.map(({ name }): ChartSeries => {
    return {
      name: `${name}, before`,
      points: shown.map((row) => pointOf(axis, row, earlier.get(row)?.[name])),
    };
  });
  return {
    ...frameOf(
      axis,
      figures.map((f) => f.name),
    ),
    series: pairs === null ? now : [...now, ...before],
    figures: [...figures, ...(pairs === null ? [] : figures)].map((f) => f.name),
    points: [
      ...now.map(() => shown.map((row) => ({ row, isBefore: false }))),
      ...(pairs === null ? [] : before.map(() => shown.map((row) => earlierPoint(earlier.get(row))))),
    ],
    note: noteOf([[rows.length, shown.length, axis.column.name]]),
  };
}

function earlierPoint(row: MetricsRow | null | undefined): AnswerPoint | null {
  return row == null ? null : { row, isBefore: true };
}

function splitChart(
  axis: PlotAxis,
  split: MetricsColumn,
  figure: MetricsColumn,
  rows: readonly MetricsRow[],
): PlottedChart {
  const series = new Map<string, MetricsRow[]>();
  const places = new Set<string>();
  for (const row of axis.isTime ? placed(axis, rows) : rows) {
    const place = wordOf(row[axis.column.name]);
    if (!axis.isTime && !places.has(place) && places.size === MOST_BARS) continue;
    places.add(place);
    const word = wordOf(row[split.name]);
    const known = series.get(word);
    if (known === undefined) series.set(word, [row]);
    else known.push(row);
  }
  const total = (of: readonly MetricsRow[]): number =>
    of.reduce((sum, row) => sum + Math.abs(numberOf(row[figure.name]) ?? 0), 0);
  const ranked = [...series].sort(([, a], [, b]) => total(b) - total(a));
  const all = new Set(rows.map((row) => wordOf(row[axis.column.name])));
  const drawn = ranked.slice(0, MOST_LINES);
  return {
    ...frameOf(axis, [figure.name]),
    series: drawn.map(([name, own]) => ({
      name,
      points: own.map((row) => pointOf(axis, row, row[figure.name])),
    })),
    figures: drawn.map(() => figure.name),
    points: drawn.map(([, own]) => own.map((row) => ({ row, isBefore: false }))),
    note: noteOf([
      [all.size, places.size, axis.column.name],
      [ranked.length, MOST_LINES, split.name],
    ]),
  };
}

/** Returns a note on the values that are not drawn; null if all are drawn. */
function noteOf(left: readonly (readonly [all: number, shown: number, name: string])[]): string | null {
  const notes = left.flatMap(([all, shown, name]) =>
    all <= shown
      ? []
      : [`${shown} of ${all.toLocaleString('en')} values of ${name} are drawn; the table has them all.`],
  );
  return notes.length === 0 ? null : notes.join(' ');
}
