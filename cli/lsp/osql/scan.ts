/** A piece of a question's text. Offsets are UTF-16. */
export interface OsqlToken {
  readonly kind: 'word' | 'quoted' | 'string' | 'number' | 'sign';
  /** A word in lower case, a quoted name without its quotes; else as it stands. */
  readonly text: string;
  readonly from: number;
  readonly to: number;
  /** False for a quote that is not closed. */
  readonly closed: boolean;
}

const TOKEN =
  /(?<space>\s+|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<quoted>"(?:[^"]|"")*(?:"|$))|(?<string>[eE]?'(?:[^']|'')*(?:'|$))|(?<word>[\p{L}_][\p{L}\p{M}\p{N}_$]*)|(?<number>\d[\w.]*|\$\d+)|(?<sign>=>|::|[\s\S])/gu;

/** The tokens of a text of OSL-SQL, be it right or wrong; comments and blanks are left out. */
function tokensOf(text: string): readonly OsqlToken[] {
  const tokens: OsqlToken[] = [];
  for (const { 0: found, index: from, groups = {} } of text.matchAll(TOKEN)) {
    if (groups['space'] !== undefined) continue;
    const to = from + found.length;
    if (groups['quoted'] !== undefined)
      tokens.push({
        kind: 'quoted',
        text: found.slice(1).replace(/"$/, '').replaceAll('""', '"'),
        from,
        to,
        closed: found.length > 1 && found.endsWith('"'),
      });
    else if (groups['string'] !== undefined)
      tokens.push({ kind: 'string', text: found, from, to, closed: /^[eE]?'[\s\S]*'$/.test(found) });
    else if (groups['word'] !== undefined)
      tokens.push({ kind: 'word', text: found.toLowerCase(), from, to, closed: true });
    else
      tokens.push({
        kind: groups['number'] === undefined ? 'sign' : 'number',
        text: found,
        from,
        to,
        closed: true,
      });
  }
  return tokens;
}

/** One question of a file. */
export interface Statement {
  readonly tokens: readonly OsqlToken[];
  readonly from: number;
  readonly to: number;
}

/** The questions of a text, between semicolons; those that say nothing are left out. */
export function statementsOf(text: string): readonly Statement[] {
  const statements: Statement[] = [];
  let own: OsqlToken[] = [];
  const end = (): void => {
    const [first] = own;
    const last = own.at(-1);
    if (first !== undefined && last !== undefined)
      statements.push({ tokens: own, from: first.from, to: last.to });
    own = [];
  };
  for (const token of tokensOf(text)) {
    if (token.kind === 'sign' && token.text === ';') end();
    else own.push(token);
  }
  end();
  return statements;
}

/** True if a token is a name: a word or a quoted one. */
export function isName(
  token: OsqlToken | undefined,
): token is OsqlToken & { readonly kind: 'word' | 'quoted' } {
  return token !== undefined && (token.kind === 'word' || token.kind === 'quoted');
}
