import { counted, visible } from '../output.js';
import { cutTo, widthOf } from '../table.js';
import { canvasColumns, dotOf, framed, numberAxis, PLOT_LINES, timeAxis } from './axis.js';
import { canvasOf, coloured, glyphsOf, MARKS, type Style, stroke } from './canvas.js';
import type { Chart, MeasureColumn, Series } from './shape.js';

const MOST_SERIES = 6;
const MOST_PANELS = 3;

type Lines = Extract<Chart, { readonly kind: 'line' }>;
type Panel = Lines['panels'][number];

export function drawLines({ panels, axis, astray }: Lines, style: Style): readonly string[] {
  const lines = panels.slice(0, MOST_PANELS).flatMap((panel) => drawPanel(panel, axis, style));
  const more = panels.slice(MOST_PANELS).map(({ measure }) => visible(measure.name));
  if (more.length > 0) lines.push(`not drawn: ${more.join(', ')}`);
  if (astray > 0)
    lines.push(`not drawn: ${counted(astray, 'row', 'rows')} without a place on ${visible(axis.name)}`);
  return lines;
}

function drawPanel({ measure, series }: Panel, axis: Lines['axis'], style: Style): readonly string[] {
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
        before = null; // leave the gap open
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

export function gapsText(gaps: number, { masked }: MeasureColumn): string {
  return `${counted(gaps, 'value', 'values')} that ${gaps === 1 ? 'is' : 'are'} ${masked ? 'masked or NULL' : 'NULL or no number'}`;
}

export function nothingToDraw({ masked }: MeasureColumn): string {
  return masked ? 'every value is masked or NULL' : 'every value is NULL or no number';
}
