import { isNumber } from 'osl-compiler/types';
import type { AnswerBody } from './client.js';
import { visible } from './output.js';
import { formatCsv, formatFigure, formatTable, NULL_TEXT, rowCount, type TableCell } from './table.js';

export const FORMATS = ['table', 'csv', 'json', 'ndjson', 'arrow', 'parquet', 'markdown'] as const;
export type AnswerFormat = (typeof FORMATS)[number];

export function parseAnswer(body: Readonly<Record<string, unknown>>): AnswerBody | null {
  return isAnswer(body) ? body : null;
}

/** Aligned table with a row count and figures formatted by their metrics, followed by the notes. */
export function formatAnswer(answer: AnswerBody, maxWidth?: number): string {
  const columns = answer.columns.map(({ name, type }) => {
    return { name, align: isNumber(type) ? ('right' as const) : ('left' as const) };
  });
  const table = formatTable(columns, displayCells(answer), maxWidth);
  return [table, rowCount(answer.row_count, answer.truncated), ...answerNotes(answer)]
    .filter((text) => text !== '')
    .join('\n');
}

/** Cells for display: figures formatted by their metrics, everything else unchanged. */
function displayCells({ columns, rows }: AnswerBody): readonly (readonly TableCell[])[] {
  return rows.map((row) =>
    columns.map(({ name, format }) => {
      const cell = cellOf(row[name]);
      return cell === null || format === undefined ? cell : formatFigure(cell, format);
    }),
  );
}

export function formatAnswerCsv(answer: AnswerBody, exact = false): string {
  return formatCsv(
    answer.columns.map(({ name, type }) => ({ name, numeric: isNumber(type) })),
    cellsOf(answer),
    exact,
  );
}

export type AnswerNotes = Pick<
  AnswerBody,
  'redacted_columns' | 'redacted_conditions' | 'truncated' | 'receipt'
>;

export function answerNotes(answer: AnswerNotes): readonly string[] {
  const notes: string[] = [];
  if (answer.redacted_columns.length > 0) notes.push(`masked: ${answer.redacted_columns.join(', ')}`);
  const conditions = answer.redacted_conditions ?? [];
  if (conditions.length > 0)
    notes.push(`warning: masked column used in a filter, join, group or sort: ${conditions.join(', ')}`);
  if (answer.truncated) notes.push('truncated: there are more rows than the server gives at once');
  return notes;
}

function cellsOf(answer: AnswerBody): readonly (readonly TableCell[])[] {
  return answer.rows.map((row) => answer.columns.map(({ name }) => cellOf(row[name])));
}

export function cellOf(value: unknown): TableCell {
  if (value === null || value === undefined) return null;
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

function isAnswer(body: object): body is AnswerBody {
  const fields: Readonly<Record<string, unknown>> = { ...body };
  return (
    Array.isArray(fields['columns']) &&
    Array.isArray(fields['rows']) &&
    Array.isArray(fields['redacted_columns']) &&
    typeof fields['row_count'] === 'number'
  );
}

/**
 * GitHub Markdown table with figures formatted by their metrics, followed by the notes. Cells are literal text: they
 * cannot create links, images, tags or emphasis.
 */
export function formatMarkdown(answer: AnswerBody): string {
  const head = answer.columns.map(({ name }) => literal(name));
  const rule = answer.columns.map(({ type }) => (isNumber(type) ? '---:' : '---'));
  const rows = displayCells(answer).map((cells) => cells.map(cellText));
  const table = [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return [table.join('\n'), ...answerNotes(answer).map(literal)].join('\n\n');
}

function cellText(cell: TableCell): string {
  return cell === null ? NULL_TEXT : literal(cell);
}

/** Escapes anything that would start a link, an image, emphasis, code or a formula, or end the cell. */
function literal(text: string): string {
  return visible(text)
    .replace(/[\\`*_[\]|~!$]/g, '\\$&')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
