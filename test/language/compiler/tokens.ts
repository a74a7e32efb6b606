import { scanSync } from 'libpg-query';

/** The literals of `text` as the parser's own scanner sees them; null where it refuses the text. */
export function literalTokens(
  text: string,
): readonly { readonly start: number; readonly value: string }[] | null {
  try {
    return scanSync(text)
      .tokens.filter(({ tokenName }) => LITERALS.has(tokenName))
      .map(({ start, text: written, tokenName }) => ({ start, value: valueOfToken(tokenName, written) }));
  } catch {
    return null;
  }
}

const LITERALS: ReadonlySet<string> = new Set(['ICONST', 'FCONST', 'SCONST', 'BCONST', 'XCONST', 'USCONST']);

function valueOfToken(name: string, written: string): string {
  if (name === 'ICONST') return String(Number(written));
  if (name === 'FCONST') return written;
  // Prefixed and continued strings keep what is around them, and so equal no simple one.
  return /^'(?:[^']|'')*'$/.test(written) && name === 'SCONST'
    ? written.slice(1, -1).replaceAll("''", "'")
    : `${name} ${written}`;
}

const VALUES: Readonly<Record<'SCONST' | 'ICONST' | 'FCONST', readonly string[]>> = {
  SCONST: [
    ...[
      '',
      ' ',
      'x',
      '0',
      '1',
      '5',
      '-5',
      '7',
      '1.5',
      'nan',
      't',
      'true',
      'no',
      'day',
      'month',
      'year',
      '{1,2}',
    ],
    ...[
      '2026-01-01',
      '2026-13-45',
      '1999-12-31 10:00',
      '7 days',
      '1 month',
      '99999 years',
      '100000 days',
      '3',
    ],
    ...["it's", 'é', '%a_', 'eu', 'customer', '10', '100', '00000000-0000-0000-0000-000000000001', 'UTC'],
  ],
  ICONST: ['0', '1', '2', '3', '5', '7', '10', '100', '99999', '100000', '2147483647', '007', '24', '25'],
  FCONST: [
    ...['2147483648', '9999999999', '9223372036854775807', '9223372036854775808', '99999999999999999999'],
    ...['0.0', '1.5', '2.50', '.5', '1.', '1e3', '1E-2', '0.1', '100.0'],
  ],
};

/** The same text with other literals of the same token kinds; some of them as they were. Equal ones stay equal. */
export function withOtherLiterals(
  text: string,
  dice: { chance(p: number): boolean; of<T>(items: readonly T[]): T },
): string {
  const bytes = Buffer.from(text);
  const replaced = new Map<string, string>();
  let at = 0;
  let result = '';
  for (const token of scanSync(text).tokens) {
    const { tokenName: name, start, end } = token;
    if (name !== 'SCONST' && name !== 'ICONST' && name !== 'FCONST') continue;
    const before = bytes.toString('utf8', start, end);
    const known = replaced.get(before);
    const value = dice.of(VALUES[name]);
    const after =
      known ?? (dice.chance(0.3) ? before : name === 'SCONST' ? `'${value.replaceAll("'", "''")}'` : value);
    replaced.set(before, after);
    result += bytes.toString('utf8', at, start) + after;
    at = end;
  }
  return result + bytes.toString('utf8', at);
}
