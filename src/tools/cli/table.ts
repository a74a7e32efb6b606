import { visible } from './output.js';
import { padTo, widthOf } from './width.js';

export interface TableColumn {
  readonly name: string;
  readonly align: 'left' | 'right';
}

/** Columns of texts. */
export function textColumns(names: readonly string[]): readonly TableColumn[] {
  return names.map((name) => ({ name, align: 'left' }));
}

/** A value as text; null is NULL. */
export type Cell = string | null;

/** How NULL is shown; a text of that spelling looks the same, as in psql with `\pset null`. */
export const NULL_TEXT = 'NULL';

/**
 * Rows as psql aligns them. Where a line would be wider than `maxWidth` columns, each row becomes a record of
 * its own, one line a column. Control characters are shown as escapes.
 */
export function formatTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly Cell[])[],
  maxWidth = Number.POSITIVE_INFINITY,
): string {
  if (columns.length === 0) return rows.length === 0 ? '' : '--';
  const names = columns.map((c) => visible(c.name));
  const cells = rows.map((row) => columns.map((_, i) => shown(row[i])));
  const widths = names.map((name, i) => widest([name, ...cells.map((row) => row[i] ?? '')]));
  const line = widths.reduce((sum, width) => sum + width + 3, -1);
  if (line > maxWidth && rows.length > 0) return records(names, cells);
  const head = names.map((name, i) => center(name, widths[i] ?? 0)).join(' | ');
  const rule = widths.map((width) => '-'.repeat(width + 2)).join('+');
  const body = cells.map((row) =>
    row.map((cell, i) => padTo(cell, widths[i] ?? 0, columns[i]?.align ?? 'left')).join(' | '),
  );
  return [` ${head}`, rule, ...body.map((text) => ` ${text}`)].map((text) => text.trimEnd()).join('\n');
}

/** `(1 row)`, `(5 rows)`; of a list that goes on, `(the first 5 rows)`. */
export function rowCount(count: number, more = false): string {
  const rows = count === 1 ? '1 row' : `${count} rows`;
  return more ? `(the first ${rows})` : `(${rows})`;
}

function records(names: readonly string[], rows: readonly (readonly string[])[]): string {
  const width = widest(names);
  return rows
    .map((row, n) => {
      const lines = names.map((name, i) => `${padTo(name, width, 'left')} | ${row[i] ?? ''}`.trimEnd());
      return [`-[ row ${n + 1} ]-`, ...lines].join('\n');
    })
    .join('\n');
}

function shown(cell: Cell | undefined): string {
  return cell === null || cell === undefined ? NULL_TEXT : visible(cell);
}

function widest(texts: readonly string[]): number {
  return texts.reduce((most, text) => Math.max(most, widthOf(text)), 0);
}

function center(text: string, width: number): string {
  const room = width - widthOf(text);
  return `${' '.repeat(Math.floor(room / 2))}${text}${' '.repeat(Math.ceil(room / 2))}`;
}
