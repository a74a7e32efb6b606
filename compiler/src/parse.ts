import type { Node, RawStmt } from '@pgsql/types';
import { hasSqlDetails, loadModule, parseSync, scanSync } from 'libpg-query';
import { InternalError, type Position, queryError } from './errors.js';
import { indexOfByte, positionAt, positionOfIndex, type SourceText } from './text.js';

/** One statement of the Postgres grammar, with its offsets. Mirrors the text; nothing is resolved. */
export interface Parsed {
  readonly source: SourceText;
  readonly node: Node;
}

export interface StatementText {
  readonly text: string;
  /** UTF-16 offset of `text` in what was split. */
  readonly offset: number;
}

/** UTF-16 units of text that one request may have. */
export const MAX_TEXT = 1_048_576;

let loaded = false;

/** Loads the parser. Call once, before anything else of this package. */
export async function ready(): Promise<void> {
  await loadModule();
  loaded = true;
}

/**
 * Parses exactly one statement.
 *
 * @throws QueryError E0511 at the place that is out of grammar.
 */
export function parse(text: string): Parsed {
  const { source, stmts } = parseAll(text);
  const first = stmts[0]?.stmt;
  if (stmts.length === 0) throw queryError('noStatement', {});
  if (stmts.length !== 1 || first === undefined) {
    const second = stmts[1]?.stmt_location;
    throw queryError(
      'oneStatement',
      { count: stmts.length },
      second === undefined ? null : positionAt(source, second),
    );
  }
  return { source, node: first };
}

/** Splits a text of any number of statements, as the simple query protocol allows. */
export function splitStatements(text: string): readonly StatementText[] {
  const { source, stmts } = parseAll(text);
  if (stmts.length <= 1) return stmts.length === 0 ? [] : [{ text, offset: 0 }];
  return stmts.map((s) => {
    const from = positionAt(source, s.stmt_location ?? 0).offset;
    const length = s.stmt_len ?? 0;
    const to = length === 0 ? text.length : positionAt(source, (s.stmt_location ?? 0) + length).offset;
    return { text: text.slice(from, to), offset: from };
  });
}

function parseAll(text: string): { source: SourceText; stmts: readonly RawStmt[] } {
  if (!loaded) throw new InternalError('the parser is not loaded: await ready() first');
  if (text.length > MAX_TEXT) throw queryError('tooLarge', { what: 'the text', limit: MAX_TEXT });
  const nul = text.indexOf('\0');
  if (nul >= 0)
    throw queryError('syntax', { detail: 'the text holds a NUL character' }, positionOfIndex(text, nul));
  const { parsed, quoted } = quoteExtract(text);
  const source = { original: text, quoted };
  try {
    // The parser throws an error without details where there is not even white space.
    return { source, stmts: parsed === '' ? [] : (parseSync(parsed).stmts ?? []) };
  } catch (error) {
    throw asQueryError(error, source, parsed);
  }
}

function asQueryError(error: unknown, source: SourceText, parsed: string): Error {
  if (error instanceof RangeError) return queryError('tooDeep', {});
  if (!hasSqlDetails(error))
    return error instanceof Error ? error : new InternalError('the parser threw no error');
  const details = error.sqlDetails;
  if (details?.message?.startsWith('memory exhausted') === true) return queryError('tooDeep', {});
  // The parser counts this one offset in code points, all others in bytes.
  const before = [...parsed].slice(0, details?.cursorPosition ?? 0).join('');
  const quotes = source.quoted.length === 0 ? 0 : countQuotes(parsed, before, source);
  return queryError(
    'syntax',
    { detail: details?.message ?? 'syntax error' },
    positionOfIndex(source.original, before.length - quotes),
  );
}

/** How many of the quotes put in by `quoteExtract` stand before the end of `before`. */
function countQuotes(parsed: string, before: string, source: SourceText): number {
  return source.quoted.filter((q) => indexOfByte(parsed, q) < before.length).length;
}

const MAYBE_EXTRACT = /extract\s*(?:\(|--|\/\*)/i;

/**
 * `EXTRACT(column, …)` is an operator of OSL-SQL but out of Postgres' grammar, which only has
 * `EXTRACT(field FROM value)`. Quoting the word makes it an ordinary function name.
 */
function quoteExtract(text: string): { parsed: string; quoted: readonly number[] } {
  if (!MAYBE_EXTRACT.test(text)) return { parsed: text, quoted: [] };
  const tokens = scan(text);
  const spans = tokens.filter((t, i) => t.word === 'extract' && isOperatorCall(tokens, i));
  if (spans.length === 0) return { parsed: text, quoted: [] };
  const quoted: number[] = [];
  let parsed = '';
  let at = 0;
  for (const [i, span] of spans.entries()) {
    const start = indexOfByte(text, span.start);
    const end = indexOfByte(text, span.end);
    parsed += `${text.slice(at, start)}"${text.slice(start, end).toLowerCase()}"`;
    quoted.push(span.start + 2 * i, span.end + 2 * i + 1);
    at = end;
  }
  return { parsed: parsed + text.slice(at), quoted };
}

interface Token {
  readonly start: number;
  readonly end: number;
  readonly word: string;
}

/** The tokens of `text` without its comments; none where the scanner refuses (the parser will say why). */
function scan(text: string): readonly Token[] {
  try {
    return scanSync(text)
      .tokens.filter((t) => !t.tokenName.endsWith('_COMMENT'))
      .map((t) => ({
        start: t.start,
        end: t.end,
        word: t.keywordKind === 0 ? t.text : t.text.toLowerCase(),
      }));
  } catch {
    return [];
  }
}

/** Where the statement itself begins, after white space and comments. */
export function startOf({ original }: SourceText): Position | null {
  const first = scan(original)[0];
  return first === undefined ? null : positionOfIndex(original, indexOfByte(original, first.start));
}

/** The keyword that the statement begins with, in upper case. */
export function firstWord({ original }: SourceText): string {
  return scan(original)[0]?.word.toUpperCase() ?? '';
}

/**
 * The byte offset, in the parsed text, of keyword `word`: the last one before `near`, or the first one after it. For
 * what the grammar tells no place of. Undefined where there is no such word.
 */
export function placeOfWord(
  source: SourceText,
  word: string,
  side: 'before' | 'after',
  near: number | undefined,
): number | undefined {
  const at = scan(source.original)
    .filter((t) => t.word === word)
    .map((t) => source.quoted.reduce((offset, quote) => (quote <= offset ? offset + 1 : offset), t.start));
  if (side === 'after') return at.find((start) => start >= (near ?? 0));
  return at.filter((start) => start < (near ?? Number.MAX_SAFE_INTEGER)).at(-1);
}

function isOperatorCall(tokens: readonly Token[], at: number): boolean {
  return tokens[at + 1]?.word === '(' && tokens[at + 3]?.word !== 'from';
}
