import { hash } from 'node:crypto';
import { checkTime } from '../tokens/claims.js';
import type { KeySource } from '../tokens/keys.js';
import type { JsonObject } from '../tokens/strict-json.js';
import { readCompact, readObject, readSigningHeader, verifySignature } from '../tokens/token.js';
import { isName } from '../tokens/token-fault.js';
import { type ExchangeFault, refuseExchange } from './refusal.js';

/** An OIDC provider. */
export interface IdentityIssuer {
  /** The accepted values of `iss`; rules of the policy name the issuer by the first one. */
  readonly issuers: readonly string[];
  /** The names of this service; an access token must name one of them. */
  readonly audiences: readonly string[];
  /** The ids of clients whose ID tokens are accepted. */
  readonly clients: readonly string[];
  readonly skewSeconds: number;
  readonly maxLifetimeSeconds: number;
  readonly keys: KeySource;
}

export type IdentityTokenKind = 'id_token' | 'access_token';

/** The claims of a verified token from an issuer. */
export interface IssuerClaims {
  /** The issuer's name in rules of the policy. */
  readonly issuer: string;
  readonly claims: JsonObject;
  /** Times in seconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly skewSeconds: number;
  /** The token's id for revocation: `jti`, or a hash of the token if it has no valid `jti`. */
  readonly tokenId: string;
}

/** The token types for access tokens (RFC 9068); OIDC defines none for ID tokens. */
const ACCESS_TYPES: readonly unknown[] = ['at+jwt', 'application/at+jwt'];
const PLAIN_TYPES: readonly unknown[] = [undefined, 'JWT', 'jwt'];
/** Claims that only ID tokens have (OpenID Connect Core 1.0, sections 2 and 3.3.2.11). */
const ID_CLAIMS = ['nonce', 'at_hash', 'c_hash'] as const;
const MAX_AUDIENCES = 64;

/**
 * Verifies an identity token as strictly as an actor token: form, header, signature, issuer, audience, times. `iss` is
 * read before the signature is verified, but only selects among configured issuers.
 *
 * @param now ms since the epoch
 * @throws QueryError E3001, E5033
 */
export async function verifyIdentityToken(
  token: string,
  kind: IdentityTokenKind,
  issuerOf: (issuer: unknown) => IdentityIssuer | null,
  now: number,
): Promise<IssuerClaims> {
  const compact = readCompact(token);
  const typ = compact.header.get('typ');
  const isAccessType = ACCESS_TYPES.includes(typ);
  if (!isAccessType && !PLAIN_TYPES.includes(typ)) refuseExchange('type');
  const { algorithm, kid } = readSigningHeader(compact.header);
  if (algorithm === 'HS256') refuseExchange('secretAlgorithm');
  const claims = readObject(compact.payload, 'payload');
  const issuer = issuerOf(claims.get('iss'));
  if (issuer === null) refuseExchange('issuer');
  await verifySignature(token, algorithm, await issuer.keys.candidates(algorithm, kid));
  if (kind === 'id_token' ? isAccessType : !isAccessType && ID_CLAIMS.some((c) => claims.has(c)))
    refuseExchange('kind');
  checkAudience(claims, kind === 'id_token' ? issuer.clients : issuer.audiences, kind, issuer);
  if (!isName(claims.get('sub'))) refuseExchange('subject');
  const { issuedAt, expiresAt } = readTimes(claims, issuer, now);
  return Object.freeze({
    issuer: issuer.issuers[0] ?? '',
    claims,
    issuedAt,
    expiresAt,
    skewSeconds: issuer.skewSeconds,
    tokenId: tokenIdOf(token, claims.get('jti')),
  });
}

function checkAudience(
  claims: JsonObject,
  accepted: readonly string[],
  kind: IdentityTokenKind,
  { clients }: IdentityIssuer,
): void {
  const value = claims.get('aud');
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (list.length > MAX_AUDIENCES || !list.every(isName)) refuseExchange('audience');
  if (!accepted.some((name) => list.includes(name))) refuseExchange('audience');
  // OpenID Connect Core 1.0, section 3.1.3.7: `azp` is required if there are several audiences.
  const party = claims.get('azp');
  if (kind !== 'id_token' || (party === undefined && list.length === 1)) return;
  if (!clients.some((client) => client === party)) refuseExchange('party');
}

function readTimes(
  claims: JsonObject,
  issuer: IdentityIssuer,
  now: number,
): { readonly issuedAt: number; readonly expiresAt: number } {
  const issuedAt = seconds(claims.get('iat'), 'issuedAt');
  const expiresAt = seconds(claims.get('exp'), 'expiry');
  const notBefore = claims.has('nbf') ? seconds(claims.get('nbf'), 'notBefore') : null;
  if (expiresAt <= issuedAt) refuseExchange('order');
  if (expiresAt - issuedAt > issuer.maxLifetimeSeconds) refuseExchange('lifetime');
  checkTime({ issuedAt, expiresAt, notBefore, skewSeconds: issuer.skewSeconds }, now);
  return { issuedAt, expiresAt };
}

function seconds(value: unknown, fault: ExchangeFault): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) refuseExchange(fault);
  return value;
}

/** The id used for revocation: a valid `jti`, otherwise a hash of the token. */
function tokenIdOf(token: string, jti: unknown): string {
  return isName(jti) ? jti : `sha256:${hash('sha256', token, 'base64url')}`;
}

/** The revocation id of an unverified token. @throws QueryError E3001 if it is malformed */
export function tokenIdIn(token: string): string {
  return tokenIdOf(token, readObject(readCompact(token).payload, 'payload').get('jti'));
}
