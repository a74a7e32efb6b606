import { answerNotes, formatAnswer } from '../answer.js';
import type { AnswerBody } from '../client.js';
import { visible } from '../output.js';
import { cutTo, formatFigure, NULL_TEXT, padTo, rowCount, widthOf } from '../table.js';
import { canvasColumns, dotOf, framed, numberAxis, PLOT_LINES, rangeOf } from './axis.js';
import { canvasOf, type Glyphs, glyphsOf, type Style } from './canvas.js';
import { drawLines, gapsText, nothingToDraw } from './line.js';
import { type Chart, type ChartKind, chartOf, type MeasureColumn } from './shape.js';

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

const MOST_BARS = 20;
const MOST_PANELS = 4;

type Bars = Extract<Chart, { readonly kind: 'bars' }>;

function drawBars({ labels, measures }: Bars, style: Style): readonly string[] {
  const glyphs = glyphsOf(style);
  const [first] = measures;
  if (first === undefined) return [];
  const kept = keptRows(first);
  const drawn = new Set(kept);
  const left = first.values.map((_, row) => row).filter((row) => !drawn.has(row));
  const names = kept.map((row) => visible(labels[row] ?? ''));
  const widest = Math.max(...names.map(widthOf));
  const room = Math.min(widest, Math.max(8, Math.floor(style.width * 0.4)));
  const shown = names.map((name) => padTo(cutTo(name, room, glyphs.more), room, 'left'));
  const lines: string[] = [];
  for (const measure of measures.slice(0, MOST_PANELS)) {
    lines.push(cutTo(visible(measure.name), style.width, glyphs.more));
    lines.push(...panel(measure, kept, shown, room, style, glyphs));
    if (left.length > 0) lines.push(`${padTo('', room, 'left')} ${othersText(measure, left)}`);
  }
  const more = measures.slice(MOST_PANELS).map(({ name }) => visible(name));
  if (more.length > 0) lines.push(`not drawn: ${more.join(', ')}`);
  return lines;
}

/** All rows in their original order if they fit, otherwise those with the largest absolute values. */
function keptRows({ values }: MeasureColumn): readonly number[] {
  const rows = values.map((_, row) => row);
  if (rows.length <= MOST_BARS) return rows;
  const size = (row: number): number => Math.abs(values[row] ?? Number.NaN);
  const bySize = (a: number, b: number): number => {
    const [one, other] = [size(a), size(b)];
    if (Number.isNaN(one) || Number.isNaN(other))
      return Number(Number.isNaN(one)) - Number(Number.isNaN(other));
    return other - one;
  };
  return rows.sort(bySize).slice(0, MOST_BARS);
}

/** Number and range of the omitted rows. No sum, because it would be meaningless for averages. */
function othersText({ values, format }: MeasureColumn, rows: readonly number[]): string {
  const count = rows.length === 1 ? '1 other' : `${rows.length} others`;
  const [least, most] = rangeOf(rows.flatMap((row) => values[row] ?? []));
  if (least > most) return `${count}, without values`;
  const [from, to] = [least, most].map((n) => figureText(`${n}`, format));
  return from === to ? `${count}: ${from}${rows.length === 1 ? '' : ' each'}` : `${count}: ${from} to ${to}`;
}

function panel(
  { values, texts, format }: MeasureColumn,
  rows: readonly number[],
  labels: readonly string[],
  room: number,
  style: Style,
  glyphs: Glyphs,
): readonly string[] {
  const figures = rows.map((row) => figureText(texts[row] ?? null, format));
  const wide = Math.max(...figures.map(widthOf));
  const drawn = rows.map((row) => values[row] ?? null);
  const width = Math.max(4, style.width - room - wide - 3);
  const most = Math.max(0, ...drawn.map((value) => value ?? 0));
  const least = Math.min(0, ...drawn.map((value) => value ?? 0));
  // Halved because the difference of two doubles may overflow.
  const unit = (most / 2 - least / 2) / width || 1;
  const before = least < 0 ? Math.min(width - 1, Math.max(1, Math.round(-least / 2 / unit))) : 0;
  return labels.map((label, i) => {
    const columns = (drawn[i] ?? 0) / 2 / unit;
    const bar =
      columns < 0
        ? `${leftBar(-columns, before, glyphs)}${glyphs.vertical}`
        : `${' '.repeat(before)}${glyphs.vertical}${rightBar(columns, width - before, glyphs)}`;
    return `${label} ${padTo(figures[i] ?? '', wide, 'right')} ${bar}`.trimEnd();
  });
}

function figureText(text: string | null, format: MeasureColumn['format']): string {
  if (text === null) return NULL_TEXT;
  return visible(format === null ? text : formatFigure(text, format));
}

/** Bar of `columns` characters, rounded to fractions of a character; never empty for a value above zero. */
function rightBar(columns: number, room: number, { bar }: Glyphs): string {
  const parts = partsOf(columns, room, bar.length);
  const rest = parts % bar.length;
  return (
    (bar.at(-1) ?? '').repeat(Math.floor(parts / bar.length)) + (rest === 0 ? '' : (bar[rest - 1] ?? ''))
  );
}

function leftBar(columns: number, room: number, { barLeft }: Glyphs): string {
  const parts = partsOf(columns, room, barLeft.length);
  const rest = parts % barLeft.length;
  const text =
    (rest === 0 ? '' : (barLeft[rest - 1] ?? '')) +
    (barLeft.at(-1) ?? '').repeat(Math.floor(parts / barLeft.length));
  return text.padStart(room);
}

function partsOf(columns: number, room: number, each: number): number {
  if (columns === 0) return 0;
  return Math.max(1, Math.min(room * each, Math.round(columns * each)));
}
