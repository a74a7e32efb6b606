import { padTo, widthOf } from '../table.js';
import type { Axis } from './axis.js';
import type { DotCanvas } from './canvas.js';
import { type Glyphs, glyphsOf, type Style } from './style.js';

export const PLOT_LINES = 12;

/** Columns left for the canvas beside the labels of the vertical axis. */
export function canvasColumns(up: Axis, style: Style): number {
  return Math.max(10, style.width - gutterOf(up) - 2);
}

export function dotOf({ from, to }: Axis, value: number, length: number): number {
  const share = (value / 2 - from / 2) / (to / 2 - from / 2 || 1);
  return Math.round(share * (length - 1));
}

export function framed(canvas: DotCanvas, up: Axis, along: Axis, style: Style): readonly string[] {
  const glyphs = glyphsOf(style);
  const gutter = gutterOf(up);
  const drawn = canvas.lines();
  const figures = new Map<number, string>();
  for (const { at, text } of up.ticks) figures.set(drawn.length - 1 - dotOf(up, at, drawn.length), text);
  const lines = drawn.map((line, y) => {
    const figure = figures.get(y);
    const edge = figure === undefined ? glyphs.vertical : glyphs.tickLeft;
    return `${padTo(figure ?? '', gutter, 'right')} ${edge}${line}`.trimEnd();
  });
  return [...lines, ...below(along, canvasColumns(up, style), gutter, glyphs)];
}

function gutterOf({ ticks }: Axis): number {
  return Math.max(0, ...ticks.map(({ text }) => widthOf(text)));
}

function below(along: Axis, columns: number, gutter: number, glyphs: Glyphs): readonly string[] {
  const rule = Array.from({ length: columns }, () => glyphs.horizontal);
  let texts = '';
  for (const { column, start, text } of thinned(along, columns)) {
    rule[column] = glyphs.tickDown;
    texts = texts.padEnd(start) + text;
  }
  const edge = ' '.repeat(gutter + 1);
  return [`${edge}${glyphs.corner}${rule.join('')}`, `${edge} ${texts}`.trimEnd()];
}

interface PlacedTick {
  readonly column: number;
  /** Column where its text starts, within the plot. */
  readonly start: number;
  readonly text: string;
}

/** All ticks, or every second, third, … one, so that labels do not overlap. */
function thinned(along: Axis, columns: number): readonly PlacedTick[] {
  const all = along.ticks.map(({ at, text }): PlacedTick => {
    const column = Math.max(0, Math.min(columns - 1, dotOf(along, at, columns)));
    const start = Math.max(0, Math.min(columns - text.length, column - Math.floor(text.length / 2)));
    return { column, start, text };
  });
  for (let every = 1; every < all.length; every++) {
    const some = all.filter((_, i) => i % every === 0);
    const fits = some.every(
      ({ start, text }, i) => start + text.length < (some[i + 1]?.start ?? Number.POSITIVE_INFINITY),
    );
    if (fits) return some;
  }
  return all.slice(0, 1);
}
