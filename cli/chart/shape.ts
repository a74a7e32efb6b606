import { isMoment, isNumber, type MetricFormat } from 'osl-compiler';
import { cellOf } from '../answer.js';
import type { AnswerBody } from '../client.js';
import { NULL_TEXT } from '../table.js';

const CHART_KINDS = ['bars', 'line', 'scatter'] as const;
export type ChartKind = (typeof CHART_KINDS)[number];

type ChartColumn = AnswerBody['columns'][number];

/** A column of numbers, a value a row. */
export interface MeasureColumn {
  readonly name: string;
  readonly format: MetricFormat | null;
  /** True if the caller may not see some of its values: those are NULL, and so may others be. */
  readonly masked: boolean;
  /** Null where there is no finite number. */
  readonly values: readonly (number | null)[];
  /** As the server wrote them, every digit. */
  readonly texts: readonly (string | null)[];
}

/** Values of one measure along an axis, in the order of `at`. */
export interface Series {
  readonly name: string;
  readonly points: readonly { readonly at: number; readonly value: number | null }[];
}

/** What an answer is drawn as. */
export type Chart =
  | { readonly kind: 'bars'; readonly labels: readonly string[]; readonly measures: readonly MeasureColumn[] }
  | {
      readonly kind: 'line';
      readonly axis: { readonly name: string; readonly isTime: boolean };
      readonly panels: readonly { readonly measure: MeasureColumn; readonly series: readonly Series[] }[];
      /** Rows that have no place on the axis. */
      readonly astray: number;
    }
  | { readonly kind: 'scatter'; readonly x: MeasureColumn; readonly y: MeasureColumn }
  | { readonly kind: 'none'; readonly why: string };

/**
 * The chart that the shape of an answer asks for: a time and numbers make a line, words and numbers bars, two numbers a
 * scatter. Where `wanted` names another, columns are taken for what it needs as far as they can be.
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
  if (drawn.length === 0) return none(`there is nothing to draw along ${axis.name}`);
  const isTime = axis === time;
  const at = answer.rows.map((row) => (isTime ? timeOf(row[axis.name]) : numberOf(row[axis.name])));
  // A second time is a word like any other: it tells rows of one moment apart.
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
  // Where every column holds numbers, the first one says what the others are of.
  const labels = named.length === 0 && first !== undefined ? [first] : named;
  const drawn = measures.filter((column) => !labels.includes(column));
  if (drawn.length === 0) return none(`there is nothing to draw along ${first?.name ?? ''}`);
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

/** The double next to it; null for NULL, NaN, infinities, and what is masked by a word. */
function numberOf(value: unknown): number | null {
  if (typeof value !== 'number' && typeof value !== 'string') return null;
  const number = value === '' ? Number.NaN : Number(value);
  return Number.isFinite(number) ? number : null;
}

const MOMENT = /^(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d(?:\.\d+)?)Z?)?$/;

/** Milliseconds of UTC; null for NULL, infinities, and years that RFC 3339 does not write. */
function timeOf(value: unknown): number | null {
  const [, day, clock = '00:00:00'] = MOMENT.exec(`${value}`) ?? [];
  if (day === undefined) return null;
  const time = Date.parse(`${day}T${clock}Z`);
  return Number.isFinite(time) ? time : null;
}

function none(why: string): Chart {
  return { kind: 'none', why };
}
