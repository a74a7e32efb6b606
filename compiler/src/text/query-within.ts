import { type Token, tokensOf } from './parse.js';

/**
 * The question inside `DECLARE … CURSOR FOR <question>`, `PREPARE … AS <question>`, `EXPLAIN … <question>` or
 * `COPY (<question>) TO …`, or null where there is none.
 *
 * What stands before it becomes white space, so that positions in it are positions in `text`. Only for texts that
 * `parse` accepted as one of the four.
 */
export function queryWithin(text: string): string | null {
  const tokens = tokensOf(text);
  const is = (i: number, word: string): boolean => tokens[i]?.word === word;
  const cut = (from: number, to: number): string =>
    text.slice(0, from).replace(/\S+/g, (word) => ' '.repeat(word.length)) + text.slice(from, to);
  const before = BEFORE_QUESTION.get(tokens[0]?.word ?? '');
  const end = semicolonOr(tokens.at(-1), text.length);
  if (before !== undefined) {
    const at = tokens.findIndex((_, i) => i > 1 && is(i, before));
    return at < 0 ? null : cut(tokens[at]?.end ?? text.length, end);
  }
  if (is(0, 'explain')) return cut(tokens[behindOptions(tokens)]?.start ?? text.length, end);
  if (!is(0, 'copy') || !is(1, '(')) return null;
  let depth = 0;
  for (const [i, token] of tokens.entries()) {
    if (is(i, '(')) depth++;
    else if (is(i, ')') && --depth === 0) return cut(tokens[1]?.end ?? text.length, token.start);
  }
  return null;
}

/** Of a statement that begins with this word, the word behind which its question stands. */
const BEFORE_QUESTION: ReadonlyMap<string, string> = new Map([
  ['declare', 'for'],
  ['prepare', 'as'],
]);

/** Which token the statement begins with that EXPLAIN is of. */
function behindOptions(tokens: readonly Token[]): number {
  const word = (i: number): string => tokens[i]?.word ?? '';
  if (word(1) !== '(' || BEGINS_QUESTION.has(word(2)))
    return tokens.findIndex(({ word }, i) => i > 0 && !EXPLAIN_WORDS.has(word));
  let depth = 0;
  return (
    1 +
    tokens.findIndex(({ word }) => {
      if (word === '(') depth++;
      return word === ')' && --depth === 0;
    })
  );
}

/** EXPLAIN's options without parentheses. */
const EXPLAIN_WORDS: ReadonlySet<string> = new Set(['analyze', 'analyse', 'verbose']);
/** What a question in parentheses begins with, and no list of options. */
const BEGINS_QUESTION: ReadonlySet<string> = new Set(['select', 'with', 'values', 'table', '(']);

function semicolonOr(last: Token | undefined, end: number): number {
  return last?.word === ';' ? last.start : end;
}
