import { createHash } from 'node:crypto';
import { rightsOf } from './access.js';
import { attributesIn, type ReadAttributes } from './attributes.js';
import type { IdentityClaims } from './identity.js';
import type { PolicySnapshot } from './snapshot.js';
import { subjectsOf } from './subjects.js';

/** The values of one attribute of a subject; `true` stands for `any`. */
type RightsValue = true | readonly string[];

/** The rights of one caller for row security in the database; independent of the compiler. */
export interface SessionRights {
  /** The roles with effective grants. */
  readonly roles: readonly string[];
  /** The roles with effective deny rules. */
  readonly denyingRoles: readonly string[];
  /** The attributes of each subject of the chain, root first. A missing attribute has no entry. */
  readonly chain: readonly ReadonlyMap<string, RightsValue>[];
}

/**
 * Returns the rights of `identity` under the grant conditions that hold (`metConditions`), with the attributes that
 * filters use. A conditional grant belongs to a separate role name (`roleIn`).
 */
export function sessionRights(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  metConditions: readonly string[],
  readAttributes: ReadAttributes | null,
): SessionRights {
  const { roles: effectiveRoles, denyingRoles } = rightsOf(identity, snapshot, metConditions);
  const conditional = effectiveRoles.flatMap((role) => {
    const conditions = snapshot.roles.get(role)?.conditions;
    return conditions === undefined
      ? []
      : metConditions.filter((key) => conditions.has(key)).map((key) => roleIn(role, key));
  });
  const roles = [...effectiveRoles, ...conditional];
  const filterAttributes = attributesIn(snapshot);
  const chain = subjectsOf(identity, snapshot, readAttributes).map(
    ({ attributes }): ReadonlyMap<string, RightsValue> =>
      new Map(
        [...attributes].flatMap(([name, value]): readonly [string, RightsValue][] =>
          filterAttributes.has(name) ? [[name, value === 'any' ? true : value]] : [],
        ),
      ),
  );
  return Object.freeze({ roles, denyingRoles, chain });
}

/**
 * Returns the role name for the grants of `role` whose conditions have this key: `role` itself for null, otherwise a
 * name that no declared role has.
 */
export function roleIn(role: string, key: string | null): string {
  if (key === null) return role;
  const digest = createHash('sha256').update(key).digest('hex').slice(0, 16);
  return `${role}?${digest}`;
}
