import { hash } from 'node:crypto';
import { JOSEError } from 'jose/errors';
import { compactVerify } from 'jose/jws/compact/verify';
import { LRUCache } from 'lru-cache';
import type { Identity } from '../identity.js';
import { type ClaimRules, type Claims, checkTime, isTimely, readClaims } from './claims.js';
import {
  isKeyId,
  isTokenAlgorithm,
  type KeySource,
  type TokenAlgorithm,
  type VerificationKey,
} from './keys.js';
import { type JsonFault, type JsonObject, parseJsonObject } from './strict-json.js';
import { MAX_TOKEN_BYTES, refuse, refuseAlgorithm, TOKEN_TYPE } from './token-fault.js';

/** The decoded parts of a compact JWS; nothing is verified yet. */
interface CompactToken {
  readonly header: JsonObject;
  readonly payload: Uint8Array;
}

/**
 * Splits a compact JWS. Stricter than the RFC: each token has exactly one spelling (no padding, white space, spare
 * bits or duplicate keys), so its hash identifies it.
 */
export function readCompact(token: string): CompactToken {
  if (token.length > MAX_TOKEN_BYTES) refuse('size');
  const [header, payload, signature, ...more] = token.split('.');
  if (header === undefined || payload === undefined || signature === undefined || more.length > 0)
    refuse('parts');
  decodeCanonical(signature);
  return { header: readObject(decodeCanonical(header), 'header'), payload: decodeCanonical(payload) };
}

export function readObject(bytes: Uint8Array, part: 'header' | 'payload'): JsonObject {
  const object: JsonObject | JsonFault = parseJsonObject(bytes);
  if (object === 'duplicate key') refuse('duplicateKey');
  if (object === 'not an object') refuse(part);
  return object;
}

function decodeCanonical(part: string): Buffer {
  const bytes = Buffer.from(part, 'base64url');
  if (bytes.length === 0 || bytes.toString('base64url') !== part) refuse('parts');
  return bytes;
}

/** An issuer with its own keys, audiences and clock. */
export interface TrustedIssuer extends Omit<ClaimRules, 'tenant' | 'issuers'> {
  /** The accepted values of `iss`. */
  readonly issuers: readonly string[];
  readonly keys: KeySource;
}

export interface VerifierOptions extends ClaimRules {
  /** Keys for tokens whose `iss` is not one of `trusted`. */
  readonly keys: KeySource;
  /** Returns the trusted issuer with this `iss`, or null. Its tokens are verified by its keys only. */
  readonly trusted?: (issuer: unknown) => TrustedIssuer | null;
  /** The current time, ms since the epoch. */
  readonly now: () => number;
  /** Maximum number of cached tokens; default 10,000. */
  readonly cacheSize?: number;
}

/** Verifies actor tokens (contract, Authentication). Every failure is E3001. */
export interface TokenVerifier {
  /** Verifies a token and returns its identity. @param token a compact JWS without `Bearer` */
  verify(token: string): Promise<Identity>;
  /** Returns the identity of a cached token that is still valid; otherwise null. */
  cached(token: string): Identity | null;
  /** Clears the cache; required when a key is withdrawn. */
  forget(): void;
}

const CACHE_SIZE = 10_000;

export function createVerifier(options: VerifierOptions): TokenVerifier {
  const cache = new LRUCache<string, Claims>({ max: options.cacheSize ?? CACHE_SIZE });
  let generation = 0;

  function cached(token: string): Identity | null {
    const claims = token.length > MAX_TOKEN_BYTES ? undefined : cache.get(cacheKeyOf(token));
    return claims !== undefined && isTimely(claims, options.now()) ? claims.identity : null;
  }

  async function verify(token: string): Promise<Identity> {
    if (token.length > MAX_TOKEN_BYTES) refuse('size');
    const key = cacheKeyOf(token);
    const hit = cache.get(key);
    if (hit !== undefined) {
      checkTime(hit, options.now());
      return hit.identity;
    }
    const started = generation;
    const claims = await verifyUncached(token, options);
    if (started === generation) cache.set(key, claims);
    return claims.identity;
  }

  function forget(): void {
    generation += 1;
    cache.clear();
  }

  return Object.freeze({ cached, verify, forget });
}

/** The cache key: a hash, so that memory contains no usable token. */
function cacheKeyOf(token: string): string {
  return hash('sha256', token, 'base64');
}

/**
 * Performs the full check: form, header, signature, claims, time. Before the signature is verified, only `iss` of the
 * payload is used, to select the issuer's keys.
 */
async function verifyUncached(token: string, options: VerifierOptions): Promise<Claims> {
  const { algorithm, kid, compact } = readActorToken(token);
  const payload = readObject(compact.payload, 'payload');
  const issuer = options.trusted?.(payload.get('iss')) ?? options;
  await verifySignature(token, algorithm, await candidatesFor(issuer.keys, algorithm, kid));
  const claims = readClaims(payload, { ...rulesOf(issuer), tenant: options.tenant });
  checkTime(claims, options.now());
  return claims;
}

/** Returns the keys that may have signed the token. Throws E3001 if no key uses its algorithm. */
async function candidatesFor(
  keys: KeySource,
  algorithm: TokenAlgorithm,
  kid: string | null,
): Promise<readonly VerificationKey[]> {
  const accepted = keys.algorithms?.() ?? null;
  if (accepted !== null && !accepted.includes(algorithm)) refuseAlgorithm(accepted);
  return keys.candidates(algorithm, kid);
}

type TokenRules = Omit<ClaimRules, 'tenant'>;

function rulesOf({ issuers, audiences, skewSeconds, exchanged }: TokenRules): TokenRules {
  return {
    ...(issuers !== undefined && { issuers }),
    ...(audiences !== undefined && { audiences }),
    ...(skewSeconds !== undefined && { skewSeconds }),
    ...(exchanged !== undefined && { exchanged }),
  };
}

function readActorToken(token: string): SigningHeader & { readonly compact: CompactToken } {
  const compact = readCompact(token);
  if (compact.header.get('typ') !== TOKEN_TYPE) refuse('type');
  return { ...readSigningHeader(compact.header), compact };
}

/** Header parameters that supply a key or change how the token is read. */
const REFUSED_PARAMETERS = ['crit', 'b64', 'jwk', 'jku', 'x5u', 'x5c', 'zip', 'enc'] as const;

interface SigningHeader {
  readonly algorithm: TokenAlgorithm;
  readonly kid: string | null;
}

/** Reads the algorithm and key id from the header of a token. Throws E3001. */
export function readSigningHeader(header: JsonObject): SigningHeader {
  const algorithm = header.get('alg');
  if (!isTokenAlgorithm(algorithm)) refuse('algorithm');
  if (REFUSED_PARAMETERS.some((p) => header.has(p))) refuse('headerParameter');
  const kid = header.get('kid');
  if (kid === undefined) return { algorithm, kid: null };
  if (!isKeyId(kid)) refuse('keyId');
  return { algorithm, kid };
}

/** Verifies the signature. @throws QueryError E3001 if none of `keys` has signed `token` */
export async function verifySignature(
  token: string,
  algorithm: TokenAlgorithm,
  keys: readonly VerificationKey[],
): Promise<void> {
  if (keys.length === 0) refuse('unknownKey');
  for (const candidate of keys) {
    // INVARIANT: a key is only used with its own algorithm, whatever the source returns.
    if (candidate.algorithm !== algorithm) continue;
    try {
      await compactVerify(token, candidate.key, { algorithms: [candidate.algorithm] });
      return;
    } catch (error) {
      if (!(error instanceof JOSEError)) throw error;
    }
  }
  refuse('signature');
}
