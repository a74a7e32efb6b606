import type { Cell } from './table.js';

/** RFC 4180 with a header line. NULL is an empty field, the empty text is `""`, as Postgres writes them. */
export function formatCsv(names: readonly string[], rows: readonly (readonly Cell[])[]): string {
  return [names, ...rows].map((row) => row.map(field).join(',')).join('\r\n');
}

function field(cell: Cell): string {
  if (cell === null) return '';
  return cell === '' || /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell;
}
