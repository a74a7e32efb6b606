import type { GridCell, GridColumn, GridData } from '../../../parts/grid/grid-data.js';
import type { MetricsQuestion } from '../choice/body.js';
import { type Days, lastDayOf, periodOf, placeIn } from '../choice/period.js';
import {
  changeOf,
  type MetricsColumn,
  type MetricsReading,
  type MetricsRow,
  numberOf,
  shownChange,
  shownFigure,
} from './columns.js';

/** A column of the table, with a function that returns its value for a pair of rows. */
interface PairColumn extends GridColumn {
  readonly valueOf: (pair: RowAndEarlier) => unknown;
  readonly show: (value: unknown) => GridCell;
  /** True if the values are from the other period of a comparison. */
  readonly isBefore: boolean;
  readonly figure: string | null;
}

/** A row of an answer. `isBefore` is true if it belongs to the other period of a comparison. */
export interface AnswerPoint {
  readonly row: MetricsRow;
  readonly isBefore: boolean;
}

interface MetricsTable extends GridData {
  /** Value of a cell as the server returned it; in a column of changes, the relative change as a fraction. */
  valueAt(row: number, column: number): unknown;
  /** Row of the answer that a cell shows; null if the cell's period has no row. */
  pointAt(row: number, column: number): AnswerPoint | null;
  /** Metric that a column shows; null if the column shows a group. */
  figureOf(column: number): string | null;
}

/** Formats an answer as a table; in a comparison, each figure has its current and earlier value and the change. */
export function tableOf(reading: MetricsReading, pairs: readonly RowAndEarlier[] | null): MetricsTable {
  const { time, categories, figures, rows } = reading;
  const groups = [...(time === null ? [] : [time.column]), ...categories];
  const columns = [
    ...groups.map(groupColumn),
    ...figures.flatMap((figure) => (pairs === null ? [nowColumn(figure)] : comparedColumns(figure))),
  ];
  const all = pairs ?? rows.map((row): RowAndEarlier => ({ now: row, before: null }));
  const valueAt = (row: number, column: number): unknown => {
    const pair = all[row];
    return pair === undefined ? undefined : columns[column]?.valueOf(pair);
  };
  return {
    columns,
    rows: all.length,
    cell: (row, column) => columns[column]?.show(valueAt(row, column)) ?? EMPTY,
    valueAt,
    figureOf: (column) => columns[column]?.figure ?? null,
    pointAt: (row, column) => {
      const isBefore = columns[column]?.isBefore === true || all[row]?.now === null;
      const of = isBefore ? all[row]?.before : all[row]?.now;
      return of == null ? null : { row: of, isBefore };
    },
  };
}

/** Formats a table as CSV (RFC 4180), with values as the server returned them; NULL is an empty field. */
export function csvOf(table: MetricsTable): string {
  const lines = [table.columns.map(({ name }) => csvField(name))];
  for (let row = 0; row < table.rows; row += 1)
    lines.push(table.columns.map((_, column) => csvField(table.valueAt(row, column))));
  return lines.map((fields) => `${fields.join(',')}\r\n`).join('');
}

/** Formats a CSV field. Text that a spreadsheet would take for a formula gets a leading apostrophe. */
function csvField(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
  const plain = /^[=+\-@\t\r]/.test(text) && numberOf(value) === null ? `'${text}` : text;
  return /[",\r\n]/.test(plain) || plain !== plain.trim() ? `"${plain.replaceAll('"', '""')}"` : plain;
}

const EMPTY: GridCell = { kind: 'empty', text: '' };

function groupColumn({ name, type, redacted }: MetricsColumn): PairColumn {
  return {
    name,
    type,
    masked: redacted,
    isBefore: false,
    figure: null,
    valueOf: ({ now, before }) => (now ?? before)?.[name],
    show: plainCell,
  };
}

function nowColumn(figure: MetricsColumn): PairColumn {
  const { name, type, redacted } = figure;
  return {
    name,
    type,
    masked: redacted,
    isBefore: false,
    figure: name,
    valueOf: ({ now }) => now?.[name],
    show: (value) => figureCell(value, figure),
  };
}

function comparedColumns(figure: MetricsColumn): readonly PairColumn[] {
  const { name } = figure;
  return [
    nowColumn(figure),
    {
      ...nowColumn(figure),
      name: `${name} before`,
      isBefore: true,
      valueOf: ({ before }) => before?.[name],
    },
    {
      name: `${name} change`,
      type: 'numeric',
      masked: false,
      isBefore: false,
      figure: name,
      valueOf: ({ now, before }) => changeOf(now?.[name], before?.[name]),
      show: changeCell,
    },
  ];
}

function plainCell(value: unknown): GridCell {
  if (value === null || value === undefined) return { kind: 'null', text: 'none' };
  return { kind: 'text', text: typeof value === 'object' ? JSON.stringify(value) : String(value) };
}

function figureCell(value: unknown, { format }: MetricsColumn): GridCell {
  if (value === null || value === undefined) return { kind: 'null', text: '—' };
  return { kind: numberOf(value) === null ? 'text' : 'number', text: shownFigure(value, format) };
}

function changeCell(value: unknown): GridCell {
  return typeof value === 'number'
    ? { kind: 'number', text: shownChange(value) }
    : { kind: 'null', text: '—' };
}

/** Formats the request body as indented JSON. */
export function jsonOf(body: MetricsQuestion): string {
  return JSON.stringify(body, null, 2);
}

/** Returns a command line for the same query. It contains the name of a shell variable in place of the token. */
export function curlOf(body: MetricsQuestion, origin: string): string {
  const quoted = `'${jsonOf(body).replaceAll("'", `'\\''`)}'`;
  return [
    `curl -sS '${origin}/osl/query' \\`,
    `  -H "Authorization: Bearer $OSL_TOKEN" \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quoted}`,
  ].join('\n');
}

/** A row and its counterpart in the other period; either is null if its period has no such row. */
export interface RowAndEarlier {
  readonly now: MetricsRow | null;
  readonly before: MetricsRow | null;
}

/** Results of the same query for two periods. */
export interface PeriodComparison {
  readonly pairs: readonly RowAndEarlier[];
  /** Range of the other period. */
  readonly before: Days;
}

/**
 * Pairs the rows of two answers that have the same categories and are in corresponding periods, that is, periods with
 * the same index in their ranges. Rows without a counterpart are kept.
 *
 * @param isWhole false if `now` may lack rows; rows of `before` alone are then left out, as their counterpart may be one
 * of those
 */
export function compareAnswers(
  now: MetricsReading,
  days: Days,
  before: MetricsReading,
  earlier: Days,
  isWhole: boolean,
): PeriodComparison {
  const rest = new Map(before.rows.map((row) => [placeOf(row, before, earlier), row]));
  const pairs = now.rows.map((row): RowAndEarlier => {
    const place = placeOf(row, now, days);
    const other = rest.get(place) ?? null;
    rest.delete(place);
    return { now: row, before: other };
  });
  const others = isWhole ? [...rest.values()] : [];
  return { pairs: [...pairs, ...others.map((row) => ({ now: null, before: row }))], before: earlier };
}

function placeOf(row: MetricsRow, { time, categories }: MetricsReading, { start }: Days): string {
  const words = categories.map((c) => row[c.name] ?? null);
  if (time === null) return JSON.stringify(words);
  const period = row[time.column.name];
  return JSON.stringify([...words, typeof period === 'string' ? placeIn(period, start, time.grain) : null]);
}

/** Returns the range that an answer covers, from its first to its last period; null if it has no times. */
export function daysOf({ time, rows }: MetricsReading): Days | null {
  if (time === null) return null;
  const periods = rows.map((row) => row[time.column.name]).filter((p) => typeof p === 'string');
  periods.sort();
  const [first, last] = [periods[0], periods.at(-1)];
  if (first === undefined || last === undefined || !/^\d{4}-/.test(first) || !/^\d{4}-/.test(last))
    return null;
  return { start: periodOf(first, time.grain), end: lastDayOf(last.slice(0, 10), time.grain) };
}
