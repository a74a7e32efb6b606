/** What no token is: the verifier refuses it (E3001). */
const BROKEN = '';

/**
 * The token of `Authorization: Bearer <token>`; null where the header is not there. Two of them, another scheme or
 * anything more is a broken token, never none. `rawHeaders` are names and values in turn, as they arrived: Node's
 * own map drops a second `Authorization`.
 */
export function bearerToken(rawHeaders: readonly string[]): string | null {
  let found: string | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== 'authorization') continue;
    if (found !== null) return BROKEN;
    found = /^bearer +(\S+)$/i.exec(rawHeaders[i + 1] ?? '')?.[1] ?? BROKEN;
  }
  return found;
}

/**
 * What the caller says in header `name`, percent-encoded UTF-8; null where it is not there. Two of them, or what cannot be
 * read, say nothing that anybody is allowed: the empty text.
 */
export function statedIn(rawHeaders: readonly string[], name: string): string | null {
  let found: string | null = null;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    if (rawHeaders[i]?.toLowerCase() !== name) continue;
    if (found !== null) return UNREADABLE;
    found = decoded(rawHeaders[i + 1] ?? '');
  }
  return found;
}

const UNREADABLE = '';

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return UNREADABLE;
  }
}
