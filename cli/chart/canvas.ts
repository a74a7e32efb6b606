export interface DotCanvas {
  readonly width: number;
  readonly height: number;
  /** Draws a dot for a series; dots outside the canvas are ignored. */
  dot(x: number, y: number, series: number): void;
  lines(): readonly string[];
}

/**
 * Canvas of `columns` × `rows` characters. Braille has eight dots per character. Without Unicode, or without colours
 * when several series must be told apart, each character is one dot, drawn as the mark of its series.
 */
export function canvasOf(columns: number, rows: number, style: Style, several: boolean): DotCanvas {
  return style.unicode && (!several || style.colour)
    ? braille(columns, rows, style, several)
    : marks(columns, rows, style);
}

/** Bits for the dots of a braille character: two columns of four. */
const BITS = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;
const NO_DOTS = 0x2800;
const COLOURS = [36, 33, 35, 32, 34, 31] as const;

function braille(columns: number, rows: number, { colour }: Style, several: boolean): DotCanvas {
  const cells = new Uint8Array(columns * rows);
  const owners = new Uint8Array(columns * rows);
  const [width, height] = [columns * 2, rows * 4];
  return {
    width,
    height,
    dot(x, y, series) {
      if (x < 0 || y < 0 || x >= width || y >= height) return;
      const cell = (y >> 2) * columns + (x >> 1);
      cells[cell] = (cells[cell] ?? 0) | (BITS[y & 3]?.[x & 1] ?? 0);
      owners[cell] = series;
    },
    lines: () =>
      eachLine(columns, rows, (cell) => {
        const dots = cells[cell] ?? 0;
        const text = dots === 0 ? ' ' : String.fromCodePoint(NO_DOTS + dots);
        return several && colour && dots !== 0 ? coloured(text, owners[cell] ?? 0) : text;
      }),
  };
}

export function coloured(text: string, series: number): string {
  return `\u001b[${COLOURS[series % COLOURS.length]}m${text}\u001b[39m`;
}

function marks(columns: number, rows: number, { unicode }: Style): DotCanvas {
  const cells = new Uint8Array(columns * rows);
  const signs = unicode ? MARKS.unicode : MARKS.ascii;
  return {
    width: columns,
    height: rows,
    dot(x, y, series) {
      if (x >= 0 && y >= 0 && x < columns && y < rows) cells[y * columns + x] = series + 1;
    },
    lines: () =>
      eachLine(columns, rows, (cell) => {
        const owner = cells[cell] ?? 0;
        return owner === 0 ? ' ' : (signs[(owner - 1) % signs.length] ?? '*');
      }),
  };
}

function eachLine(columns: number, rows: number, shown: (cell: number) => string): readonly string[] {
  return Array.from({ length: rows }, (_, y) =>
    Array.from({ length: columns }, (_, x) => shown(y * columns + x)).join(''),
  );
}

/** Draws a straight line including both ends (Bresenham). */
export function stroke(
  canvas: DotCanvas,
  from: readonly [x: number, y: number],
  to: readonly [x: number, y: number],
  series: number,
): void {
  let [x, y] = from;
  const [endX, endY] = to;
  const [wide, high] = [Math.abs(endX - x), -Math.abs(endY - y)];
  const [stepX, stepY] = [x < endX ? 1 : -1, y < endY ? 1 : -1];
  let error = wide + high;
  for (;;) {
    canvas.dot(x, y, series);
    if (x === endX && y === endY) return;
    const twice = 2 * error;
    if (twice >= high) {
      error += high;
      x += stepX;
    }
    if (twice <= wide) {
      error += wide;
      y += stepY;
    }
  }
}

export interface Style {
  readonly width: number;
  readonly unicode: boolean;
  readonly colour: boolean;
}

export interface Glyphs {
  readonly vertical: string;
  readonly horizontal: string;
  readonly corner: string;
  readonly tickDown: string;
  readonly tickLeft: string;
  /** Block characters for the end of a bar that grows to the right, from the narrowest to the full block. */
  readonly bar: readonly string[];
  /** Block characters for the end of a bar that grows to the left, in the same order. */
  readonly barLeft: readonly string[];
  readonly more: string;
}

const UNICODE: Glyphs = {
  vertical: '│',
  horizontal: '─',
  corner: '└',
  tickDown: '┬',
  tickLeft: '┤',
  bar: [...'▏▎▍▌▋▊▉█'],
  barLeft: [...'▐█'],
  more: '…',
};

const ASCII: Glyphs = {
  vertical: '|',
  horizontal: '-',
  corner: '+',
  tickDown: '+',
  tickLeft: '+',
  bar: ['#'],
  barLeft: ['#'],
  more: '..',
};

export const MARKS = { unicode: [...'●○▲△■□'], ascii: [...'*o+x#@'] } as const;

export function glyphsOf({ unicode }: Style): Glyphs {
  return unicode ? UNICODE : ASCII;
}

const PIPE_WIDTH = 80;
const LEAST_WIDTH = 24;
const MOST_WIDTH = 400;

/**
 * Returns the style for standard output: Unicode on Windows or in a UTF-8 locale (first of LC_ALL, LC_CTYPE, LANG that
 * is set), colours on a terminal unless NO_COLOR is set or TERM is `dumb`; neither with `ascii`.
 */
export function styleOf(
  { isTTY, columns }: { readonly isTTY?: boolean; readonly columns?: number },
  env: Readonly<Record<string, string | undefined>>,
  ascii: boolean,
): Style {
  const width = (isTTY && columns) || Number(env['COLUMNS']) || PIPE_WIDTH;
  const locale = [env['LC_ALL'], env['LC_CTYPE'], env['LANG']].find((l) => l !== undefined && l !== '') ?? '';
  const utf8 = process.platform === 'win32' || /utf-?8/i.test(locale);
  return {
    width: Math.min(MOST_WIDTH, Math.max(LEAST_WIDTH, Math.floor(width))),
    unicode: !ascii && utf8,
    colour: isTTY === true && !env['NO_COLOR'] && env['TERM'] !== 'dumb' && !ascii,
  };
}
