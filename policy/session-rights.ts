import { createHash } from 'node:crypto';
import { rightsOf } from './access.js';
import { attributesIn } from './attribute-types.js';
import type { IdentityClaims } from './identity.js';
import type { PolicySnapshot } from './snapshot.js';
import { subjectsOf } from './subjects-of.js';

/** Values of one attribute of one subject; true where it matches everything. */
type RightsValue = true | readonly string[];

/** All of one caller that decides which rows it sees, for a judge outside: it needs nothing of the compiler. */
export interface SessionRights {
  /** Roles whose grants count. */
  readonly roles: readonly string[];
  /** Roles whose deny rules count. */
  readonly denying: readonly string[];
  /** One per subject of the chain, root first; an attribute that is not here is missing. */
  readonly chain: readonly ReadonlyMap<string, RightsValue>[];
}

/**
 * Rights of `identity` under `snapshot` while these conditions hold, with the attributes that its filters use. A grant with conditions counts under a name of its own (`roleIn`).
 */
export function sessionRights(
  identity: IdentityClaims,
  snapshot: PolicySnapshot,
  open: readonly string[],
): SessionRights {
  const { roles: plain, denying } = rightsOf(identity, snapshot, open);
  const conditional = plain.flatMap((role) => {
    const own = snapshot.roles.get(role)?.conditions;
    return own === undefined ? [] : open.filter((key) => own.has(key)).map((key) => roleIn(role, key));
  });
  const roles = [...plain, ...conditional];
  const wanted = attributesIn(snapshot);
  const chain = subjectsOf(identity, snapshot).map(
    ({ attributes }): ReadonlyMap<string, RightsValue> =>
      new Map(
        [...attributes].flatMap(([name, value]): readonly [string, RightsValue][] =>
          wanted.has(name) ? [[name, value === 'any' ? true : value]] : [],
        ),
      ),
  );
  return Object.freeze({ roles, denying, chain });
}

/** Name of a role whose grants with conditions of this key count; no declared role has such a name. */
export function roleIn(role: string, key: string | null): string {
  if (key === null) return role;
  const digest = createHash('sha256').update(key).digest('hex').slice(0, 16);
  return `${role}?${digest}`;
}
