import { attributePattern } from 'osl-compiler';
import type { AttributeValue, ReadAttributes } from './attributes.js';
import type { ExchangedMember, IdentityClaims } from './identity.js';
import type { PolicySnapshot, SubjectPolicy } from './snapshot.js';

const NOBODY: SubjectPolicy = Object.freeze({
  ceiling: new Set<string>(),
  adminCeiling: new Set<string>(),
  purposes: new Set<string>(),
  attributes: new Map<string, never>(),
  pattern: new Map<string, never>(),
});

/**
 * Returns the policy of each subject of the chain, root first.
 *
 * @param readAttributes attributes read from entities for this chain; null: such attributes are missing
 */
export function subjectsOf(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  readAttributes: ReadAttributes | null = null,
): readonly SubjectPolicy[] {
  return identity.chain.map((name, i) => {
    const entry = snapshot.subjects.get(name);
    const member = identity.members?.[i];
    const policy = (member === undefined ? entry : exchangedSubject(member, entry, snapshot)) ?? NOBODY;
    return withReadAttributes(policy, readAttributes?.subjects[i]);
  });
}

/** Returns the policy with the attribute values read from entities added. */
export function withReadAttributes(
  policy: SubjectPolicy,
  values: ReadonlyMap<string, readonly string[]> | undefined,
): SubjectPolicy {
  if (values === undefined || values.size === 0) return policy;
  return subject({
    ...policy,
    attributes: new Map<string, AttributeValue>([...policy.attributes, ...values]),
  });
}

type Attributes = SubjectPolicy['attributes'];

/**
 * Returns the current policy of a subject of an exchanged token. If a rule mapped the subject, this is the rule's
 * policy, restricted by the token and by the subject's entry in the policy, if any; null if the rule has changed.
 * Otherwise (actor token), it is the entry, restricted by the token; null if the entry is missing.
 */
function exchangedSubject(
  { rule, roles, attributes }: ExchangedMember,
  entry: SubjectPolicy | undefined,
  snapshot: PolicySnapshot,
): SubjectPolicy | null {
  if (rule === null) return entry === undefined ? null : narrow(entry, roles);
  const exchangeRule = snapshot.exchange.byId.get(rule);
  if (exchangeRule === undefined) return null;
  const mapped = subject({
    ceiling: intersection(exchangeRule.ceiling, roles),
    adminCeiling: exchangeRule.adminCeiling,
    purposes: exchangeRule.purposes,
    attributes: new Map([...exchangeRule.attributes(attributes)]),
    imposed: new Set(),
  });
  return entry === undefined ? mapped : intersect(mapped, entry, snapshot);
}

function narrow(entry: SubjectPolicy, roles: readonly string[]): SubjectPolicy {
  return Object.freeze({ ...entry, ceiling: intersection(entry.ceiling, roles) });
}

/** Intersects a rule's policy with the subject's entry. Deny rules of the entry apply whatever the token claims. */
function intersect(mapped: SubjectPolicy, entry: SubjectPolicy, snapshot: PolicySnapshot): SubjectPolicy {
  const denies = (role: string): boolean => (snapshot.roles.get(role)?.denied.size ?? 0) > 0;
  return subject({
    ceiling: intersection(mapped.ceiling, [...entry.ceiling]),
    adminCeiling: intersection(mapped.adminCeiling, [...entry.adminCeiling]),
    purposes: intersection(mapped.purposes, [...entry.purposes]),
    attributes: intersectAttributes(mapped.attributes, entry.attributes),
    imposed: new Set([...entry.ceiling].filter(denies)),
  });
}

/** Intersects the values of each attribute; an attribute missing on either side is missing from the result. */
function intersectAttributes(mapped: Attributes, entry: Attributes): Attributes {
  return new Map(
    [...entry].flatMap(([name, value]) => {
      const mappedValue = mapped.get(name);
      if (mappedValue === undefined) return [];
      if (value === 'any') return [[name, mappedValue] as const];
      return [[name, mappedValue === 'any' ? value : mappedValue.filter((v) => value.includes(v))] as const];
    }),
  );
}

function subject(parts: Omit<SubjectPolicy, 'pattern'>): SubjectPolicy {
  return Object.freeze({ ...parts, pattern: attributePattern(parts.attributes) });
}

function intersection(ceiling: ReadonlySet<string>, roles: readonly string[]): ReadonlySet<string> {
  return new Set(roles.filter((role) => ceiling.has(role)));
}
