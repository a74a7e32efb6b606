import { hash } from 'node:crypto';
import { isName } from '../is-name.js';
import { readCompact, readObject } from '../tokens/compact.js';

/** By what a token is revoked: its `jti`, or where it has none that serves, a hash of it. */
export function tokenIdOf(token: string, jti: unknown): string {
  return isName(jti) ? jti : `sha256:${hash('sha256', token, 'base64url')}`;
}

/** As `tokenIdOf`, of a token that nobody has verified. @throws QueryError E3001 for a text that is none */
export function tokenIdIn(token: string): string {
  return tokenIdOf(token, readObject(readCompact(token).payload, 'payload').get('jti'));
}
