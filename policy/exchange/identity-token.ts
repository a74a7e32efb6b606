import { hash } from 'node:crypto';
import { isName } from '../is-name.js';
import { checkTime } from '../tokens/claims.js';
import type { KeySource } from '../tokens/keys.js';
import type { JsonObject } from '../tokens/strict-json.js';
import { readCompact, readObject, readSigningHeader, verifySignature } from '../tokens/token.js';
import { type ExchangeFault, refuseExchange } from './fault.js';

/** Somebody who says who people are: an OIDC provider. */
export interface IdentityIssuer {
  /** Values of `iss` in its tokens. The policy's rules use the first. */
  readonly issuers: readonly string[];
  /** Of which an access token must name one: this service. */
  readonly audiences: readonly string[];
  /** Clients whose ID tokens are taken, by their ids. */
  readonly clients: readonly string[];
  readonly skewSeconds: number;
  readonly maxLifetimeSeconds: number;
  readonly keys: KeySource;
}

export type IdentityTokenKind = 'id_token' | 'access_token';

/** Claims of a verified token of an issuer. */
export interface IdentityClaims {
  /** As the policy's rules call it. */
  readonly issuer: string;
  readonly claims: JsonObject;
  /** Seconds since the epoch. */
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly skewSeconds: number;
  /** Its `jti`; of a token without one, a hash of it. */
  readonly tokenId: string;
}

/** RFC 9068 names access tokens; OIDC leaves ID tokens without a name of their own. */
const ACCESS_TYPES: readonly unknown[] = ['at+jwt', 'application/at+jwt'];
const PLAIN_TYPES: readonly unknown[] = [undefined, 'JWT', 'jwt'];
/** Claims that only ID tokens have (OpenID Connect Core 1.0, 2 and 3.3.2.11). */
const ID_CLAIMS = ['nonce', 'at_hash', 'c_hash'] as const;
const MAX_AUDIENCES = 64;

/**
 * Verifies a token that says who somebody is, as strictly as an actor token: form, header, signature, issuer, audience,
 * times. `iss` is read before the signature, and picks among configured issuers alone.
 *
 * @param now ms since the epoch
 * @throws QueryError E3001, E5033
 */
export async function verifyIdentityToken(
  token: string,
  kind: IdentityTokenKind,
  issuerOf: (issuer: unknown) => IdentityIssuer | null,
  now: number,
): Promise<IdentityClaims> {
  const compact = readCompact(token);
  const typ = compact.header.get('typ');
  const named = ACCESS_TYPES.includes(typ);
  if (!named && !PLAIN_TYPES.includes(typ)) refuseExchange('type');
  const { algorithm, kid } = readSigningHeader(compact.header);
  if (algorithm === 'HS256') refuseExchange('secretAlgorithm');
  const claims = readObject(compact.payload, 'payload');
  const issuer = issuerOf(claims.get('iss'));
  if (issuer === null) refuseExchange('issuer');
  await verifySignature(token, algorithm, await issuer.keys.candidates(algorithm, kid));
  if (kind === 'id_token' ? named : !named && ID_CLAIMS.some((c) => claims.has(c))) refuseExchange('kind');
  checkAudience(claims, kind === 'id_token' ? issuer.clients : issuer.audiences, kind, issuer);
  if (!isName(claims.get('sub'))) refuseExchange('subject');
  const { issuedAt, expiresAt } = checkedTimes(claims, issuer, now);
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
  wanted: readonly string[],
  kind: IdentityTokenKind,
  { clients }: IdentityIssuer,
): void {
  const value = claims.get('aud');
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (list.length > MAX_AUDIENCES || !list.every(isName)) refuseExchange('audience');
  if (!wanted.some((name) => list.includes(name))) refuseExchange('audience');
  // OpenID Connect Core 1.0, 3.1.3.7: of several audiences, whom the token was made for.
  const party = claims.get('azp');
  if (kind !== 'id_token' || (party === undefined && list.length === 1)) return;
  if (!clients.some((client) => client === party)) refuseExchange('party');
}

function checkedTimes(
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

/** By what a token is revoked: its `jti`, or where it has none that serves, a hash of it. */
function tokenIdOf(token: string, jti: unknown): string {
  return isName(jti) ? jti : `sha256:${hash('sha256', token, 'base64url')}`;
}

/** As `tokenIdOf`, of a token that nobody has verified. @throws QueryError E3001 for a text that is none */
export function tokenIdIn(token: string): string {
  return tokenIdOf(token, readObject(readCompact(token).payload, 'payload').get('jti'));
}
