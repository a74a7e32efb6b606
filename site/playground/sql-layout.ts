/** Colours of SQL and YAML, and the layout of governed SQL over lines. Neither changes a token. */

type TokenKind = 'word' | 'keyword' | 'text' | 'number' | 'parameter' | 'comment' | 'key' | 'other';

export interface Token {
  readonly text: string;
  readonly kind: TokenKind;
}

const SQL = new RegExp(
  [
    String.raw`(?<comment>--[^\n]*|/\*[\s\S]*?\*/)`,
    String.raw`(?<text>[eE]?'(?:[^'\\]|''|\\[\s\S])*'?)`,
    '(?<quoted>"(?:[^"]|"")*"?)',
    String.raw`(?<parameter>\$\d+)`,
    String.raw`(?<number>\d[\d.]*)`,
    String.raw`(?<word>[\p{L}_][\p{L}\p{N}_$]*)`,
    String.raw`(?<space>\s+)`,
    String.raw`(?<other>[\s\S])`,
  ].join('|'),
  'gu',
);

const KEYWORDS: ReadonlySet<string> = new Set(
  (
    'select from where join left right full inner outer cross lateral on using group by order having limit offset ' +
    'with as and or not in exists is null case when then else end union all except intersect distinct asc desc ' +
    'nulls first last between like ilike any some true false cast over partition filter materialized recursive values'
  ).split(' '),
);

/** Tokens of an SQL text; joined, they are the text. */
export function sqlTokens(text: string): readonly Token[] {
  return [...text.matchAll(SQL)].map(({ 0: token, groups = {} }): Token => {
    if (groups['comment'] !== undefined) return { text: token, kind: 'comment' };
    if (groups['text'] !== undefined) return { text: token, kind: 'text' };
    if (groups['parameter'] !== undefined) return { text: token, kind: 'parameter' };
    if (groups['number'] !== undefined) return { text: token, kind: 'number' };
    if (groups['word'] !== undefined)
      return { text: token, kind: KEYWORDS.has(token.toLowerCase()) ? 'keyword' : 'word' };
    return { text: token, kind: 'other' };
  });
}

const YAML =
  /(?<comment>(?<=^|\s)#[^\n]*)|(?<key>[^\s#{}[\],"'-][^\n#{}[\],"']*?(?=:(?:\s|$)))|(?<text>"(?:[^"\\\n]|\\.)*"?|'(?:[^'\n]|'')*'?)|(?<other>\s+|[^\s:#{}[\],"'][^\s:#{}[\],]*|[\s\S])/gm;

/** Tokens of a YAML text; joined, they are the text. */
export function yamlTokens(text: string): readonly Token[] {
  return [...text.matchAll(YAML)].map(({ 0: token, groups = {} }): Token => {
    if (groups['comment'] !== undefined) return { text: token, kind: 'comment' };
    if (groups['key'] !== undefined) return { text: token, kind: 'key' };
    return { text: token, kind: groups['text'] !== undefined ? 'text' : 'other' };
  });
}

/** Words that begin a line. */
const CLAUSES =
  /^(?:select|from|where|group|order|having|limit|offset|union|except|intersect|join|left|right|full|cross|inner|and|or)$/i;

/** Lays governed SQL out over lines: each clause and each subquery begins one. Only white space differs from `sql`. */
export function layOut(sql: string): readonly Token[] {
  const out: Token[] = [];
  /** For each open bracket: true if it holds a query, which is indented. */
  const brackets: boolean[] = [];
  const tokens = sqlTokens(sql);
  const breakLine = (): void => {
    while (out.at(-1)?.text.trim() === '') out.pop();
    if (out.length > 0)
      out.push({ text: `\n${'  '.repeat(brackets.filter(Boolean).length)}`, kind: 'other' });
  };
  for (const [i, token] of tokens.entries()) {
    if (token.text === '(') {
      const next = tokens.slice(i + 1).find(({ text }) => text.trim() !== '');
      out.push(token);
      brackets.push(/^(?:select|with|values)$/i.test(next?.text ?? ''));
      if (brackets.at(-1) === true) breakLine();
      continue;
    }
    if (token.text === ')') {
      if (brackets.pop() === true) breakLine();
      out.push(token);
      continue;
    }
    const isInQuery = brackets.at(-1) !== false;
    if (isInQuery && token.kind === 'keyword' && CLAUSES.test(token.text) && !follows(out, token))
      breakLine();
    if (token.text.trim() !== '' || out.at(-1)?.text.trim() !== '') out.push(token);
    if (isInQuery && token.text === ',' && widthOf(out) > LINE) {
      breakLine();
      out.push({ text: '  ', kind: 'other' });
    }
  }
  return out;
}

/** Width after which a list continues on the next line. */
const LINE = 60;

/** Number of characters in the last line. */
function widthOf(out: readonly Token[]): number {
  const from = out.findLastIndex(({ text }) => text.includes('\n'));
  return out.slice(from + 1).reduce((width, { text }) => width + text.length, 0);
}

/** True if a word continues the clause before it: `left join`, `union all select` in one line. */
function follows(out: readonly Token[], { text }: Token): boolean {
  const before = out.findLast((t) => t.text.trim() !== '')?.text.toLowerCase() ?? '';
  if (before === '(' || before === '') return true;
  return /^join$/i.test(text) && ['left', 'right', 'full', 'cross', 'inner', 'outer'].includes(before);
}
