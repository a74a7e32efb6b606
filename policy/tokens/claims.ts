import { readMembers } from '../exchange/members-claim.js';
import { type Identity, mintIdentity } from '../identity.js';
import type { JsonObject } from './strict-json.js';
import {
  CLOCK_SKEW_SECONDS,
  DEFAULT_ISSUER,
  isName,
  MAX_CHAIN,
  MAX_LIFETIME_SECONDS,
  MAX_ROLES,
  refuse,
  TOKEN_VERSION,
  type TokenFault,
} from './token-fault.js';

/** The requirements on the claims of a token. */
export interface ClaimRules {
  readonly tenant: string;
  /** If set, `iss` is required and must be one of these; otherwise it may be absent, or `service`. */
  readonly issuers?: readonly string[];
  /** If set, `aud` is required and must contain one of these. */
  readonly audiences?: readonly string[];
  /** The tolerated clock difference in seconds; default 30. */
  readonly skewSeconds?: number;
  /** True for the gateway's own exchange, the only issuer whose `exchange` claim is used. */
  readonly exchanged?: boolean;
}

/** The validity period of claims, in seconds since the epoch. */
export interface TokenValidity {
  readonly issuedAt: number;
  readonly expiresAt: number;
  readonly notBefore: number | null;
  /** The tolerated clock difference in either direction, in seconds. */
  readonly skewSeconds: number;
}

export interface Claims extends TokenValidity {
  readonly identity: Identity;
}

/**
 * Reads the payload of an actor token, version 2, and checks the type and bounds of every claim and its consistency
 * with the other claims. Times are checked by `checkTime`, not here. Throws E3001. Source: contract, Authentication 3.
 */
export function readClaims(payload: JsonObject, rules: ClaimRules): Claims {
  if (payload.get('version') !== TOKEN_VERSION) refuse('version');
  if (payload.get('tenant_id') !== rules.tenant) refuse('tenant');
  checkIssuer(payload.get('iss'), rules.issuers);
  checkAudience(payload.get('aud'), rules.audiences);
  const chain = readChain(payload.get('chain'));
  const subject = payload.get('sub');
  if (typeof subject !== 'string' || subject !== chain.at(-1)) refuse('subject');
  const tokenId = payload.get('jti');
  if (!isName(tokenId)) refuse('tokenId');
  const validity = readValidity(payload, rules.skewSeconds ?? CLOCK_SKEW_SECONDS);
  const identity = mintIdentity({
    tenant: rules.tenant,
    subject,
    chain,
    roles: readRoles(payload.get('roles'), 'roles'),
    aclRoles: readRoles(payload.get('acl_roles'), 'aclRoles'),
    issuedAt: validity.issuedAt,
    expiresAt: validity.expiresAt,
    skewSeconds: validity.skewSeconds,
    ...(rules.exchanged === true && readExchange(payload, chain.length, validity)),
    tokenId,
    ...readOthers(payload),
  });
  return Object.freeze({ ...validity, identity });
}

/** Checks validity at `now` (ms since the epoch), with the tolerated skew. Refuses if `now` is NaN. Throws E3001. */
export function checkTime(validity: TokenValidity, now: number): void {
  const fault = timeFault(validity, now);
  if (fault !== null) refuse(fault);
}

/** True if the claims are valid at `now`: `checkTime` would not throw. */
export function isTimely(validity: TokenValidity, now: number): boolean {
  return timeFault(validity, now) === null;
}

function timeFault(
  { issuedAt, notBefore, expiresAt, skewSeconds }: TokenValidity,
  now: number,
): 'expired' | 'notYet' | null {
  const skew = skewSeconds * 1_000;
  if (!(now < expiresAt * 1_000 + skew)) return 'expired';
  const start = Math.max(issuedAt, notBefore ?? issuedAt);
  return now >= start * 1_000 - skew ? null : 'notYet';
}

/** True if `identity` has expired at `now` (ms since the epoch); its sessions then end. */
export function isExpired(identity: Identity, now: number): boolean {
  return !(now < (identity.expiresAt + (identity.skewSeconds ?? CLOCK_SKEW_SECONDS)) * 1_000);
}

function readValidity(payload: JsonObject, skewSeconds: number): TokenValidity {
  const issuedAt = readSeconds(payload.get('iat'), 'issuedAt');
  const expiresAt = readSeconds(payload.get('exp'), 'expiry');
  const notBefore = payload.has('nbf') ? readSeconds(payload.get('nbf'), 'notBeforeForm') : null;
  if (expiresAt <= issuedAt) refuse('order');
  if (expiresAt - issuedAt > MAX_LIFETIME_SECONDS) refuse('lifetime');
  return { issuedAt, expiresAt, notBefore, skewSeconds };
}

function readSeconds(value: unknown, fault: TokenFault): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) refuse(fault);
  return value;
}

function readChain(value: unknown): readonly string[] {
  if (!Array.isArray(value) || value.length === 0 || value.length > MAX_CHAIN) refuse('chain');
  const names: readonly unknown[] = value;
  if (!names.every(isName) || new Set(names).size < names.length) refuse('chain');
  return Object.freeze([...names]);
}

/** The standard claims of an actor token, which grant conditions cannot name. */
export const RESERVED_CLAIMS: ReadonlySet<string> = new Set(
  'version tenant_id iss aud chain sub jti roles acl_roles iat exp nbf exchange'.split(' '),
);

/** Reads other claims for grant conditions: strings, numbers, booleans and lists of these. The rest is ignored. */
function readOthers(payload: JsonObject): Pick<Identity, 'claims'> {
  const claims = new Map<string, readonly string[]>();
  for (const [name, value] of payload) {
    if (RESERVED_CLAIMS.has(name)) continue;
    const values = scalarsIn(value);
    if (values !== null) claims.set(name, values);
  }
  return claims.size === 0 ? {} : { claims };
}

/** Converts a string, number or boolean, or a list of these, to strings; null for anything else. */
export function scalarsIn(value: unknown): readonly string[] | null {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.every(isScalar) ? Object.freeze(values.map(String)) : null;
}

function isScalar(value: unknown): value is string | number | boolean {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/** Reads the members of the chain and the source tokens from claim `exchange`. */
function readExchange(
  payload: JsonObject,
  length: number,
  { issuedAt }: TokenValidity,
): Pick<Identity, 'members' | 'sources'> {
  const members = readMembers(payload.get('exchange'), length);
  const from = new Set(members.flatMap((member) => member.from ?? []));
  // Source tokens are revoked by id only: revoking a subject already revokes the exchanged token.
  return { members, sources: [...from].map((tokenId) => ({ chain: [], tokenId, issuedAt })) };
}

/** Reads a list of role names; an absent claim means no roles. Throws E3001. */
function readRoles(value: unknown, fault: TokenFault): readonly string[] {
  if (value === undefined) return Object.freeze([]);
  if (!Array.isArray(value) || value.length > MAX_ROLES) refuse(fault);
  const names: readonly unknown[] = value;
  if (!names.every(isName)) refuse(fault);
  return Object.freeze([...names]);
}

function checkIssuer(value: unknown, issuers: readonly string[] | undefined): void {
  if (value === undefined && issuers === undefined) return;
  if (!(issuers ?? [DEFAULT_ISSUER]).some((issuer) => issuer === value)) refuse('issuer');
}

function checkAudience(value: unknown, audiences: readonly string[] | undefined): void {
  if (value === undefined && audiences === undefined) return;
  const list: readonly unknown[] = Array.isArray(value) ? value : [value];
  if (list.length > MAX_ROLES || !list.every(isName)) refuse('audience');
  if (audiences !== undefined && !audiences.some((a) => list.includes(a))) refuse('audience');
}
