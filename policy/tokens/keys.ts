import { createPublicKey, createSecretKey, type JsonWebKey, type KeyObject } from 'node:crypto';

/** HS256 is only for the gateway's own secret; all others use public keys. */
export type TokenAlgorithm = 'HS256' | PublicAlgorithm;
export type PublicAlgorithm = 'RS256' | 'ES256' | 'EdDSA';

export const PUBLIC_ALGORITHMS: readonly PublicAlgorithm[] = Object.freeze(['RS256', 'ES256', 'EdDSA']);

export function isTokenAlgorithm(value: unknown): value is TokenAlgorithm {
  return value === 'HS256' || PUBLIC_ALGORITHMS.some((algorithm) => algorithm === value);
}

/** A key and the only algorithm it may be used with. */
export interface VerificationKey {
  readonly algorithm: TokenAlgorithm;
  /** The key id; null for a key without one. */
  readonly kid: string | null;
  readonly key: KeyObject;
}

/**
 * A source of verification keys. `candidates` returns the keys that a token with this header may be signed with; a key
 * is never taken from the token itself.
 */
export interface KeySource {
  candidates(
    algorithm: TokenAlgorithm,
    kid: string | null,
  ): readonly VerificationKey[] | Promise<readonly VerificationKey[]>;
  /** Returns the algorithms of the keys; null if they are not known locally. */
  readonly algorithms?: () => readonly TokenAlgorithm[] | null;
}

export interface KeyConfiguration {
  /** The tenant's signing secrets, at least 32 bytes each; two during rotation. */
  readonly secrets?: readonly { readonly kid?: string; readonly secret: Uint8Array }[];
  /** Public keys of issuers, PEM (SPKI): RSA of at least 2,048 bits, P-256 or Ed25519. */
  readonly publicKeys?: readonly { readonly kid?: string; readonly pem: string }[];
  /** Already parsed keys, such as those of a key set. */
  readonly keys?: readonly VerificationKey[];
}

const MIN_SECRET_BYTES = 32;
const MIN_MODULUS_BITS = 2_048;
const MAX_KEYS = 16;
/** Accepts the usual key ids: names, dates, base64 thumbprints, URNs. Key ids are only compared, never resolved. */
const KEY_ID = /^(?!.*\.\.)[\w.+/=:~-]{1,128}$/;

export function isKeyId(value: unknown): value is string {
  return typeof value === 'string' && KEY_ID.test(value);
}

/** Creates a key source from the configuration. Throws RangeError for a weak, unsuitable or duplicate key. */
export function configuredKeys(configuration: KeyConfiguration): KeySource {
  const keys = [
    ...(configuration.secrets ?? []).map((s) => secretKey(s.secret, s.kid ?? null)),
    ...(configuration.publicKeys ?? []).map((k) => pemKey(k.pem, k.kid ?? null)),
    ...(configuration.keys ?? []),
  ];
  if (keys.length === 0) throw new RangeError('no verification key is configured');
  if (keys.length > MAX_KEYS) throw new RangeError(`more than ${MAX_KEYS} verification keys are configured`);
  const kids = keys.flatMap((k) => (k.kid === null ? [] : [k.kid]));
  if (new Set(kids).size < kids.length) throw new RangeError('two verification keys have the same kid');
  return Object.freeze({
    candidates: (algorithm: TokenAlgorithm, kid: string | null) => keysFor(keys, algorithm, kid),
    algorithms: () => [...new Set(keys.map((key) => key.algorithm))].sort(),
  });
}

/** Returns the keys that may have signed a token with this header. */
export function keysFor(
  keys: readonly VerificationKey[],
  algorithm: TokenAlgorithm,
  kid: string | null,
): readonly VerificationKey[] {
  const candidates = keys.filter((k) => k.algorithm === algorithm);
  if (kid === null) return candidates;
  const withKid = candidates.filter((k) => k.kid === kid);
  // Issuers put key ids in every token, so if no key has this id, keys configured without an id are candidates.
  return withKid.length > 0 ? withKid : candidates.filter((k) => k.kid === null);
}

/** A replaceable key source. After `replace`, the verifier's cache must be cleared. */
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
  return Object.freeze({ algorithm: 'HS256', kid: requireKeyId(kid), key: createSecretKey(secret) });
}

/** Parses a public key in PEM; its type determines the algorithm. Throws RangeError for an unsupported key. */
export function pemKey(pem: string, kid: string | null): VerificationKey {
  if (pem.includes('PRIVATE KEY'))
    throw new RangeError('a verifier takes the public key only, not the private one');
  return publicKey(createPublicKey(pem), kid);
}

/** Creates a verification key. @throws RangeError for a weak or unsupported key */
function publicKey(key: KeyObject, kid: string | null): VerificationKey {
  return Object.freeze({ algorithm: algorithmOf(key), kid: requireKeyId(kid), key });
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

export function requireKeyId(kid: string | null): string | null {
  if (kid !== null && !isKeyId(kid)) throw new RangeError('a kid is 1 to 128 letters, digits or `_.+/=:~-`');
  return kid;
}

/** Maximum number of keys in a key set; issuers usually have two or three. */
const MAX_SET = 64;

/** Reads the supported signing keys of a JWK Set (RFC 7517), skipping others; null for invalid or too large sets. */
export function readKeySet(text: string): readonly VerificationKey[] | null {
  const entries = entriesIn(text);
  if (entries === null || entries.length > MAX_SET) return null;
  return Object.freeze(entries.flatMap((entry) => keyOf(entry) ?? []));
}

function entriesIn(text: string): readonly unknown[] | null {
  try {
    const set: unknown = JSON.parse(text);
    if (typeof set === 'object' && set !== null && 'keys' in set && Array.isArray(set.keys)) return set.keys;
  } catch {
    // not JSON
  }
  return null;
}

function keyOf(entry: unknown): VerificationKey | null {
  if (typeof entry !== 'object' || entry === null) return null;
  const jwk: JsonWebKey = { ...entry };
  const operations = jwk['key_ops'];
  if (jwk['use'] !== undefined && jwk['use'] !== 'sig') return null;
  if (Array.isArray(operations) && !operations.includes('verify')) return null;
  // Private and secret keys in a public set are a mistake and ignored.
  if (jwk['d'] !== undefined || jwk['kty'] === 'oct') return null;
  try {
    const kid = isKeyId(jwk['kid']) ? jwk['kid'] : null;
    const key = publicKey(createPublicKey({ key: jwk, format: 'jwk' }), kid);
    return jwk['alg'] === undefined || jwk['alg'] === key.algorithm ? key : null;
  } catch {
    return null; // weak or unsupported
  }
}
