import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type Access, type Catalog, InternalError } from 'osl-compiler';
import { attributesIn, attributesOf, type ReadAttributes, type TableAttribute } from './attributes.js';
import {
  APPROVAL_CHECK_MS,
  type BreakGlass,
  type Circumstances,
  type CompiledConditions,
  type Hours,
  NO_CIRCUMSTANCES,
  nextMinute,
} from './conditions.js';
import type { IdentityClaims } from './identity.js';
import { LazyMap } from './lazy-map.js';
import { type Rights, relationAccess, relationsOf } from './rights.js';
import type { PolicySnapshot, SubjectPolicy } from './snapshot.js';
import { subjectsOf } from './subjects.js';
import { attributesToRead } from './table-attributes.js';
import { refuse } from './tokens/token-fault.js';

/** The rights of one caller, with the attribute values that its row filters use. Frozen. */
export interface EffectiveAccess extends Access {
  /** The effective data roles: those claimed and within the ceiling of every subject in the chain. */
  readonly dataRoles: ReadonlySet<string>;
  /** Keys of the grant conditions that hold for this request. */
  readonly metConditions: readonly string[];
  /** The effective admin roles: those claimed and within the admin ceiling of every subject in the chain. */
  readonly adminRoles: ReadonlySet<string>;
  /**
   * A key that is equal for callers with the same attributes from exchanged tokens and from entities; empty if the
   * caller has neither an exchanged token nor attributes read from entities.
   */
  readonly attributesKey: string;
  /** The attributes that were read from entities; null if none were read. */
  readonly readAttributes: ReadAttributes | null;
  /** The attribute values of subject `index` of the chain (root: 0); empty if the attribute is missing or `any`. */
  attributeValues(index: number, name: string): readonly string[];
}

/**
 * Evaluates `identity` over its whole chain (contract, Authentication 4) in the given circumstances; without
 * circumstances, grants with conditions are ignored. Without `attributes`, attributes from entities are missing. For
 * a caller without any rights, the result has no relations (see `isEmpty`). Throws E3001 for an identity of another
 * tenant, InternalError if `snapshot` was not compiled against `catalog`.
 */
export function effectiveAccess(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  catalog: Catalog,
  circumstances: Circumstances = NO_CIRCUMSTANCES,
  attributes: ReadAttributes | null = null,
): EffectiveAccess {
  if (identity.tenant !== snapshot.tenant) refuse('tenant');
  if (snapshot.catalogVersion !== catalog.version) {
    throw new InternalError('the policy snapshot was compiled against another catalog');
  }
  const rights = callerRights(identity, snapshot);
  const met = rights.conditions
    .filter((conditions) => holds(conditions, identity, snapshot, circumstances))
    .map(({ key }) => key);
  const key = met.length === 0 && attributes === null ? '' : JSON.stringify([met, attributes !== null]);
  const cached = rights.byConditions.get(key);
  if (cached !== undefined && cached.readAttributes?.key === attributes?.key) return cached;
  const access = evaluate(identity, snapshot, catalog, met, attributes);
  if (rights.byConditions.size >= MAX_CONDITION_SETS) rights.byConditions.clear();
  rights.byConditions.set(key, access);
  return access;
}

/**
 * Returns the time until which the result of `effectiveAccess` stays the same if only the time changes: ms since the
 * epoch, later than `circumstances.now`; infinity if the result does not depend on the time. Cached rights must expire
 * then.
 */
export function accessUntil(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  circumstances: Circumstances,
): number {
  let until = Number.POSITIVE_INFINITY;
  for (const conditions of callerRights(identity, snapshot).conditions)
    until = Math.min(until, holdsUntil(conditions, circumstances));
  return until;
}

/** The attributes that must be read from entities for the caller's row filters, in the order of reading. */
export function attributesToReadFor(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
): readonly TableAttribute[] {
  return snapshot.tableAttributes.size === 0 ? NO_ATTRIBUTES : callerRights(identity, snapshot).toRead;
}

const NO_ATTRIBUTES: readonly TableAttribute[] = Object.freeze([]);

/** Returns the caller's break-glass limits (maximum duration, uses in 24 hours); null if break-glass is not allowed. */
export function breakGlassLimitsOf(identity: IdentityClaims, snapshot: PolicySnapshot): BreakGlass | null {
  if (identity.chain.length !== 1) return null;
  const limits = callerRights(identity, snapshot).conditions.flatMap(({ breakGlass }) => breakGlass ?? []);
  if (limits.length === 0) return null;
  return {
    minutes: Math.max(...limits.map(({ minutes }) => minutes)),
    perDay: Math.min(...limits.map(({ perDay }) => perDay)),
  };
}

/** True if nothing is granted. Such requests are refused as `noAccess`, after the limiter has counted them. */
export function isEmpty(access: Access): boolean {
  return access.relations.size === 0 && (access.denied?.size ?? 0) === 0;
}

/**
 * Returns the access of a hypothetical subject that has only this role and every attribute named in its filters, as if
 * all grant conditions held. For checking a policy, never for requests.
 */
export function roleAccess(role: string, snapshot: PolicySnapshot, catalog: Catalog): Access {
  const policy = snapshot.roles.get(role);
  if (policy === undefined) throw new InternalError(`the policy has no role ${role}`);
  const filters = [...policy.grants.values()].flat().flatMap((g) => (g.filter === null ? [] : [g.filter]));
  const pattern = new Map(filters.flatMap((f) => [...attributesOf(f)].map((a) => [a, 'many'] as const)));
  const denyingRoles = policy.denied.size > 0 ? [role] : [];
  const rights: Rights = { roles: [role], denyingRoles, patterns: [pattern], metConditions: null };
  return Object.freeze({
    signature: signatureOf(rights, snapshot),
    policyVersion: snapshot.version,
    chainLength: 1,
    ...relationAccesses(rights, snapshot, catalog),
  });
}

function evaluate(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  catalog: Catalog,
  metConditions: readonly string[],
  readAttributes: ReadAttributes | null,
): EffectiveAccess {
  const caches = cachesOf(snapshot);
  const chain = subjectsOf(identity, snapshot, readAttributes);
  const rights = rightsOf(identity, snapshot, metConditions, chain);
  const signature = signatureOf(rights, snapshot);
  let accesses = caches.bySignature.get(signature);
  if (accesses === undefined) {
    accesses = relationAccesses(rights, snapshot, catalog);
    caches.bySignature.set(signature, accesses);
  }
  return Object.freeze({
    signature,
    policyVersion: snapshot.version,
    chainLength: chain.length,
    ...accesses,
    metConditions,
    dataRoles: new Set(rights.roles),
    adminRoles: new Set(identity.roles.filter((r) => chain.every((s) => s.adminCeiling.has(r)))),
    attributesKey: `${claimedAttributes(identity)}${readAttributes?.key ?? ''}`,
    readAttributes,
    attributeValues: (index: number, name: string) => {
      const value = chain[index]?.attributes.get(name);
      return value === undefined || value === 'any' ? [] : value;
    },
  });
}

type RelationAccesses = Required<Pick<Access, 'relations' | 'denied'>>;

/** Access to each relation in `rights`, computed on first use. */
function relationAccesses(rights: Rights, snapshot: PolicySnapshot, catalog: Catalog): RelationAccesses {
  const { visible, denied } = relationsOf(rights, snapshot, catalog);
  const lazyAccesses = (names: ReadonlySet<string>) =>
    new LazyMap(names, (name: string) => relationAccess(name, rights, snapshot, catalog));
  return { relations: lazyAccesses(visible), denied: lazyAccesses(denied) };
}

/**
 * Computes a caller's rights. For grants, a role must be within every subject's ceiling. Deny rules of a role apply as
 * soon as one subject could have it: otherwise a ceiling could remove a role's deny rules, and a longer chain would see
 * more than a shorter one.
 */
export function rightsOf(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  metConditions: readonly string[],
  chain: readonly SubjectPolicy[] = subjectsOf(identity, snapshot),
): Rights {
  const claimed = [...new Set(identity.aclRoles)].sort();
  const denies = (role: string): boolean => (snapshot.roles.get(role)?.denied.size ?? 0) > 0;
  return Object.freeze({
    roles: claimed.filter((r) => chain.length > 0 && chain.every((s) => s.ceiling.has(r))),
    denyingRoles: denyingRolesOf(claimed, chain, denies),
    patterns: chain.map((s) => s.pattern),
    metConditions,
  });
}

function denyingRolesOf(
  claimed: readonly string[],
  chain: readonly SubjectPolicy[],
  denies: (role: string) => boolean,
): readonly string[] {
  const imposed = new Set(chain.flatMap((s) => [...(s.imposed ?? [])]));
  const own = claimed.filter((r) => denies(r) && chain.some((s) => s.ceiling.has(r)));
  return imposed.size === 0 ? own : [...new Set([...own, ...imposed])].sort();
}

/**
 * Returns a key that distinguishes callers with the same rights but different attribute values in their tokens; empty
 * for a token that was not exchanged.
 */
function claimedAttributes({ members }: IdentityClaims): string {
  const attributesByMember = (members ?? []).map(({ rule, attributes }) => [
    rule,
    [...attributes].sort(([a], [b]) => (a < b ? -1 : 1)),
  ]);
  return attributesByMember.length > 0 ? JSON.stringify(attributesByMember) : '';
}

/** A key that is equal for callers with equal governed plans. It excludes attribute values, which are parameters. */
function signatureOf(rights: Rights, snapshot: PolicySnapshot): string {
  const filterAttributes = attributesIn(snapshot);
  const patterns = rights.patterns.map((p) =>
    [...p].filter(([name]) => filterAttributes.has(name)).sort(([a], [b]) => (a < b ? -1 : 1)),
  );
  return createHash('sha256')
    .update(
      JSON.stringify([
        snapshot.version,
        snapshot.catalogVersion,
        rights.roles,
        rights.denyingRoles,
        patterns,
        rights.metConditions,
      ]),
    )
    .digest('base64url');
}

interface Caches {
  /** Keyed by identity: each verified token has a single identity object. */
  readonly byIdentity: WeakMap<IdentityClaims, CallerRights>;
  /** Shared by callers with the same rights. */
  readonly bySignature: LRUCache<string, RelationAccesses>;
}

interface CallerRights {
  /** The conditions of the grants of the caller's effective roles, sorted by key; usually empty. */
  readonly conditions: readonly CompiledConditions[];
  /** Access by the keys of the conditions that hold: without attributes from entities, and with those read last. */
  readonly byConditions: Map<string, EffectiveAccess>;
  readonly toRead: readonly TableAttribute[];
}

/** Maximum number of entries in `byConditions` for each identity; more than a token usually needs. */
const MAX_CONDITION_SETS = 64;

function callerRights(identity: IdentityClaims, snapshot: PolicySnapshot): CallerRights {
  const { byIdentity } = cachesOf(snapshot);
  const cached = byIdentity.get(identity);
  if (cached !== undefined) return cached;
  const { roles } = rightsOf(identity, snapshot, []);
  const all = new Map(roles.flatMap((r) => [...(snapshot.roles.get(r)?.conditions ?? [])]));
  const conditions = [...all.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  const filters = roles.flatMap((r) => [...(snapshot.roles.get(r)?.grants.values() ?? [])].flat());
  const names = new Set(filters.flatMap(({ filter }) => (filter === null ? [] : [...attributesOf(filter)])));
  const toRead = attributesToRead(names, snapshot);
  const rights = { conditions, byConditions: new Map<string, EffectiveAccess>(), toRead };
  byIdentity.set(identity, rights);
  return rights;
}

const SIGNATURES = 1_000;
const CACHES = new WeakMap<PolicySnapshot, Caches>();

function cachesOf(snapshot: PolicySnapshot): Caches {
  let caches = CACHES.get(snapshot);
  if (caches === undefined) {
    caches = { byIdentity: new WeakMap(), bySignature: new LRUCache({ max: SIGNATURES }) };
    CACHES.set(snapshot, caches);
  }
  return caches;
}

/** True if all of `conditions` hold. A condition on an unknown value does not hold. */
function holds(
  conditions: CompiledConditions,
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  { now, surface, address, purpose: stated, emergency, approved }: Circumstances,
): boolean {
  const { startsAt, endsAt, hours, surfaces, network, claims, purposes, breakGlass, approval } = conditions;
  if (!(now >= startsAt && now < endsAt)) return false;
  if (hours !== null && !isWithin(hours, now)) return false;
  if (surfaces !== null && !surfaces.has(surface)) return false;
  if (network !== null && (address === null || !network(address))) return false;
  for (const [name, values] of claims) {
    const claimed = identity.claims?.get(name) ?? NONE;
    if (!claimed.some((value) => values.has(value))) return false;
  }
  const purpose = purposes === null ? null : purposeOf(identity, snapshot, stated);
  if (purposes !== null && (purpose === null || !purposes.has(purpose))) return false;
  if (approval !== null) {
    const period = approved.get(approval.grant);
    if (period === undefined || !(now >= period.startsAt && now < period.endsAt)) return false;
  }
  return breakGlass === null || isBreakGlassActive(breakGlass, identity, now, emergency);
}

const NONE: readonly string[] = Object.freeze([]);

/** True while break-glass is in use. A caller that acts for somebody cannot use it. */
function isBreakGlassActive(
  { minutes }: BreakGlass,
  { chain }: IdentityClaims,
  now: number,
  emergency: Circumstances['emergency'],
): boolean {
  if (emergency === null || chain.length !== 1) return false;
  return now >= emergency.startedAt && now < emergency.startedAt + minutes * MINUTE_MS;
}

const MINUTE_MS = 60_000;

function isWithin({ clock, from, to, days }: Hours, now: number): boolean {
  const { day, minute } = clock(now);
  if (from < to) return days.has(day) && minute >= from && minute < to;
  return (days.has(day) && minute >= from) || (days.has((day + 6) % 7) && minute < to);
}

/** The time until which the result of `holds` stays the same if only time passes: ms since the epoch, after `now`. */
function holdsUntil(
  { startsAt, endsAt, hours, breakGlass, approval }: CompiledConditions,
  { now, emergency }: Circumstances,
): number {
  const endTimes =
    breakGlass === null || emergency === null ? [] : [emergency.startedAt + breakGlass.minutes * MINUTE_MS];
  if (approval !== null) endTimes.push(now + APPROVAL_CHECK_MS); // an approval may be given or withdrawn at any time
  const moments = [startsAt, endsAt, ...endTimes].filter((moment) => moment > now);
  return Math.min(...moments, hours === null ? Number.POSITIVE_INFINITY : nextMinute(now));
}

/** The token claim with the purposes that the token may be used for: a string or a list of strings. */
export const PURPOSE_CLAIM = 'purpose';

/**
 * Returns the purpose of a request: the stated purpose or, if none is stated, the only purpose in the token. Null if
 * the request has no purpose, or if the policy or the token does not allow it.
 */
export function purposeOf(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  stated: string | null,
): string | null {
  const claimed = identity.claims?.get(PURPOSE_CLAIM);
  const purpose = stated ?? (claimed?.length === 1 ? (claimed[0] ?? null) : null);
  return allowsPurpose(identity, snapshot, purpose) ? purpose : null;
}

/**
 * True if every subject's ceiling includes the purpose, the same rule as for roles, and the purpose is one of the
 * token's purposes, if the token has any.
 */
function allowsPurpose(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  purpose: string | null,
): purpose is string {
  const { chain, claims } = identity;
  if (purpose === null || chain.length === 0) return false;
  if (claims?.get(PURPOSE_CLAIM)?.includes(purpose) === false) return false;
  return subjectsOf(identity, snapshot).every((subject) => subject.purposes.has(purpose));
}
