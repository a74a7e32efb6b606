import { createPublicKey, createSecretKey, type JsonWebKey, type KeyObject } from 'node:crypto';

/** HS256 is for the gateway's own secret alone; the others are of public keys. */
export type TokenAlgorithm = 'HS256' | PublicAlgorithm;
export type PublicAlgorithm = 'RS256' | 'ES256' | 'EdDSA';

export const PUBLIC_ALGORITHMS: readonly PublicAlgorithm[] = Object.freeze(['RS256', 'ES256', 'EdDSA']);

export function isTokenAlgorithm(value: unknown): value is TokenAlgorithm {
  return value === 'HS256' || PUBLIC_ALGORITHMS.some((algorithm) => algorithm === value);
}

/** A key and the one algorithm that it may be used with. */
export interface VerificationKey {
  readonly algorithm: TokenAlgorithm;
  /** Null for a key that tokens use without naming it. */
  readonly kid: string | null;
  readonly key: KeyObject;
}

/**
 * Source of verification keys. `candidates` gives the keys that a token with this header may be signed
 * with, none where there are none; it never makes a key from the token itself.
 */
export interface KeySource {
  candidates(
    algorithm: TokenAlgorithm,
    kid: string | null,
  ): readonly VerificationKey[] | Promise<readonly VerificationKey[]>;
  /** Algorithms of its keys, if known without a request. */
  readonly algorithms?: () => readonly TokenAlgorithm[] | null;
}

export interface KeyConfiguration {
  /** The tenant's signing secrets, at least 32 bytes each; two during rotation. */
  readonly secrets?: readonly { readonly kid?: string; readonly secret: Uint8Array }[];
  /** Issuers' public keys as PEM (SPKI): RSA of at least 2,048 bits, P-256 or Ed25519. */
  readonly publicKeys?: readonly { readonly kid?: string; readonly pem: string }[];
  /** Keys that were read before, as of a key set. */
  readonly keys?: readonly VerificationKey[];
}

const MIN_SECRET_BYTES = 32;
const MIN_MODULUS_BITS = 2_048;
const MAX_KEYS = 16;
/** Form of key ids: names, dates, thumbprints in either base64, URNs. They are only compared. */
const KEY_ID = /^(?!.*\.\.)[\w.+/=:~-]{1,128}$/;

export function isKeyId(value: unknown): value is string {
  return typeof value === 'string' && KEY_ID.test(value);
}

/** Keys fixed by configuration. Throws RangeError for a key that is too weak, unfit or named twice. */
export function configuredKeys(configuration: KeyConfiguration): KeySource {
  const keys = [
    ...(configuration.secrets ?? []).map((s) => secretKey(s.secret, s.kid ?? null)),
    ...(configuration.publicKeys ?? []).map((k) => pemKey(k.pem, k.kid ?? null)),
    ...(configuration.keys ?? []),
  ];
  if (keys.length === 0) throw new RangeError('no verification key is configured');
  if (keys.length > MAX_KEYS) throw new RangeError(`more than ${MAX_KEYS} verification keys are configured`);
  const named = keys.flatMap((k) => (k.kid === null ? [] : [k.kid]));
  if (new Set(named).size < named.length) throw new RangeError('two verification keys have the same kid');
  return Object.freeze({
    candidates: (algorithm: TokenAlgorithm, kid: string | null) => keysFor(keys, algorithm, kid),
    algorithms: () => [...new Set(keys.map((key) => key.algorithm))].sort(),
  });
}

/** Those of `keys` that a token with this header may be signed with. */
export function keysFor(
  keys: readonly VerificationKey[],
  algorithm: TokenAlgorithm,
  kid: string | null,
): readonly VerificationKey[] {
  const fit = keys.filter((k) => k.algorithm === algorithm);
  if (kid === null) return fit;
  const named = fit.filter((k) => k.kid === kid);
  // Issuers name their keys in every token; a key that was configured without its name is tried too.
  return named.length > 0 ? named : fit.filter((k) => k.kid === null);
}

/** A source that another can take the place of. Whoever replaces it has the verifier forget what it knows. */
export interface KeyRing extends KeySource {
  replace(next: KeySource): void;
}

export function keyRing(first: KeySource): KeyRing {
  let current = first;
  return Object.freeze({
    candidates: (algorithm: TokenAlgorithm, kid: string | null) => current.candidates(algorithm, kid),
    algorithms: () => current.algorithms?.() ?? null,
    replace: (next: KeySource) => {
      current = next;
    },
  });
}

export function secretKey(secret: Uint8Array, kid: string | null): VerificationKey {
  if (secret.byteLength < MIN_SECRET_BYTES) {
    throw new RangeError(`a signing secret has at least ${MIN_SECRET_BYTES} bytes, not ${secret.byteLength}`);
  }
  return Object.freeze({ algorithm: 'HS256', kid: checkedKeyId(kid), key: createSecretKey(secret) });
}

/** A public key in PEM, with the one algorithm that a key of its kind has here. Throws RangeError for any other. */
export function pemKey(pem: string, kid: string | null): VerificationKey {
  if (pem.includes('PRIVATE KEY'))
    throw new RangeError('a verifier takes the public key only, not the private one');
  return publicKey(createPublicKey(pem), kid);
}

/** Throws RangeError for a key that is weak or of another kind. */
function publicKey(key: KeyObject, kid: string | null): VerificationKey {
  return Object.freeze({ algorithm: algorithmOf(key), kid: checkedKeyId(kid), key });
}

function algorithmOf(key: KeyObject): PublicAlgorithm {
  switch (key.asymmetricKeyType) {
    case 'rsa':
      requireRsa(key);
      return 'RS256';
    case 'ec':
      if (key.asymmetricKeyDetails?.namedCurve === 'prime256v1') return 'ES256';
      throw new RangeError('an ES256 key is on the curve P-256');
    case 'ed25519':
      return 'EdDSA';
    default:
      throw new RangeError('an issuer signs with RSA (RS256), P-256 (ES256) or Ed25519 (EdDSA)');
  }
}

export function requireRsa(key: KeyObject): void {
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  if (key.asymmetricKeyType !== 'rsa' || bits < MIN_MODULUS_BITS) {
    throw new RangeError(`an RS256 key is RSA of at least ${MIN_MODULUS_BITS} bits`);
  }
}

export function checkedKeyId(kid: string | null): string | null {
  if (kid !== null && !isKeyId(kid)) throw new RangeError('a kid is 1 to 128 letters, digits or `_.+/=:~-`');
  return kid;
}

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
