import type { GridCell, GridColumn, GridData } from '../../../parts/grid/grid-data.js';
import type { AnswerColumn, Reading } from './columns.js';
import type { Pair } from './compared.js';
import { changeOf, numberOf, shownFigure } from './figure.js';

/** One column of the table: what it is called, and its cell of a pair of rows. */
interface TableColumn extends GridColumn {
  readonly cellOf: (pair: Pair) => GridCell;
}

/** An answer as a table; where two periods are compared, each figure as it is, as it was, and its change. */
export function tableOf(reading: Reading, pairs: readonly Pair[] | null): GridData {
  const { time, categories, figures, rows } = reading;
  const groups = [...(time === null ? [] : [time.column]), ...categories];
  const columns = [
    ...groups.map(groupColumn),
    ...figures.flatMap((figure) => (pairs === null ? [nowColumn(figure)] : comparedColumns(figure))),
  ];
  const all = pairs ?? rows.map((row): Pair => ({ now: row, before: null }));
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

function groupColumn({ name, type, redacted }: AnswerColumn): TableColumn {
  return {
    name,
    type,
    masked: redacted,
    cellOf: ({ now, before }) => plainCell((now ?? before)?.[name]),
  };
}

function nowColumn(figure: AnswerColumn): TableColumn {
  const { name, type, redacted } = figure;
  return { name, type, masked: redacted, cellOf: ({ now }) => figureCell(now?.[name], figure) };
}

function comparedColumns(figure: AnswerColumn): readonly TableColumn[] {
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

function figureCell(value: unknown, { format }: AnswerColumn): GridCell {
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

/** A change as a share, with its sign. */
export function shownChange(change: number): string {
  return PERCENT.format(change);
}
