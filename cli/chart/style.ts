/** What may be drawn with. */
export interface Style {
  /** Columns of the terminal. */
  readonly width: number;
  /** True if there is more than ASCII. */
  readonly unicode: boolean;
  readonly colour: boolean;
}

/** Characters of a chart's frame and bars. */
export interface Glyphs {
  readonly vertical: string;
  readonly horizontal: string;
  readonly corner: string;
  readonly tickDown: string;
  readonly tickLeft: string;
  /** A bar from left to right: eighths of a character, the last one whole. */
  readonly bar: readonly string[];
  /** From right to left, in as many parts as there are. */
  readonly barLeft: readonly string[];
  /** Stands for what was cut off. */
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

/** By which series are told apart where there are no colours. */
export const MARKS = { unicode: [...'●○▲△■□'], ascii: [...'*o+x#@'] } as const;

export function glyphsOf({ unicode }: Style): Glyphs {
  return unicode ? UNICODE : ASCII;
}

/** Width of a chart that goes to no terminal, where COLUMNS does not say one. */
const PIPE_WIDTH = 80;
const LEAST_WIDTH = 24;
const MOST_WIDTH = 400;

/**
 * What standard output takes: Unicode where the locale's character set is UTF-8 (as LC_ALL, LC_CTYPE or LANG say, the
 * first that says something), colours on a terminal unless NO_COLOR is set.
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
