import type { ManifestNames, NamedColumn } from './names.js';

/** A token of a query. Offsets count UTF-16 code units. */
export interface OsqlToken {
  readonly kind: 'word' | 'quoted' | 'string' | 'number' | 'sign';
  /** Text of the token: words in lower case, quoted names without quotes, anything else unchanged. */
  readonly text: string;
  readonly from: number;
  readonly to: number;
  /** False if a quote is not terminated. */
  readonly closed: boolean;
}

const TOKEN =
  /(?<space>\s+|--[^\n]*|\/\*[\s\S]*?(?:\*\/|$))|(?<quoted>"(?:[^"]|"")*(?:"|$))|(?<string>[eE]?'(?:[^']|'')*(?:'|$))|(?<word>[\p{L}_][\p{L}\p{M}\p{N}_$]*)|(?<number>\d[\w.]*|\$\d+)|(?<sign>=>|::|[\s\S])/gu;

/** Tokens of a text that may be invalid, without comments and whitespace. */
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

export interface Statement {
  readonly tokens: readonly OsqlToken[];
  readonly from: number;
  readonly to: number;
}

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

export function isName(
  token: OsqlToken | undefined,
): token is OsqlToken & { readonly kind: 'word' | 'quoted' } {
  return token !== undefined && (token.kind === 'word' || token.kind === 'quoted');
}

export interface QuestionSource {
  readonly alias: string;
  readonly relation: string;
  /** Columns that RETRIEVE or TRAVERSE adds to those of the relation, such as `score` or `depth`. */
  readonly more: readonly NamedColumn[];
}

const PASSAGE = ['text', 'score', 'cite', 'redacted_fields'];
const WALK = ['depth', 'path'];
/** Keywords that may follow a source, so they are not its alias. */
const NO_ALIAS: ReadonlySet<string> = new Set(
  'on using where group order having limit offset join inner left right full cross natural union intersect except window fetch for lateral tablesample select from as'.split(
    ' ',
  ),
);

export function sourcesIn(tokens: readonly OsqlToken[], names: ManifestNames): readonly QuestionSource[] {
  const sources: QuestionSource[] = [];
  let afterFrom = false;
  for (let at = 0; at < tokens.length; at++) {
    const token = tokens[at];
    const begins = token?.kind === 'word' && (token.text === 'from' || token.text === 'join');
    afterFrom ||= begins && token.text === 'from';
    if (!begins && !(afterFrom && token?.text === ',' && isRelation(tokens, at + 1, names))) continue;
    const { end, relation, more } = sourceAt(tokens, at + 1);
    if (relation === null || !names.relations.some(({ name }) => name === relation)) continue;
    const next = tokens[end]?.text === 'as' && tokens[end]?.kind === 'word' ? tokens[end + 1] : tokens[end];
    const named = isName(next) && (next.kind === 'quoted' || !NO_ALIAS.has(next.text));
    sources.push({ alias: named && next !== undefined ? next.text : relation, relation, more });
  }
  return sources;
}

function isRelation(tokens: readonly OsqlToken[], at: number, { relations }: ManifestNames): boolean {
  const { relation, end } = sourceAt(tokens, at);
  return end - at === 1 && relations.some(({ name }) => name === relation);
}

interface SourceMatch {
  readonly relation: string | null;
  readonly more: readonly NamedColumn[];
  readonly end: number;
}

function sourceAt(tokens: readonly OsqlToken[], at: number): SourceMatch {
  const token = tokens[at];
  if (
    token?.kind === 'word' &&
    tokens[at + 1]?.text === '(' &&
    (token.text === 'retrieve' || token.text === 'traverse')
  ) {
    const end = closing(tokens, at + 1) + 1;
    const isWalk = token.text === 'traverse';
    const relation = argumentOf(tokens.slice(at, end), isWalk ? 'target' : 'facet');
    return {
      relation,
      more: (isWalk ? WALK : PASSAGE).map((name) => ({
        name,
        type: null,
        description: null,
        section: 'columns' as const,
      })),
      end,
    };
  }
  let last = at;
  while (isName(tokens[last]) && tokens[last + 1]?.text === '.' && isName(tokens[last + 2])) last += 2;
  const name = tokens[last];
  return { relation: isName(name) ? name.text : null, more: [], end: last + 1 };
}

function closing(tokens: readonly OsqlToken[], open: number): number {
  let depth = 0;
  for (let at = open; at < tokens.length; at++) {
    if (tokens[at]?.text === '(') depth++;
    else if (tokens[at]?.text === ')' && --depth === 0) return at;
  }
  return tokens.length - 1;
}

export function argumentOf(tokens: readonly OsqlToken[], name: string): string | null {
  const at = tokens.findIndex(
    (token, i) => token.kind === 'word' && token.text === name && tokens[i + 1]?.text === '=>',
  );
  const value = at < 0 ? undefined : tokens[at + 2];
  return value?.kind === 'string' ? value.text.slice(1, value.closed ? -1 : undefined) : null;
}

export function columnsIn(
  { relation, more }: QuestionSource,
  { relations }: ManifestNames,
): readonly NamedColumn[] {
  const found = relations.find(({ name }) => name === relation);
  return [...(found?.columns ?? []), ...more];
}
