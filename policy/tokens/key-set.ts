import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { isKeyId, publicKey, type VerificationKey } from './keys.js';

/** Keys of one set that are looked at; sets of issuers hold two or three. */
const MAX_SET = 64;

/**
 * The keys of a JSON Web Key Set (RFC 7517) that sign tokens which are taken here, each with one algorithm: a set may
 * hold others, for other readers, which are passed over. Null where `text` is no such set.
 */
export function readKeySet(text: string): readonly VerificationKey[] | null {
  const listed = listIn(text);
  if (listed === null || listed.length > MAX_SET) return null;
  return Object.freeze(listed.flatMap((entry) => keyOf(entry) ?? []));
}

function listIn(text: string): readonly unknown[] | null {
  try {
    const set: unknown = JSON.parse(text);
    if (typeof set === 'object' && set !== null && 'keys' in set && Array.isArray(set.keys)) return set.keys;
  } catch {
    // no JSON is no set
  }
  return null;
}

function keyOf(entry: unknown): VerificationKey | null {
  if (typeof entry !== 'object' || entry === null) return null;
  const jwk: JsonWebKey = { ...entry };
  const operations = jwk['key_ops'];
  if (jwk['use'] !== undefined && jwk['use'] !== 'sig') return null;
  if (Array.isArray(operations) && !operations.includes('verify')) return null;
  // A private or a secret key in a public set is a mistake that nothing is built on.
  if (jwk['d'] !== undefined || jwk['kty'] === 'oct') return null;
  try {
    const kid = isKeyId(jwk['kid']) ? jwk['kid'] : null;
    const key = publicKey(createPublicKey({ key: jwk, format: 'jwk' }), kid);
    return jwk['alg'] === undefined || jwk['alg'] === key.algorithm ? key : null;
  } catch {
    return null; // weak, of another kind, or for another reader of the set
  }
}
