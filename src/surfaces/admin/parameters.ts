import { malformed } from '../rest/fault.js';
import { termIn } from '../rest/term.js';

/** Parameters of a URL, each at most once. */
export type Parameters = ReadonlyMap<string, string>;

/** Null where it is not given, or empty. @throws QueryError E0511 */
export function textParameter(given: Parameters, name: string): string | null {
  const text = given.get(name) ?? '';
  return text.trim() === '' ? null : termIn(name, text);
}

/** Names with commas between them. @throws QueryError E0511 */
export function listParameter(given: Parameters, name: string, most: number): readonly string[] | null {
  const text = given.get(name) ?? '';
  if (text.trim() === '') return null;
  const names = text.split(',', most + 1).map((one) => termIn(name, one));
  if (names.length > most) throw malformed(`\`${name}\` lists ${most} names at most`);
  return names;
}

/** @throws QueryError E0511 */
export function countParameter(
  given: Parameters,
  name: string,
  least: number,
  most: number,
  otherwise: number,
): number {
  const text = given.get(name);
  if (text === undefined) return otherwise;
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  if (!(value >= least && value <= most))
    throw malformed(`\`${name}\` is a whole number from ${least} to ${most}`);
  return value;
}

/** One of some words; null where it is not given. @throws QueryError E0511 */
export function wordParameter<const W extends string>(
  given: Parameters,
  name: string,
  words: readonly W[],
): W | null {
  const text = textParameter(given, name);
  if (text === null) return null;
  const word = words.find((one) => one === text);
  if (word === undefined) throw malformed(`\`${name}\` is one of ${words.join(', ')}`);
  return word;
}

/** A moment by RFC 3339, as the log writes it. @throws QueryError E0511 */
export function timeParameter(given: Parameters, name: string): string | null {
  const text = textParameter(given, name);
  if (text === null) return null;
  const ms = /^\d{4}-\d\d-\d\d/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(ms)) throw malformed(`\`${name}\` is a moment, such as 2026-01-31T09:00:00Z`);
  return new Date(ms).toISOString();
}

/** What a page said that the next one goes on from. @throws QueryError E0511 */
export function cursorParameter(given: Parameters): string | null {
  const text = given.get('from') ?? '';
  if (text === '') return null;
  if (!/^[\w-]{1,8192}$/.test(text)) throw malformed('`from` is none that a page gave');
  return text;
}
