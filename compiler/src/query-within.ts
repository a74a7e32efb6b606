import { scanSync } from 'libpg-query';
import { indexOfByte } from './text.js';

/**
 * The question inside `DECLARE … CURSOR FOR <question>` or `COPY (<question>) TO …`, or null where there is none.
 *
 * What stands before it becomes white space, so that positions in it are positions in `text`. Only for texts that
 * `parse` accepted as one of the two.
 */
export function queryWithin(text: string): string | null {
  const tokens = scanSync(text).tokens.filter((t) => !t.tokenName.endsWith('_COMMENT'));
  const is = (i: number, word: string): boolean => {
    const token = tokens[i];
    return token !== undefined && token.text.toLowerCase() === word && token.tokenName !== 'IDENT';
  };
  const cut = (fromByte: number, toByte: number): string => {
    const from = indexOfByte(text, fromByte);
    return text.slice(0, from).replace(/\S/g, ' ') + text.slice(from, indexOfByte(text, toByte));
  };
  if (is(0, 'declare')) {
    const at = tokens.findIndex((_, i) => i > 1 && is(i, 'for'));
    return at < 0 ? null : cut(tokens[at]?.end ?? END, semicolonOr(tokens.at(-1), END));
  }
  if (!is(0, 'copy') || !is(1, '(')) return null;
  let depth = 0;
  for (const [i, token] of tokens.entries()) {
    if (is(i, '(')) depth++;
    else if (is(i, ')') && --depth === 0) return cut(tokens[1]?.end ?? END, token.start);
  }
  return null;
}

/** A byte offset behind every text. */
const END = Number.MAX_SAFE_INTEGER;

function semicolonOr(
  last: { readonly text: string; readonly start: number } | undefined,
  end: number,
): number {
  return last !== undefined && last.text === ';' ? last.start : end;
}
