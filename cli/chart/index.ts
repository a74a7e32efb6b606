import { formatAnswer, notesOn } from '../answer.js';
import type { AnswerBody } from '../client.js';
import { rowCount } from '../table.js';
import { drawBars } from './bars.js';
import { drawLines } from './line.js';
import { drawScatter } from './scatter.js';
import { type ChartKind, chartOf } from './shape.js';
import type { Style } from './style.js';

export type { ChartKind } from './shape.js';
export { type Style, styleOf } from './style.js';

/** The answer as a chart, with its number of rows and what its reader must know; where none can be drawn, as a table. */
export function formatChart(answer: AnswerBody, wanted: ChartKind | null, style: Style): string {
  const chart = chartOf(answer, wanted);
  switch (chart.kind) {
    case 'none':
      return `${formatAnswer(answer, style.width)}\nno chart: ${chart.why}`;
    case 'bars':
      return withNotes(drawBars(chart, style), answer);
    case 'line':
      return withNotes(drawLines(chart, style), answer);
    case 'scatter':
      return withNotes(drawScatter(chart, style), answer);
  }
}

function withNotes(lines: readonly string[], answer: AnswerBody): string {
  return [...lines, rowCount(answer.row_count, answer.truncated), ...notesOn(answer)].join('\n');
}
