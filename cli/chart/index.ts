import { answerNotes, formatAnswer } from '../answer.js';
import type { AnswerBody } from '../client.js';
import { counted, visible } from '../output.js';
import { cutTo, formatFigure, NULL_TEXT, padTo, rowCount, widthOf } from '../table.js';
import { canvasColumns, dotOf, framed, numberAxis, PLOT_LINES, rangeOf, timeAxis } from './axis.js';
import { canvasOf, coloured, type Glyphs, glyphsOf, MARKS, type Style, stroke } from './canvas.js';
import { type Chart, type ChartKind, chartOf, type MeasureColumn, type Series } from './shape.js';

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
const MOST_BAR_PANELS = 4;

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
  for (const measure of measures.slice(0, MOST_BAR_PANELS)) {
    lines.push(cutTo(visible(measure.name), style.width, glyphs.more));
    lines.push(...panel(measure, kept, shown, room, style, glyphs));
    if (left.length > 0) lines.push(`${padTo('', room, 'left')} ${othersText(measure, left)}`);
  }
  const more = measures.slice(MOST_BAR_PANELS).map(({ name }) => visible(name));
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

/** Number of omitted rows and range of their values. No sum, because it would be meaningless for averages. */
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

const MOST_SERIES = 6;
const MOST_LINE_PANELS = 3;

type LineChart = Extract<Chart, { readonly kind: 'line' }>;
type LinePanel = LineChart['panels'][number];

function drawLines({ panels, axis, astray }: LineChart, style: Style): readonly string[] {
  const lines = panels.slice(0, MOST_LINE_PANELS).flatMap((panel) => drawPanel(panel, axis, style));
  const more = panels.slice(MOST_LINE_PANELS).map(({ measure }) => visible(measure.name));
  if (more.length > 0) lines.push(`not drawn: ${more.join(', ')}`);
  if (astray > 0)
    lines.push(`not drawn: ${counted(astray, 'row', 'rows')} without a place on ${visible(axis.name)}`);
  return lines;
}

function drawPanel({ measure, series }: LinePanel, axis: LineChart['axis'], style: Style): readonly string[] {
  const drawn = greatest(series);
  const points = drawn.flatMap((one) => one.points).filter(({ value }) => value !== null);
  const title = visible(measure.name);
  if (points.length === 0) return [`${title}: ${nothingToDraw(measure)}`];
  const up = numberAxis(
    points.map(({ value }) => value ?? 0),
    measure.format,
    5,
  );
  const columns = canvasColumns(up, style);
  const at = drawn.flatMap((one) => one.points.map((p) => p.at));
  const along = axis.isTime
    ? timeAxis(at, columns)
    : numberAxis(at, null, Math.max(2, Math.floor(columns / 12)));
  const canvas = canvasOf(columns, PLOT_LINES, style, drawn.length > 1);
  for (const [n, { points: own }] of drawn.entries()) {
    let before: readonly [number, number] | null = null;
    for (const { at: place, value } of own) {
      if (value === null) {
        before = null; // leave a gap in the line
        continue;
      }
      const dot = [
        dotOf(along, place, canvas.width),
        canvas.height - 1 - dotOf(up, value, canvas.height),
      ] as const;
      stroke(canvas, before ?? dot, dot, n);
      before = dot;
    }
  }
  return [
    ...titleOf(title, drawn, style),
    ...framed(canvas, up, along, style),
    ...restOf(measure, series, drawn),
  ];
}

function titleOf(title: string, drawn: readonly Series[], style: Style): readonly string[] {
  const { more } = glyphsOf(style);
  const lines = [cutTo(title, style.width, more)];
  if (drawn.length < 2) return lines;
  const signs = style.unicode ? MARKS.unicode : MARKS.ascii;
  let legend = '';
  let taken = 0;
  for (const [n, { name }] of drawn.entries()) {
    const sign = signs[n % signs.length] ?? '*';
    const text = cutTo(visible(name), Math.min(24, style.width - 6), more);
    const room = widthOf(text) + 5;
    if (taken > 0 && taken + room > style.width) {
      lines.push(legend);
      [legend, taken] = ['', 0];
    }
    legend += `${taken === 0 ? ' ' : '  '} ${style.colour ? coloured(sign, n) : sign} ${text}`;
    taken += room;
  }
  return [...lines, legend];
}

function greatest(series: readonly Series[]): readonly Series[] {
  if (series.length <= MOST_SERIES) return series;
  const size = new Map(
    series.map((one) => [one, one.points.reduce((sum, { value }) => sum + Math.abs(value ?? 0), 0)]),
  );
  const kept = new Set(
    [...series].sort((a, b) => (size.get(b) ?? 0) - (size.get(a) ?? 0)).slice(0, MOST_SERIES),
  );
  return series.filter((one) => kept.has(one));
}

function restOf(
  measure: MeasureColumn,
  series: readonly Series[],
  drawn: readonly Series[],
): readonly string[] {
  const others = series.length - drawn.length;
  const gaps = measure.values.filter((value) => value === null).length;
  return [
    ...(others === 0
      ? []
      : [`and ${counted(others, 'other', 'others')}, not drawn: these are the greatest ${drawn.length}`]),
    ...(gaps === 0 ? [] : [`not drawn: ${gapsText(gaps, measure)}`]),
  ];
}

function gapsText(gaps: number, { masked }: MeasureColumn): string {
  return `${counted(gaps, 'value', 'values')} that ${gaps === 1 ? 'is' : 'are'} ${masked ? 'masked or NULL' : 'NULL or no number'}`;
}

function nothingToDraw({ masked }: MeasureColumn): string {
  return masked ? 'every value is masked or NULL' : 'every value is NULL or no number';
}
