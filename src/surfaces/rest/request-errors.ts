import { nearest, type Position, type QueryError, queryError } from 'osl-compiler';

/** JSON Pointer (RFC 6901) to a member. */
export function jsonPointer(path: readonly (string | number)[]): string {
  // A long name is cut before it is escaped, and the pointer is then too long to be sent.
  return path
    .map((step) => `/${String(step).slice(0, 2_000).replaceAll('~', '~0').replaceAll('/', '~1')}`)
    .join('');
}

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

/** Error for an unknown name, with the closest known name as a hint. */
export function unknownName(detail: string, name: string, known: readonly string[]): QueryError {
  const near = nearest(name, known);
  if (near !== null) return malformed(detail, null, `perhaps you meant \`${near}\``);
  return malformed(
    detail,
    null,
    known.length === 0 ? null : `known are ${known.map((k) => `\`${k}\``).join(', ')}`,
  );
}

export const LONGEST_TERM = 200;

/** Trims and validates a text: 1 to 200 characters, none of them control characters. @throws QueryError E0511 */
export function termIn(name: string, given: string): string {
  const term = given.trim();
  if (term === '') throw malformed(`\`${name}\` is missing or empty`).about(`/${name}`);
  if ([...term].length > LONGEST_TERM)
    throw queryError('tooLarge', { what: `the length of \`${name}\``, limit: LONGEST_TERM }).about(
      `/${name}`,
    );
  if (/[\p{Cc}\p{Cs}]/u.test(term))
    throw malformed(`\`${name}\` holds a control character`).about(`/${name}`);
  return term;
}

/** Maximum size of a request's body in bytes. */
export const BODY_LIMIT = 2_097_152;
/** Maximum size of a request's head in bytes; a token has at most 8 KiB. */
export const HEAD_LIMIT = 16_384;

/** Returns the catalogue's equivalent of a Fastify or Node error caused by the request; null for any other error. */
export function httpFault(error: unknown): QueryError | null {
  if (!(error instanceof Error)) return null;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  switch (code) {
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return queryError('bodyTooLarge', { limit: BODY_LIMIT });
    case 'FST_ERR_CTP_INVALID_MEDIA_TYPE':
    case 'FST_ERR_ROUTE_MISSING_CONTENT_TYPE':
      return queryError('mediaType', {});
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return queryError('malformedBody', { detail: 'the body has not the length that its head states' });
    case 'FST_ERR_BAD_URL':
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return queryError('malformedBody', { detail: 'the path of the request is not valid' });
    case 'HPE_HEADER_OVERFLOW':
      return queryError('tooLarge', { what: 'the head of the request', limit: HEAD_LIMIT });
    case 'ERR_HTTP_REQUEST_TIMEOUT':
      return queryError('malformedBody', { detail: 'the request did not arrive in time' });
    case 'ECONNRESET':
      return queryError('malformedBody', { detail: 'the request ended before its body was complete' });
    default:
      return code.startsWith('HPE_') || code.startsWith('FST_ERR_CTP_')
        ? queryError('malformedBody', { detail: 'the request is not well formed' })
        : null;
  }
}
