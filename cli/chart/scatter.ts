import { visible } from '../output.js';
import { cutTo } from '../table.js';
import { numberAxis } from './axis.js';
import { canvasOf } from './canvas.js';
import { gapsText, nothingToDraw } from './line.js';
import { canvasColumns, dotOf, framed, PLOT_LINES } from './plot.js';
import type { Chart } from './shape.js';
import { glyphsOf, type Style } from './style.js';

type Scatter = Extract<Chart, { readonly kind: 'scatter' }>;

/** A dot a row: the first measure along, the second one up. */
export function drawScatter({ x, y }: Scatter, style: Style): readonly string[] {
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
