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
 * @param read attributes read from entities for this chain; null: such attributes are missing
 */
export function subjectsOf(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  read: ReadAttributes | null = null,
): readonly SubjectPolicy[] {
  return identity.chain.map((name, i) => {
    const listed = snapshot.subjects.get(name);
    const member = identity.members?.[i];
    const found = (member === undefined ? listed : exchangedSubject(member, listed, snapshot)) ?? NOBODY;
    return withRead(found, read?.subjects[i]);
  });
}

/** Returns the policy with the attribute values read from entities added. */
export function withRead(
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
  listed: SubjectPolicy | undefined,
  snapshot: PolicySnapshot,
): SubjectPolicy | null {
  if (rule === null) return listed === undefined ? null : narrow(listed, roles);
  const made = snapshot.exchange.byId.get(rule);
  if (made === undefined) return null;
  const own = subject({
    ceiling: intersection(made.ceiling, roles),
    adminCeiling: made.adminCeiling,
    purposes: made.purposes,
    attributes: new Map([...made.attributes(attributes)]),
    imposed: new Set(),
  });
  return listed === undefined ? own : intersect(own, listed, snapshot);
}

function narrow(listed: SubjectPolicy, roles: readonly string[]): SubjectPolicy {
  return Object.freeze({ ...listed, ceiling: intersection(listed.ceiling, roles) });
}

/** Intersects a rule's policy with the subject's entry. Deny rules of the entry apply whatever the token claims. */
function intersect(own: SubjectPolicy, listed: SubjectPolicy, snapshot: PolicySnapshot): SubjectPolicy {
  const denies = (role: string): boolean => (snapshot.roles.get(role)?.denied.size ?? 0) > 0;
  return subject({
    ceiling: intersection(own.ceiling, [...listed.ceiling]),
    adminCeiling: intersection(own.adminCeiling, [...listed.adminCeiling]),
    purposes: intersection(own.purposes, [...listed.purposes]),
    attributes: intersectAttributes(own.attributes, listed.attributes),
    imposed: new Set([...listed.ceiling].filter(denies)),
  });
}

/** Intersects the values of each attribute; an attribute missing on either side is missing from the result. */
function intersectAttributes(own: Attributes, listed: Attributes): Attributes {
  return new Map(
    [...listed].flatMap(([name, value]) => {
      const mine = own.get(name);
      if (mine === undefined) return [];
      if (value === 'any') return [[name, mine] as const];
      return [[name, mine === 'any' ? value : mine.filter((v) => value.includes(v))] as const];
    }),
  );
}

function subject(parts: Omit<SubjectPolicy, 'pattern'>): SubjectPolicy {
  return Object.freeze({ ...parts, pattern: attributePattern(parts.attributes) });
}

function intersection(ceiling: ReadonlySet<string>, roles: readonly string[]): ReadonlySet<string> {
  return new Set(roles.filter((role) => ceiling.has(role)));
}
