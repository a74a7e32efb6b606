import { type Token, tokensOf } from './parse.js';

/**
 * The question inside `DECLARE … CURSOR FOR <question>` or `COPY (<question>) TO …`, or null where there is none.
 *
 * What stands before it becomes white space, so that positions in it are positions in `text`. Only for texts that
 * `parse` accepted as one of the two.
 */
export function queryWithin(text: string): string | null {
  const tokens = tokensOf(text);
  const is = (i: number, word: string): boolean => tokens[i]?.word === word;
  const cut = (from: number, to: number): string =>
    text.slice(0, from).replace(/\S/g, ' ') + text.slice(from, to);
  if (is(0, 'declare')) {
    const at = tokens.findIndex((_, i) => i > 1 && is(i, 'for'));
    return at < 0 ? null : cut(tokens[at]?.end ?? text.length, semicolonOr(tokens.at(-1), text.length));
  }
  if (!is(0, 'copy') || !is(1, '(')) return null;
  let depth = 0;
  for (const [i, token] of tokens.entries()) {
    if (is(i, '(')) depth++;
    else if (is(i, ')') && --depth === 0) return cut(tokens[1]?.end ?? text.length, token.start);
  }
  return null;
}

function semicolonOr(last: Token | undefined, end: number): number {
  return last?.word === ';' ? last.start : end;
}
