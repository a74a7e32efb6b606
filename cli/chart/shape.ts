import { isMoment, isNumber, type MetricFormat } from 'osl-compiler';
import { cellOf } from '../answer.js';
import type { AnswerBody } from '../client.js';
import { NULL_TEXT } from '../table.js';

const CHART_KINDS = ['bars', 'line', 'scatter'] as const;
export type ChartKind = (typeof CHART_KINDS)[number];

type ChartColumn = AnswerBody['columns'][number];

export interface MeasureColumn {
  readonly name: string;
  readonly format: MetricFormat | null;
  /**
   * True if some values are hidden from the caller. Hidden values appear as NULL, but not every NULL is a hidden
   * value.
   */
  readonly masked: boolean;
  /** Values as numbers; null if a value is not a finite number. */
  readonly values: readonly (number | null)[];
  /** Values with full precision, as sent by the server. */
  readonly texts: readonly (string | null)[];
}

export interface Series {
  readonly name: string;
  readonly points: readonly { readonly at: number; readonly value: number | null }[];
}

export type Chart =
  | { readonly kind: 'bars'; readonly labels: readonly string[]; readonly measures: readonly MeasureColumn[] }
  | {
      readonly kind: 'line';
      readonly axis: { readonly name: string; readonly isTime: boolean };
      readonly panels: readonly { readonly measure: MeasureColumn; readonly series: readonly Series[] }[];
      /** Number of rows that have no position on the axis. */
      readonly astray: number;
    }
  | { readonly kind: 'scatter'; readonly x: MeasureColumn; readonly y: MeasureColumn }
  | { readonly kind: 'none'; readonly why: string };

/**
 * Chooses a chart for an answer: lines for times and numbers, bars for words and numbers, a scatter plot for numbers
 * only. If `wanted` names another kind, the columns are used for that as far as possible.
 */
export function chartOf(answer: AnswerBody, wanted: ChartKind | null): Chart {
  if (answer.rows.length === 0) return none('there are no rows');
  const parts = partsOf(answer);
  if (parts.measures.length === 0) return none('no column holds numbers');
  switch (wanted ?? kindFor(parts, answer.rows.length)) {
    case 'line':
      return lineOf(answer, parts);
    case 'bars':
      return barsOf(answer, parts);
    case 'scatter':
      return scatterOf(answer, parts);
    case 'single':
      return none('a single figure');
    case 'list':
      return none('one column of numbers, and nothing to draw it along');
  }
}

interface Parts {
  readonly times: readonly ChartColumn[];
  readonly measures: readonly ChartColumn[];
  readonly words: readonly ChartColumn[];
}

function partsOf({ columns }: AnswerBody): Parts {
  return {
    times: columns.filter(({ type }) => isMoment(type)),
    measures: columns.filter(({ type }) => isNumber(type)),
    words: columns.filter(({ type }) => !isMoment(type) && !isNumber(type)),
  };
}

function kindFor({ times, measures, words }: Parts, rows: number): ChartKind | 'single' | 'list' {
  if (times.length > 0) return 'line';
  if (words.length > 0) return 'bars';
  if (rows === 1) return 'single';
  return measures.length > 1 ? 'scatter' : 'list';
}

function lineOf(answer: AnswerBody, { times, measures, words }: Parts): Chart {
  const [time] = times;
  const [first] = measures;
  const axis = time ?? first;
  if (axis === undefined) return none('no column holds times or numbers');
  const drawn = measures.filter((column) => column !== axis);
  if (drawn.length === 0) return none(`there is no column of numbers beside ${axis.name}`);
  const isTime = axis === time;
  const at = answer.rows.map((row) => (isTime ? timeOf(row[axis.name]) : numberOf(row[axis.name])));
  // Further time columns become part of the label, to distinguish rows with the same time.
  const others = [...times.filter((column) => column !== axis), ...words];
  const names = answer.rows.map((row) => labelOf(row, others));
  return {
    kind: 'line',
    axis: { name: axis.name, isTime },
    astray: at.filter((place) => place === null).length,
    panels: drawn.map((column) => {
      const measure = measureOf(answer, column);
      return { measure, series: seriesOf(measure, at, names) };
    }),
  };
}

function seriesOf(
  { name, values }: MeasureColumn,
  at: readonly (number | null)[],
  names: readonly string[],
): readonly Series[] {
  const points = new Map<string, { at: number; value: number | null }[]>();
  for (const [i, place] of at.entries()) {
    if (place === null) continue;
    const key = names[i] ?? '';
    const own = points.get(key) ?? [];
    own.push({ at: place, value: values[i] ?? null });
    points.set(key, own);
  }
  return [...points].map(([key, own]) => ({
    name: key === '' ? name : key,
    points: own.sort((a, b) => a.at - b.at),
  }));
}

function barsOf(answer: AnswerBody, { times, measures, words }: Parts): Chart {
  const [first] = answer.columns;
  const named = answer.columns.filter((column) => times.includes(column) || words.includes(column));
  // If all columns are numbers, the first one provides the labels.
  const labels = named.length === 0 && first !== undefined ? [first] : named;
  const drawn = measures.filter((column) => !labels.includes(column));
  if (drawn.length === 0) return none(`there is no column of numbers beside ${first?.name ?? ''}`);
  return {
    kind: 'bars',
    labels: answer.rows.map((row) => labelOf(row, labels)),
    measures: drawn.map((column) => measureOf(answer, column)),
  };
}

function scatterOf(answer: AnswerBody, { measures }: Parts): Chart {
  const [x, y] = measures;
  if (x === undefined || y === undefined) return none('a scatter needs two columns of numbers');
  return { kind: 'scatter', x: measureOf(answer, x), y: measureOf(answer, y) };
}

function measureOf({ rows }: AnswerBody, { name, format, redacted }: ChartColumn): MeasureColumn {
  return {
    name,
    format: format ?? null,
    masked: redacted,
    values: rows.map((row) => numberOf(row[name])),
    texts: rows.map((row) => cellOf(row[name])),
  };
}

function labelOf(row: AnswerBody['rows'][number], columns: readonly ChartColumn[]): string {
  return columns.map(({ name }) => cellOf(row[name]) ?? NULL_TEXT).join(' / ');
}

/** Nearest double; null for NULL, NaN, infinities, and text that is not a number, such as a masked value. */
function numberOf(value: unknown): number | null {
  if (typeof value !== 'number' && typeof value !== 'string') return null;
  const number = value === '' ? Number.NaN : Number(value);
  return Number.isFinite(number) ? number : null;
}

const MOMENT = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d(?:\.\d+)?)Z?)?$/;

/** Milliseconds since 1970, UTC; null for NULL, infinities, and years that RFC 3339 does not cover. */
function timeOf(value: unknown): number | null {
  const [, day, clock = '00:00:00'] = MOMENT.exec(`${value}`) ?? [];
  if (day === undefined) return null;
  const time = Date.parse(`${day}T${clock}Z`);
  return Number.isFinite(time) ? time : null;
}

function none(why: string): Chart {
  return { kind: 'none', why };
}
