import { attributePattern } from 'osl-compiler';
import type { ExchangedMember } from '../identity.js';
import type { PolicySnapshot, SubjectPolicy } from '../snapshot.js';

type Attributes = SubjectPolicy['attributes'];

/**
 * Rights that the current policy allows a subject of an exchanged token: the rule that made it, where it still stands as it
 * stood then, narrowed to what the token says, and to what the policy says of the subject by name, where it does.
 */
export function exchangedSubject(
  { rule, roles, attributes }: ExchangedMember,
  listed: SubjectPolicy | undefined,
  snapshot: PolicySnapshot,
): SubjectPolicy | null {
  if (rule === null) return listed === undefined ? null : narrowed(listed, roles);
  const made = snapshot.exchange.byId.get(rule);
  if (made === undefined) return null;
  const own = subject({
    ceiling: only(made.ceiling, roles),
    adminCeiling: made.adminCeiling,
    purposes: made.purposes,
    attributes: new Map([...made.attributes(attributes)]),
    imposed: new Set(),
  });
  return listed === undefined ? own : met(own, listed, snapshot);
}

function narrowed(listed: SubjectPolicy, roles: readonly string[]): SubjectPolicy {
  return Object.freeze({ ...listed, ceiling: only(listed.ceiling, roles) });
}

/** No more than either gives. What the policy denies to the subject by name is denied, whatever the token claims. */
function met(own: SubjectPolicy, listed: SubjectPolicy, snapshot: PolicySnapshot): SubjectPolicy {
  const denies = (role: string): boolean => (snapshot.roles.get(role)?.denied.size ?? 0) > 0;
  return subject({
    ceiling: only(own.ceiling, [...listed.ceiling]),
    adminCeiling: only(own.adminCeiling, [...listed.adminCeiling]),
    purposes: only(own.purposes, [...listed.purposes]),
    attributes: metAttributes(own.attributes, listed.attributes),
    imposed: new Set([...listed.ceiling].filter(denies)),
  });
}

/** An attribute that one side lacks is missing. */
function metAttributes(own: Attributes, listed: Attributes): Attributes {
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

function only(ceiling: ReadonlySet<string>, roles: readonly string[]): ReadonlySet<string> {
  return new Set(roles.filter((role) => ceiling.has(role)));
}
