import { isNumber } from 'osl-compiler/types';
import { notesOn, shownCells } from './answer.js';
import type { AnswerBody } from './client.js';
import { visible } from './output.js';
import { NULL_TEXT, type TableCell } from './table.js';

/**
 * GitHub Markdown table with figures in their metrics' format, then the notes. Cells are literal text: they cannot
 * create links, images, tags or emphasis.
 */
export function formatMarkdown(answer: AnswerBody): string {
  const head = answer.columns.map(({ name }) => literal(name));
  const rule = answer.columns.map(({ type }) => (isNumber(type) ? '---:' : '---'));
  const rows = shownCells(answer).map((cells) => cells.map(cellText));
  const table = [head, rule, ...rows].map((cells) => `| ${cells.join(' | ')} |`);
  return [table.join('\n'), ...notesOn(answer).map(literal)].join('\n\n');
}

function cellText(cell: TableCell): string {
  return cell === null ? NULL_TEXT : literal(cell);
}

/** Escapes whatever would start a link, an image, emphasis, code or a formula, or end the cell. */
function literal(text: string): string {
  return visible(text)
    .replace(/[\\`*_[\]|~!$]/g, '\\$&')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
