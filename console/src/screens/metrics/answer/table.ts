import type { GridCell, GridColumn, GridData } from '../../../parts/grid/grid-data.js';
import type { MetricsQuestion } from '../choice/body.js';
import { type Days, lastDayOf, periodOf, placeIn } from '../choice/period.js';
import type { MetricsColumn, MetricsReading, MetricsRow } from './columns.js';
import { changeOf, numberOf, shownFigure } from './figure.js';

/** A column of the table, with a function that returns its cell for a pair of rows. */
interface PairColumn extends GridColumn {
  readonly cellOf: (pair: RowAndEarlier) => GridCell;
}

/** Formats an answer as a table; in a comparison, each figure has its current and earlier value and the change. */
export function tableOf(reading: MetricsReading, pairs: readonly RowAndEarlier[] | null): GridData {
  const { time, categories, figures, rows } = reading;
  const groups = [...(time === null ? [] : [time.column]), ...categories];
  const columns = [
    ...groups.map(groupColumn),
    ...figures.flatMap((figure) => (pairs === null ? [nowColumn(figure)] : comparedColumns(figure))),
  ];
  const all = pairs ?? rows.map((row): RowAndEarlier => ({ now: row, before: null }));
  return {
    columns,
    rows: all.length,
    cell: (row, column) => {
      const pair = all[row];
      return pair === undefined ? EMPTY : (columns[column]?.cellOf(pair) ?? EMPTY);
    },
  };
}

const EMPTY: GridCell = { kind: 'empty', text: '' };

function groupColumn({ name, type, redacted }: MetricsColumn): PairColumn {
  return {
    name,
    type,
    masked: redacted,
    cellOf: ({ now, before }) => plainCell((now ?? before)?.[name]),
  };
}

function nowColumn(figure: MetricsColumn): PairColumn {
  const { name, type, redacted } = figure;
  return { name, type, masked: redacted, cellOf: ({ now }) => figureCell(now?.[name], figure) };
}

function comparedColumns(figure: MetricsColumn): readonly PairColumn[] {
  const { name, type, redacted } = figure;
  return [
    nowColumn(figure),
    {
      name: `${name} before`,
      type,
      masked: redacted,
      cellOf: ({ before }) => figureCell(before?.[name], figure),
    },
    {
      name: `${name} change`,
      type: 'numeric',
      masked: false,
      cellOf: ({ now, before }) => changeCell(changeOf(now?.[name], before?.[name])),
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

function changeCell(change: number | null): GridCell {
  return change === null ? { kind: 'null', text: '—' } : { kind: 'number', text: shownChange(change) };
}

const PERCENT = new Intl.NumberFormat('en', {
  style: 'percent',
  maximumFractionDigits: 1,
  signDisplay: 'exceptZero',
});

export function shownChange(change: number): string {
  return PERCENT.format(change);
}

/** Request body as formatted JSON. */
export function jsonOf(body: MetricsQuestion): string {
  return JSON.stringify(body, null, 2);
}

/** Command line for the same query. It refers to the token through a shell variable and does not contain it. */
export function curlOf(body: MetricsQuestion, origin: string): string {
  const quoted = `'${jsonOf(body).replaceAll("'", `'\\''`)}'`;
  return [
    `curl -sS '${origin}/osl/query' \\`,
    `  -H "Authorization: Bearer $OSL_TOKEN" \\`,
    `  -H 'Content-Type: application/json' \\`,
    `  -d ${quoted}`,
  ].join('\n');
}

/** A row and its counterpart in the other period; null if one of them is missing. */
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
 * the same index in their ranges. Shows no values other than those of the answers.
 */
export function compareAnswers(
  now: MetricsReading,
  days: Days,
  before: MetricsReading,
  earlier: Days,
): PeriodComparison {
  const rest = new Map(before.rows.map((row) => [placeOf(row, before, earlier), row]));
  const pairs = now.rows.map((row): RowAndEarlier => {
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

function placeOf(row: MetricsRow, { time, categories }: MetricsReading, { start }: Days): string {
  const words = categories.map((c) => row[c.name] ?? null);
  if (time === null) return JSON.stringify(words);
  const period = row[time.column.name];
  return JSON.stringify([...words, typeof period === 'string' ? placeIn(period, start, time.grain) : null]);
}

/** Range that an answer covers, from its first to its last period; null if it has no times. */
export function daysOf({ time, rows }: MetricsReading): Days | null {
  if (time === null) return null;
  const periods = rows.map((row) => row[time.column.name]).filter((p) => typeof p === 'string');
  periods.sort();
  const [first, last] = [periods[0], periods.at(-1)];
  if (first === undefined || last === undefined || !/^\d{4}-/.test(first) || !/^\d{4}-/.test(last))
    return null;
  return { start: periodOf(first, time.grain), end: lastDayOf(last.slice(0, 10), time.grain) };
}
