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
  /** Partial characters of a bar that grows to the right; the last one is full. */
  readonly bar: readonly string[];
  /** The same for a bar that grows to the left. */
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
 * Style for standard output: Unicode if the locale is UTF-8 (first of LC_ALL, LC_CTYPE, LANG that is set), colours on a
 * terminal unless NO_COLOR is set.
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
