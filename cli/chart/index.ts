import { answerNotes, formatAnswer } from '../answer.js';
import type { AnswerBody } from '../client.js';
import { visible } from '../output.js';
import { cutTo, rowCount } from '../table.js';
import { canvasColumns, dotOf, framed, numberAxis, PLOT_LINES } from './axis.js';
import { drawBars } from './bars.js';
import { canvasOf, glyphsOf, type Style } from './canvas.js';
import { drawLines, gapsText, nothingToDraw } from './line.js';
import { type Chart, type ChartKind, chartOf } from './shape.js';

type Scatter = Extract<Chart, { readonly kind: 'scatter' }>;

/** Draws a dot per row, with the first measure on the x axis and the second on the y axis. */
function drawScatter({ x, y }: Scatter, style: Style): readonly string[] {
  const points: (readonly [number, number])[] = [];
  for (const [row, right] of x.values.entries()) {
    const high = y.values[row] ?? null;
    if (right !== null && high !== null) points.push([right, high]);
  }
  const title = `${visible(y.name)} over ${visible(x.name)}`;
  if (points.length === 0) return [`${title}: ${nothingToDraw(x.masked ? x : y)}`];
  const up = numberAxis(
    points.map(([, high]) => high),
    y.format,
    5,
  );
  const columns = canvasColumns(up, style);
  const along = numberAxis(
    points.map(([right]) => right),
    x.format,
    Math.max(2, Math.floor(columns / 14)),
  );
  const canvas = canvasOf(columns, PLOT_LINES, style, false);
  for (const [right, high] of points)
    canvas.dot(dotOf(along, right, canvas.width), canvas.height - 1 - dotOf(up, high, canvas.height), 0);
  const gaps = x.values.length - points.length;
  const rest = gaps === 0 ? [] : [`not drawn: ${gapsText(gaps, x.masked ? x : y)}`];
  return [cutTo(title, style.width, glyphsOf(style).more), ...framed(canvas, up, along, style), ...rest];
}

export { type Style, styleOf } from './canvas.js';
export type { ChartKind } from './shape.js';

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
  return [...lines, rowCount(answer.row_count, answer.truncated), ...answerNotes(answer)].join('\n');
}
