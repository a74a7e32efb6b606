import { isNumber } from 'osl-compiler/types';
import { notesOn, shownCells } from './answer.js';
import type { AnswerBody } from './client.js';
import { visible } from './output.js';
import { NULL_TEXT, type TableCell } from './table.js';

/**
 * A table of GitHub's Markdown, figures as their metrics show them, and below it what its reader must know. What a cell
 * holds is text there whatever it says: no link, picture, tag or emphasis is made of it.
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

/** A backslash before what would begin a link, a picture, emphasis, code or a formula, or end the cell. */
function literal(text: string): string {
  return visible(text)
    .replace(/[\\`*_[\]|~!$]/g, '\\$&')
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;');
}
