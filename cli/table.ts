import type { MetricFormat } from 'osl-compiler';
import { visible } from './output.js';

/** Formats a figure for its metric: `12.5%`, `1234.50 EUR`, `3 kg`. Anything but a plain decimal is unchanged. */
export function formatFigure(value: string, format: MetricFormat): string {
  const [, sign = '', whole = '', part = ''] = /^(-?)(\d+)(?:\.(\d+))?$/.exec(value) ?? [];
  if (whole === '') return value;
  const decimals = format.decimals ?? DECIMALS[format.kind];
  switch (format.kind) {
    case 'percent':
      return `${decimal(sign, whole + part.padEnd(2, '0').slice(0, 2), part.slice(2), decimals)}%`;
    case 'currency':
      return withUnit(decimal(sign, whole, part, decimals), format.currency);
    case 'number':
      return withUnit(decimal(sign, whole, part, decimals), format.unit);
  }
}

/** Default number of decimals; null keeps the decimals of the value. */
const DECIMALS: Readonly<Record<MetricFormat['kind'], number | null>> = {
  percent: 1,
  currency: 2,
  number: null,
};

function withUnit(text: string, unit: string | undefined): string {
  return unit === undefined ? text : `${text} ${unit}`;
}

/** Formats `whole.part` with the given number of decimals, rounded half away from zero as in Postgres. */
function decimal(sign: string, whole: string, part: string, decimals: number | null): string {
  const digits = decimals ?? part.length;
  const kept = BigInt(whole + part.slice(0, digits).padEnd(digits, '0'));
  const up = (part[digits] ?? '0') >= '5' ? 1n : 0n;
  const text = String(kept + up).padStart(digits + 1, '0');
  const point = text.length - digits;
  const shown = digits === 0 ? text : `${text.slice(0, point)}.${text.slice(point)}`;
  return kept + up === 0n ? shown : `${sign}${shown}`;
}

export interface TableColumn {
  readonly name: string;
  readonly align: 'left' | 'right';
}

/** Text of a cell; null for NULL. */
export type TableCell = string | null;

/** Text printed for NULL, like psql with `\pset null`. */
export const NULL_TEXT = 'NULL';

/**
 * Aligns rows like psql. If a line would be wider than `maxWidth`, each row becomes a record with one line per column.
 * Control characters are escaped.
 */
export function formatTable(
  given: readonly (TableColumn | string)[],
  rows: readonly (readonly TableCell[])[],
  maxWidth = Number.POSITIVE_INFINITY,
): string {
  const columns = given.map((c): TableColumn => (typeof c === 'string' ? { name: c, align: 'left' } : c));
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

/** Formats a row count: `(1 row)`, `(5 rows)`; if there are more rows, `(the first 5 rows)`. */
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

/** Width of `text` in terminal columns: 2 for East Asian wide characters and emoji, 0 for combining characters. */
export function widthOf(text: string): number {
  if (/^[\x20-\x7e]*$/.test(text)) return text.length;
  let width = 0;
  for (const { segment } of graphemes().segment(text)) width += graphemeWidth(segment);
  return width;
}

export function padTo(text: string, width: number, align: 'left' | 'right'): string {
  const room = ' '.repeat(Math.max(0, width - widthOf(text)));
  return align === 'left' ? text + room : room + text;
}

/** Cuts `text` to `width` terminal columns. If anything is cut, the result ends in `more`. */
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

/**
 * Returns the grapheme segmenter, created on first use because creating it takes longer than printing a short answer.
 */
function graphemes(): Intl.Segmenter {
  segmenter ??= new Intl.Segmenter('en', { granularity: 'grapheme' });
  return segmenter;
}

let segmenter: Intl.Segmenter | null = null;
const EMOJI = /\p{Emoji_Presentation}|\p{Emoji}\ufe0f/u;
const NOTHING = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u;
/** Characters with East_Asian_Width W or F (Unicode TR 11), by block. */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\ua000-\ua4cf\ua960-\ua97f\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6\u{16fe0}-\u{18aff}\u{1b000}-\u{1b2ff}\u{20000}-\u{3fffd}]/u;

function graphemeWidth(grapheme: string): number {
  if (NOTHING.test(grapheme)) return 0;
  return EMOJI.test(grapheme) || WIDE.test(grapheme) ? 2 : 1;
}

interface CsvColumn {
  readonly name: string;
  /** True for columns of numbers, whose cells are written unchanged. */
  readonly numeric: boolean;
}

/**
 * Formats RFC 4180 CSV with a header line. NULL is an empty field and empty text is `""`, as in Postgres. Because cells
 * may come from an attacker, text that a spreadsheet would evaluate is prefixed with an apostrophe, and control
 * characters other than tabs and line breaks are escaped; `exact` turns off both.
 */
export function formatCsv(
  columns: readonly CsvColumn[],
  rows: readonly (readonly TableCell[])[],
  exact = false,
): string {
  const isExact = columns.map(({ numeric }) => exact || numeric);
  const head = columns.map(({ name }) => field(name, exact)).join(',');
  const lines = rows.map((row) => row.map((cell, i) => field(cell, isExact[i] ?? false)).join(','));
  return [head, ...lines].join('\r\n');
}

function field(cell: TableCell, isExact: boolean): string {
  if (cell === null) return '';
  const text = isExact ? cell : harmless(cell);
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Start of a text that a spreadsheet may evaluate: a formula sign (also full-width), possibly after whitespace, or a
 * tab or line break.
 */
const FORMULA = /^[\s\u0000-\u001f]*[=+\-@\uff0b\uff0d\uff1d\uff20]|^[\t\r\n]/;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

function harmless(text: string): string {
  const shown = text.split(/(\r\n|\n|\t)/).map((part, i) => (i % 2 === 1 ? part : visible(part)));
  const safe = shown.join('');
  return FORMULA.test(text) && !NUMBER.test(text) ? `'${safe}` : safe;
}
