import { readFileSync } from 'node:fs';

/**
 * Returns the secret that `reference` names: `env:NAME` or `file:/path`. It is read at each use, so that files can be
 * replaced while the server runs, and never quoted in an error.
 *
 * @throws Error if the secret is missing
 */
export function readSecret(reference: string): string {
  const location = reference.slice(reference.indexOf(':') + 1);
  if (reference.startsWith('file:')) {
    try {
      return readFileSync(location, 'utf8').trim();
    } catch {
      throw new Error(`the secret file ${location} cannot be read`);
    }
  }
  const value = process.env[location];
  if (value === undefined || value === '') throw new Error(`the environment variable ${location} is not set`);
  return value;
}

/** Decodes a Standard Webhooks secret: `whsec_` followed by 24 to 64 bytes in base64. @throws Error if malformed */
export function signingKey(secret: string): Buffer {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1];
  const key = Buffer.from(encoded ?? '', 'base64');
  if (key.length < 24 || key.length > 64)
    throw new Error('a signing secret is `whsec_` and the base64 of 24 to 64 bytes');
  return key;
}
