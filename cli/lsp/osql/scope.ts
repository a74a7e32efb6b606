import type { ManifestNames, NamedColumn } from '../names.js';
import { isName, type OsqlToken } from './scan.js';

/** Something that a question reads from, under the name that it has there. */
export interface QuestionSource {
  readonly alias: string;
  /** Of the manifest. */
  readonly relation: string;
  /** Columns that it has beside those of its relation. */
  readonly more: readonly NamedColumn[];
}

const PASSAGE = ['text', 'score', 'cite', 'redacted_fields'];
const WALK = ['depth', 'path'];
/** Words that follow a source and are no alias of it. */
const NO_ALIAS: ReadonlySet<string> = new Set(
  'on using where group order having limit offset join inner left right full cross natural union intersect except window fetch for lateral tablesample select from as'.split(
    ' ',
  ),
);

/** What the tokens of a question read from, as far as they tell. */
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
  /** Index of the token behind it. */
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

/** The text of an argument that is given as `name => 'text'`. */
export function argumentOf(tokens: readonly OsqlToken[], name: string): string | null {
  const at = tokens.findIndex(
    (token, i) => token.kind === 'word' && token.text === name && tokens[i + 1]?.text === '=>',
  );
  const value = at < 0 ? undefined : tokens[at + 2];
  return value?.kind === 'string' ? value.text.slice(1, value.closed ? -1 : undefined) : null;
}

/** The columns that a source has. */
export function columnsIn(
  { relation, more }: QuestionSource,
  { relations }: ManifestNames,
): readonly NamedColumn[] {
  const found = relations.find(({ name }) => name === relation);
  return [...(found?.columns ?? []), ...more];
}
