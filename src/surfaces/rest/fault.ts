import { nearest, type Position, type QueryError, queryError } from 'osl-compiler';

/** Longest part of a name of the caller's that is shown. */
const SHOWN = 64;

export function shownName(name: string): string {
  return `\`${name.slice(0, SHOWN)}\``;
}

/** The fault of a request (E0511); `position` is in the body as it was sent. */
export function malformed(
  detail: string,
  position: Position | null = null,
  hint: string | null = null,
): QueryError {
  return queryError('malformedBody', { detail, hint }, position);
}

/** A name that the caller wrote and nobody knows, among those that there are. */
export function unknownName(detail: string, name: string, known: readonly string[]): QueryError {
  const near = nearest(name, known);
  if (near !== null) return malformed(detail, null, `perhaps you meant \`${near}\``);
  return malformed(
    detail,
    null,
    known.length === 0 ? null : `known are ${known.map((k) => `\`${k}\``).join(', ')}`,
  );
}

/** Code points of a text that is looked up. */
export const LONGEST_TERM = 200;

/** `given` without blanks around it: 1 to 200 characters, none of them a control character. @throws QueryError E0511 */
export function termIn(name: string, given: string): string {
  const term = given.trim();
  if (term === '') throw malformed(`\`${name}\` is missing or empty`);
  if ([...term].length > LONGEST_TERM)
    throw queryError('tooLarge', { what: `the length of \`${name}\``, limit: LONGEST_TERM });
  if (/[\p{Cc}\p{Cs}]/u.test(term)) throw malformed(`\`${name}\` holds a control character`);
  return term;
}
