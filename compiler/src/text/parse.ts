import type { Node, RawStmt } from '@pgsql/types';
import { hasSqlDetails, loadModule, parseSync } from 'libpg-query';
import { assertNever, InternalError, type Position, queryError } from '../errors/errors.js';
import { LIMITS } from '../limits.js';
import { type Comments, type Lexical, type PlainList, scanText } from './lexical.js';
import {
  bytesBetween,
  indexOfByte,
  indexOfCharacter,
  positionAt,
  positionOfIndex,
  type SourceText,
} from './text.js';

/** A parsed statement. Locations in `node` are byte offsets, and its names are unresolved. */
export interface ParsedStatement {
  readonly source: SourceText;
  readonly node: Node;
  /** Long IN lists by the byte offset of their first item, which represents the list in `node`. */
  readonly lists: ReadonlyMap<number, PlainList>;
}

export interface StatementText {
  readonly text: string;
  /** UTF-16 offset of `text` within the whole text. */
  readonly offset: number;
}

let loaded = false;

/** Loads the parser. Call it before anything else in this package. */
export async function ready(): Promise<void> {
  await loadModule();
  loaded = true;
}

/** A text prepared for the grammar: EXTRACT operators quoted, comments removed, long lists cut to their first item. */
export interface PreparedText {
  readonly source: SourceText;
  readonly parsed: string;
  readonly lists: ReadonlyMap<number, PlainList>;
}

/** The grammar's result as plain data, so that it can be passed between threads. */
export type Grammar =
  | { readonly kind: 'statements'; readonly statements: readonly RawStmt[] }
  /** `character`: the number of code points before the error. */
  | { readonly kind: 'syntax'; readonly detail: string; readonly character: number }
  | { readonly kind: 'deep' };

/** Scans a text in linear time before the grammar parses it. @throws QueryError E0511 if it exceeds a limit */
export function prepareText(text: string): PreparedText {
  if (text.length > LIMITS.text) throw queryError('tooLarge', { what: 'the text', limit: LIMITS.text });
  const nul = text.indexOf('\0');
  if (nul >= 0)
    throw queryError('syntax', { detail: 'the text holds a NUL character' }, positionOfIndex(text, nul));
  return editForGrammar(text, scanText(text));
}

/**
 * Runs the Postgres grammar, which is expensive and cannot be interrupted. Callers therefore parse long texts in a
 * worker thread.
 */
export function applyGrammar(parsed: string): Grammar {
  if (!loaded) throw new InternalError('the parser is not loaded: await ready() first');
  try {
    // For an empty text, the parser throws an error without details.
    return { kind: 'statements', statements: parsed === '' ? [] : (parseSync(parsed).stmts ?? []) };
  } catch (error) {
    if (error instanceof RangeError) return { kind: 'deep' };
    if (!hasSqlDetails(error))
      throw error instanceof Error ? error : new InternalError('the parser threw no error');
    const { message = 'syntax error', cursorPosition = 0 } = error.sqlDetails ?? {};
    if (message.startsWith('memory exhausted')) return { kind: 'deep' };
    return { kind: 'syntax', detail: message, character: cursorPosition };
  }
}

export interface ParsedText {
  readonly prepared: PreparedText;
  readonly grammar: Grammar;
}

export function parseText(text: string): ParsedText {
  const prepared = prepareText(text);
  return { prepared, grammar: applyGrammar(prepared.parsed) };
}

/** Parses exactly one statement. @throws QueryError E0511 with the position of the error */
export function parse(text: string): ParsedStatement {
  return oneStatement(parseText(text));
}

/**
 * Returns the only statement of a text.
 *
 * @throws QueryError E0511 if there are no statements, several statements, or a syntax error
 */
export function oneStatement({ prepared, grammar }: ParsedText): ParsedStatement {
  const { source, lists } = prepared;
  const statements = statementsOf(prepared, grammar);
  const first = statements[0]?.stmt;
  if (statements.length === 0) throw queryError('noStatement', {});
  if (statements.length !== 1 || first === undefined) {
    const second = statements[1]?.stmt_location;
    throw queryError(
      'oneStatement',
      { count: statements.length },
      second === undefined ? null : positionAt(source, second),
    );
  }
  return { source, node: first, lists };
}

/** Splits a text with any number of statements, which the simple query protocol allows. */
export function splitStatements(text: string): readonly StatementText[] {
  return statementTexts(parseText(text));
}

/** Returns the statements of a text. @throws QueryError E0511 if it is invalid or nested too deeply */
export function statementTexts({ prepared, grammar }: ParsedText): readonly StatementText[] {
  const { original: text, quoted } = prepared.source;
  const statements = statementsOf(prepared, grammar);
  if (statements.length <= 1) return statements.length === 0 ? [] : [{ text, offset: 0 }];
  const place = ascending(text, quoted);
  return statements.map(({ stmt_location: start = 0, stmt_len: length = 0 }) => {
    const from = place(start);
    const to = length === 0 ? text.length : place(start + length);
    return { text: text.slice(from, to), offset: from };
  });
}

/** Creates a converter of byte offsets in the parsed text, passed in ascending order, to UTF-16 indexes of `text`. */
function ascending(text: string, quoted: readonly number[]): (offset: number) => number {
  let [index, byte, quotes] = [0, 0, 0];
  return (offset) => {
    while ((quoted[quotes] ?? offset) < offset) quotes++;
    index = indexOfByte(text, offset - quotes, index, byte);
    byte = offset - quotes;
    return index;
  };
}

function statementsOf({ source, parsed }: PreparedText, grammar: Grammar): readonly RawStmt[] {
  switch (grammar.kind) {
    case 'statements':
      return grammar.statements;
    case 'deep':
      throw queryError('tooDeep', {});
    case 'syntax': {
      // Unlike all other offsets, this one counts code points rather than bytes.
      const bytes = bytesBetween(parsed, 0, indexOfCharacter(parsed, grammar.character));
      throw queryError('syntax', { detail: grammar.detail }, positionAt(source, bytes));
    }
    default:
      return assertNever(grammar);
  }
}

type Edit =
  | { readonly kind: 'quote'; readonly start: number; readonly end: number }
  | { readonly kind: 'list'; readonly start: number; readonly end: number; readonly list: PlainList }
  | ({ readonly kind: 'comments' } & Comments);

/**
 * Prepares a text for the grammar: quotes EXTRACT where it is an operator, and replaces comments, and all but the first
 * item of long lists, with as many blanks, so that only the inserted quotes move offsets. Comments are removed because
 * the grammar's scanner rescans a run of operators for each comment in it.
 */
function editForGrammar(text: string, lexical: Lexical): PreparedText {
  const edits = editsOf(text, lexical);
  const quoted: number[] = [];
  const lists = new Map<number, PlainList>();
  let parsed = '';
  let [at, bytes] = [0, 0];
  const pass = (to: number): string => {
    const from = at;
    bytes += bytesBetween(text, from, to);
    at = to;
    return text.slice(from, to);
  };
  for (const edit of edits) {
    parsed += pass(edit.start);
    if (edit.kind === 'quote') {
      quoted.push(bytes + quoted.length);
      parsed += `"${pass(edit.end).toLowerCase()}"`;
      quoted.push(bytes + quoted.length);
    } else if (edit.kind === 'comments') {
      const before = bytes;
      pass(edit.end);
      parsed += edit.mark + ' '.repeat(bytes - before - edit.mark.length);
    } else {
      lists.set(bytes + quoted.length, edit.list);
      parsed += pass(edit.list.firstEnd);
      const before = bytes;
      pass(edit.end);
      parsed += ' '.repeat(bytes - before);
    }
  }
  return { source: { original: text, quoted }, parsed: parsed + text.slice(at), lists };
}

const MAYBE_EXTRACT = /extract\s*(?:\(|--|\/\*)/i;

/**
 * Returns the edits that quote EXTRACT in `EXTRACT(column, …)`. That is an OSL-SQL operator, but Postgres' grammar
 * only has `EXTRACT(field FROM value)`; the quotes make it an ordinary function name.
 */
function editsOf(text: string, lexical: Lexical): readonly Edit[] {
  const { lists, comments } = lexical;
  const plain: readonly Edit[] = [
    ...lists.map((list): Edit => ({ kind: 'list', start: list.start, end: list.end, list })),
    ...comments.map((c): Edit => ({ kind: 'comments', ...c })),
  ];
  if (!MAYBE_EXTRACT.test(text)) return inOrder(plain);
  const tokens = tokensIn(text, lexical);
  const quotes = tokens.flatMap((t, i): readonly Edit[] =>
    t.word === 'extract' && isOperatorCall(tokens, i) ? [{ kind: 'quote', start: t.start, end: t.end }] : [],
  );
  return inOrder([...plain, ...quotes]);
}

function inOrder(edits: readonly Edit[]): readonly Edit[] {
  return edits.length < 2 ? edits : [...edits].sort((a, b) => a.start - b.start);
}

/** A token. `start` and `end` are UTF-16 offsets; `word` is in lower case. */
interface SqlToken {
  readonly start: number;
  readonly end: number;
  readonly word: string;
}

function tokensIn(text: string, { bounds }: Lexical): readonly SqlToken[] {
  const tokens: SqlToken[] = [];
  for (let i = 0; i + 1 < bounds.length; i += 2) {
    const [start = 0, end = 0] = [bounds[i], bounds[i + 1]];
    tokens.push({ start, end, word: text.slice(start, end).toLowerCase() });
  }
  return tokens;
}

/** Returns the tokens of a parsed text, without comments. Quoted names keep their quotes and match no keyword. */
function tokensOf(text: string): readonly SqlToken[] {
  return tokensIn(text, scanText(text));
}

export function startOf({ original }: SourceText): Position | null {
  const [first] = tokensOf(original);
  return first === undefined ? null : positionOfIndex(original, first.start);
}

/** Returns the first token of a statement (usually a keyword) in upper case; empty if there is none. */
export function firstWord({ original }: SourceText): string {
  return tokensOf(original)[0]?.word.toUpperCase() ?? '';
}

/**
 * Returns the byte offset, in the parsed text, of keyword `word`: the last occurrence before `near`, or the first one
 * after `near`. Use it for syntax whose location the grammar does not report.
 */
export function locationOfWord(
  { original, quoted }: SourceText,
  word: string,
  side: 'before' | 'after',
  near: number | undefined,
): number | undefined {
  let last: number | undefined;
  let [at, byte, quotes] = [0, 0, 0];
  for (const token of tokensOf(original)) {
    if (token.word !== word) continue;
    byte += bytesBetween(original, at, token.start);
    at = token.start;
    while ((quoted[quotes] ?? Number.POSITIVE_INFINITY) <= byte + quotes) quotes++;
    const place = byte + quotes;
    if (side === 'after' && place >= (near ?? 0)) return place;
    if (side === 'before' && place >= (near ?? Number.MAX_SAFE_INTEGER)) break;
    if (side === 'before') last = place;
  }
  return last;
}

function isOperatorCall(tokens: readonly SqlToken[], at: number): boolean {
  return tokens[at + 1]?.word === '(' && tokens[at + 3]?.word !== 'from';
}

/**
 * Returns the query inside `DECLARE … CURSOR FOR <query>`, `PREPARE … AS <query>`, `EXPLAIN … <query>` or `COPY
 * (<query>) TO …`; otherwise null. The text must have been accepted by `parse`.
 *
 * Everything before the query is replaced by white space, so that positions in the result are positions in `text`.
 */
export function innerQuery(text: string): string | null {
  const tokens = tokensOf(text);
  const is = (i: number, word: string): boolean => tokens[i]?.word === word;
  const cut = (from: number, to: number): string =>
    text.slice(0, from).replace(/[^ \t\n\r\f\v]+/g, (word) => ' '.repeat(word.length)) + text.slice(from, to);
  const before = BEFORE_QUERY.get(tokens[0]?.word ?? '');
  const end = semicolonOr(tokens.at(-1), text.length);
  if (before !== undefined) {
    const at = tokens.findIndex((_, i) => i > 1 && is(i, before));
    return at < 0 ? null : cut(tokens[at]?.end ?? text.length, end);
  }
  if (is(0, 'explain')) return cut(tokens[explainedStatement(tokens)]?.start ?? text.length, end);
  if (!is(0, 'copy') || !is(1, '(')) return null;
  let depth = 0;
  for (const [i, token] of tokens.entries()) {
    if (is(i, '(')) depth++;
    else if (is(i, ')') && --depth === 0) return cut(tokens[1]?.end ?? text.length, token.start);
  }
  return null;
}

/** Maps the first word of a statement to the word before its query. */
const BEFORE_QUERY: ReadonlyMap<string, string> = new Map([
  ['declare', 'for'],
  ['prepare', 'as'],
]);

/** Returns the index of the first token of the statement after EXPLAIN and its options. */
function explainedStatement(tokens: readonly SqlToken[]): number {
  const word = (i: number): string => tokens[i]?.word ?? '';
  if (word(1) !== '(' || BEGINS_QUERY.has(word(2)))
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

const EXPLAIN_WORDS: ReadonlySet<string> = new Set(['analyze', 'analyse', 'verbose']);
/** Words that start a query in parentheses. EXPLAIN has no options with these names. */
const BEGINS_QUERY: ReadonlySet<string> = new Set(['select', 'with', 'values', 'table', '(']);

function semicolonOr(last: SqlToken | undefined, end: number): number {
  return last?.word === ';' ? last.start : end;
}
