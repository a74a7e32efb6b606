import { visible } from './output.js';
import type { TableCell } from './table.js';

export interface CsvColumn {
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
