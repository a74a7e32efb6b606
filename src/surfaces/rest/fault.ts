import { nearest, type Position, type QueryError, queryError } from 'osl-compiler';

/** Maximum characters of a caller's name that are shown. */
const SHOWN = 64;

export function shownName(name: string): string {
  return `\`${name.slice(0, SHOWN)}\``;
}

/** Error for a malformed request (E0511); `position` refers to the body as sent. */
export function malformed(
  detail: string,
  position: Position | null = null,
  hint: string | null = null,
): QueryError {
  return queryError('malformedBody', { detail, hint }, position);
}

/** Error for an unknown name, with the nearest of the known names as a hint. */
export function unknownName(detail: string, name: string, known: readonly string[]): QueryError {
  const near = nearest(name, known);
  if (near !== null) return malformed(detail, null, `perhaps you meant \`${near}\``);
  return malformed(
    detail,
    null,
    known.length === 0 ? null : `known are ${known.map((k) => `\`${k}\``).join(', ')}`,
  );
}

/** Maximum code points of a looked-up text. */
export const LONGEST_TERM = 200;

/** Trimmed text of 1 to 200 characters without control characters. @throws QueryError E0511 */
export function termIn(name: string, given: string): string {
  const term = given.trim();
  if (term === '') throw malformed(`\`${name}\` is missing or empty`);
  if ([...term].length > LONGEST_TERM)
    throw queryError('tooLarge', { what: `the length of \`${name}\``, limit: LONGEST_TERM });
  if (/[\p{Cc}\p{Cs}]/u.test(term)) throw malformed(`\`${name}\` holds a control character`);
  return term;
}
