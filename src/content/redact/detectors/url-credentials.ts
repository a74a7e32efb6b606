import type { Span } from '../../chunk.js';

/** Of `scheme://user:password@host` the user and the password, of `scheme://token@host` the token. */
const USER_INFO = /(?<=\b[a-z][a-z0-9+.-]{1,20}:\/\/)[^\s/@?#"'<>]{1,256}(?=@[\p{L}\p{N}[])/giu;

export function urlCredentials(text: string): readonly Span[] {
  return [...text.matchAll(USER_INFO)].map(({ 0: match, index }) => ({
    start: index,
    end: index + match.length,
  }));
}
