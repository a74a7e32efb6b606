import { visible } from './output.js';

export interface TableColumn {
  readonly name: string;
  readonly align: 'left' | 'right';
}

/** Columns of texts. */
export function textColumns(names: readonly string[]): readonly TableColumn[] {
  return names.map((name) => ({ name, align: 'left' }));
}

/** A value as text; null is NULL. */
export type TableCell = string | null;

/** How NULL is shown; a text of that spelling looks the same, as in psql with `\pset null`. */
export const NULL_TEXT = 'NULL';

/**
 * Rows as psql aligns them. Where a line would be wider than `maxWidth` columns, each row becomes a record of
 * its own, one line a column. Control characters are shown as escapes.
 */
export function formatTable(
  columns: readonly TableColumn[],
  rows: readonly (readonly TableCell[])[],
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

function shown(cell: TableCell | undefined): string {
  return cell === null || cell === undefined ? NULL_TEXT : visible(cell);
}

function widest(texts: readonly string[]): number {
  return texts.reduce((most, text) => Math.max(most, widthOf(text)), 0);
}

function center(text: string, width: number): string {
  const room = width - widthOf(text);
  return `${' '.repeat(Math.floor(room / 2))}${text}${' '.repeat(Math.ceil(room / 2))}`;
}

/** Columns that `text` takes on a terminal: 2 for East Asian wide characters and emoji, 0 for what combines. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes().segment(text)) width += graphemeWidth(segment);
  return width;
}

/** `text` filled up to `width` columns. */
export function padTo(text: string, width: number, align: 'left' | 'right'): string {
  const room = ' '.repeat(Math.max(0, width - widthOf(text)));
  return align === 'left' ? text + room : room + text;
}

/** As much of `text` as takes `width` columns, with `more` at its end where something is left out. */
export function cutTo(text: string, width: number, more: string): string {
  if (widthOf(text) <= width) return text;
  const room = width - widthOf(more);
  let cut = '';
  let taken = 0;
  for (const { segment } of graphemes().segment(text)) {
    taken += graphemeWidth(segment);
    if (taken > room) break;
    cut += segment;
  }
  return `${cut}${more}`;
}

/** Made for the first text that needs it: that takes longer than the rest of a small answer. */
function graphemes(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return segmenter;
}

let segmenter: Intl.Segmenter | null = null;
const EMOJI = /\p{Emoji_Presentation}|\p{Emoji}\ufe0f/u;
const NOTHING = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u;
/** East_Asian_Width W and F (Unicode TR 11), by block. */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]/u;

function graphemeWidth(grapheme: string): number {
  if (NOTHING.test(grapheme)) return 0;
  return EMOJI.test(grapheme) || WIDE.test(grapheme) ? 2 : 1;
}
