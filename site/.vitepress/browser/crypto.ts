/** The part of `node:crypto` that the compilation of a manifest and a policy uses. */
import { sha256 } from '@noble/hashes/sha2.js';

export function createHash(algorithm: string) {
  if (algorithm !== 'sha256') throw new TypeError(`no hash ${algorithm} in the browser`);
  const hash = sha256.create();
  const encoder = new TextEncoder();
  const self = {
    update(text: string) {
      hash.update(encoder.encode(text));
      return self;
    },
    digest(encoding: 'hex' | 'base64url'): string {
      const bytes = hash.digest();
      if (encoding === 'hex') return [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('');
      const base64 = btoa(String.fromCharCode(...bytes));
      return base64.replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
    },
  };
  return self;
}

/** Id of the token that the playground supposes; nothing checks it. */
export function randomUUID(): string {
  return 'playground';
}
