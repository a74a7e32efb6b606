import { isMoment, isNumber } from 'osl-compiler/types';
import type { ChartSeries, ChartSpec } from '../../parts/chart/option.js';

/** The columns for which to choose a chart, and their values. */
interface ChartInput {
  readonly columns: readonly { readonly name: string; readonly type: string }[];
  readonly rows: number;
  at(row: number, column: number): unknown;
}

/** Bars, series and points beyond these limits are omitted, with a note in the chart. */
const MOST_BARS = 40;
const MOST_SERIES = 8;
const MOST_POINTS = 20_000;

/**
 * Chooses a chart by the types of the columns: lines for a time and numbers, bars for a category and numbers, a scatter
 * plot for two numbers if there is no time or category. Null if no chart fits or there is nothing to draw.
 */
export function chartFor(input: ChartInput): ChartSpec | null {
  const { columns, rows } = input;
  const where = (fits: (type: string) => boolean): readonly number[] =>
    columns.flatMap(({ type }, i) => (fits(type) ? [i] : []));
  const times = where(isMoment);
  const figures = where(isNumber);
  const categories = where(
    (type) => !isNumber(type) && !isMoment(type) && !/\[\]$|^(?:jsonb|bytea)$/.test(type),
  );
  const [time, figure, category] = [times[0], figures[0], categories[0]];
  if (rows === 0 || figure === undefined) return null;
  if (time !== undefined && categories.length <= 1) return lines(input, time, figures, category ?? null);
  if (category !== undefined && categories.length === 1 && rows > 1) return bars(input, category, figures);
  const other = figures[1];
  if (other !== undefined && categories.length === 0 && rows > 1) return scatter(input, figure, other);
  return null;
}

function nameOf({ columns }: ChartInput, column: number): string {
  return columns[column]?.name ?? '';
}

function figureAt(input: ChartInput, row: number, column: number): number | null {
  const value = input.at(row, column);
  if (value === null || value === '') return null;
  const number = Number(value);
  return Number.isFinite(number) ? number : null;
}

/** Converts a date or time to milliseconds since 1970, in UTC if it has no zone; null for other values. */
export function timeAt(value: unknown): number | null {
  if (typeof value !== 'string') return null;
  const text = /^\d{4}-\d\d-\d\dT[\d:.]+$/.test(value) ? `${value}Z` : value;
  const time = Date.parse(text);
  return Number.isNaN(time) ? null : time;
}

function lines(
  input: ChartInput,
  time: number,
  figures: readonly number[],
  category: number | null,
): ChartSpec | null {
  const rows = Math.min(input.rows, MOST_POINTS);
  const series = new Map<string, [number, number | null][]>();
  const [figure = 0] = figures;
  const add = (name: string, at: number, value: number | null): void => {
    const points = series.get(name);
    if (points === undefined) series.set(name, [[at, value]]);
    else points.push([at, value]);
  };
  for (let row = 0; row < rows; row += 1) {
    const at = timeAt(input.at(row, time));
    if (at === null) continue;
    if (category !== null) add(String(input.at(row, category) ?? 'NULL'), at, figureAt(input, row, figure));
    else for (const one of figures) add(nameOf(input, one), at, figureAt(input, row, one));
  }
  const all = [...series].map(
    ([name, points]): ChartSeries => ({
      name,
      points: points.toSorted(([a], [b]) => a - b),
    }),
  );
  if (all.length === 0) return null;
  return {
    kind: 'line',
    x: { name: nameOf(input, time), scale: 'time' },
    y: { name: nameOf(input, figure) },
    series: all.slice(0, MOST_SERIES),
    note: noteOf(
      all.length > MOST_SERIES && `${MOST_SERIES} of ${all.length} series`,
      rows < input.rows && `the first ${MOST_POINTS.toLocaleString('en')} rows`,
    ),
  };
}

function bars(input: ChartInput, category: number, figures: readonly number[]): ChartSpec {
  const rows = Math.min(input.rows, MOST_BARS);
  const [first = 0] = figures;
  const largest = (figure: number): number =>
    Array.from({ length: rows }, (_, row) => Math.abs(figureAt(input, row, figure) ?? 0)).reduce(
      (most, value) => Math.max(most, value),
      0,
    );
  // Leaves out columns whose numbers differ too much in size: the shorter bars would be too short to see.
  const alike = figures.filter((figure) => isAlike(largest(figure), largest(first)));
  const shown = alike.slice(0, 4);
  const labels = labelsOf(input, category, rows);
  return {
    kind: 'bar',
    x: { name: nameOf(input, category), scale: 'category' },
    y: { name: nameOf(input, figures[0] ?? 0) },
    series: shown.map((figure) => ({
      name: nameOf(input, figure),
      points: labels.map((label, row) => [label, figureAt(input, row, figure)] as const),
    })),
    note: noteOf(
      rows < input.rows && `the first ${MOST_BARS} of ${input.rows.toLocaleString('en')} rows`,
      shown.length < figures.length && `${shown.map((figure) => nameOf(input, figure)).join(', ')} alone`,
    ),
  };
}

const ALIKE = 50;

function isAlike(a: number, b: number): boolean {
  return a === b || (a > 0 && b > 0 && a / b < ALIKE && b / a < ALIKE);
}

/** Returns the labels of the bars. Rows with equal labels are numbered to distinguish them. */
function labelsOf(input: ChartInput, category: number, rows: number): readonly string[] {
  const seen = new Map<string, number>();
  return Array.from({ length: rows }, (_, row) => {
    const text = String(input.at(row, category) ?? 'NULL');
    const times = (seen.get(text) ?? 0) + 1;
    seen.set(text, times);
    return times === 1 ? text : `${text} (${times})`;
  });
}

function scatter(input: ChartInput, x: number, y: number): ChartSpec {
  const rows = Math.min(input.rows, MOST_POINTS);
  const points: [number, number | null][] = [];
  for (let row = 0; row < rows; row += 1) {
    const at = figureAt(input, row, x);
    if (at !== null) points.push([at, figureAt(input, row, y)]);
  }
  return {
    kind: 'scatter',
    x: { name: nameOf(input, x), scale: 'value' },
    y: { name: nameOf(input, y) },
    series: [{ name: nameOf(input, y), points }],
    note: noteOf(rows < input.rows && `the first ${MOST_POINTS.toLocaleString('en')} rows`),
  };
}

function noteOf(...parts: readonly (string | false)[]): string | null {
  const said = parts.filter((part) => part !== false);
  return said.length === 0 ? null : `Shown: ${said.join(', ')}.`;
}
