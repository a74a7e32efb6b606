import { type Position, type QueryError, queryError } from 'osl-compiler';

/** Longest part of a name of the caller's that is shown. */
const SHOWN = 64;

export function shownName(name: string): string {
  return `\`${name.slice(0, SHOWN)}\``;
}

/** The fault of a request (E0511); `position` is in the body as it was sent. */
export function malformed(detail: string, position: Position | null = null): QueryError {
  return queryError('malformedBody', { detail }, position);
}
