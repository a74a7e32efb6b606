import type { MetricFormat } from 'osl-compiler';
import { visible } from './output.js';

/** A figure as its metric says it is shown: `12.5%`, `1234.50 EUR`, `3 kg`. What is no plain decimal stays as it is. */
export function shownFigure(value: string, format: MetricFormat): string {
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
    default: {
      const unknown: never = format.kind;
      return unknown;
    }
  }
}

/** Digits behind the point where the manifest says none; null for those that the value has. */
const DECIMALS: Readonly<Record<MetricFormat['kind'], number | null>> = {
  percent: 1,
  currency: 2,
  number: null,
};

function withUnit(text: string, unit: string | undefined): string {
  return unit === undefined ? text : `${text} ${unit}`;
}

/** `whole.part` with as many digits behind the point, rounded half away from zero as Postgres rounds. */
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

interface CsvColumn {
  readonly name: string;
  /** Its values are numbers, which stay as they are. */
  readonly numeric: boolean;
}

/**
 * RFC 4180 with a header line. NULL is an empty field, the empty text is `""`, as Postgres writes them. What would make
 * a spreadsheet calculate gets an apostrophe in front, and what would steer a terminal is written as an escape: whoever
 * wrote a row is not who opens the file. `exact` leaves both out.
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

/** What begins a formula in some spreadsheet, perhaps after white space that it drops; full-width forms count too. */
const FORMULA = /^[\s\u0000-\u001f]*[=+\-@\uff0b\uff0d\uff1d\uff20]|^[\t\r\n]/;
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;

function harmless(text: string): string {
  const shown = text.split(/(\r\n|\n|\t)/).map((part, i) => (i % 2 === 1 ? part : visible(part)));
  const safe = shown.join('');
  return FORMULA.test(text) && !NUMBER.test(text) ? `'${safe}` : safe;
}
