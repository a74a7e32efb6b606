import {
  type AttributePattern,
  type Catalog,
  type Expr,
  forChain,
  InternalError,
  type RelationAccess,
  type RelationGrant,
} from 'osl-compiler';
import { attributesOf } from './attributes.js';
import { joinDenied } from './role.js';
import type { DeniedColumns, PolicyGrant, PolicySnapshot, RolePolicy } from './snapshot.js';

/** Everything that determines which rows and cells a caller sees, apart from attribute values. */
export interface Rights {
  /** The roles with effective grants, sorted. */
  readonly roles: readonly string[];
  /** The roles with effective deny rules, sorted. */
  readonly denyingRoles: readonly string[];
  /** For each subject of the chain, root first, the number of values of each attribute. */
  readonly patterns: readonly AttributePattern[];
  /** Sorted keys of the grant conditions that hold. Null, used only to check a policy, means that all of them hold. */
  readonly metConditions: readonly string[] | null;
}

/** Returns the effective grants of `role` on a relation: those that are unconditional or whose conditions hold. */
function effectiveGrants(role: RolePolicy, name: string, { metConditions }: Rights): readonly PolicyGrant[] {
  const grants = role.grants.get(name) ?? [];
  if (role.conditions.size === 0 || metConditions === null) return grants;
  return grants.filter(({ conditions }) => conditions === null || metConditions.includes(conditions.key));
}

/** The relations with an effective grant of `role`. */
function effectiveRelations(role: RolePolicy, rights: Rights): readonly string[] {
  const names = [...role.grants.keys()];
  if (role.conditions.size === 0) return names;
  return names.filter((name) => effectiveGrants(role, name, rights).length > 0);
}

/** The names of granted relations. A relation in neither set does not exist for the caller. */
export interface NamedRelations {
  readonly visible: ReadonlySet<string>;
  /** The granted relations that are denied entirely, and the granted facets of entities denied entirely. */
  readonly denied: ReadonlySet<string>;
}

export function relationsOf(rights: Rights, snapshot: PolicySnapshot, catalog: Catalog): NamedRelations {
  const roles = rolesOf(rights, snapshot);
  const granted = new Set(roles.flatMap((role) => effectiveRelations(role, rights)));
  const names = rights.denyingRoles.flatMap((r) => [...(snapshot.roles.get(r)?.denied.keys() ?? [])]);
  const allDenied = new Set(names.filter((name) => deniedOf(name, rights, snapshot, catalog) === 'all'));
  if (allDenied.size > 0) {
    for (const facet of catalog.facets.values()) if (allDenied.has(facet.entity)) allDenied.add(facet.name);
  }
  const denied = new Set([...allDenied].filter((name) => granted.has(name)));
  return { visible: new Set([...granted].filter((name) => !denied.has(name))), denied };
}

function rolesOf({ roles }: Rights, snapshot: PolicySnapshot): readonly RolePolicy[] {
  return roles.flatMap((name) => snapshot.roles.get(name) ?? []);
}

/** Access to one relation that has at least one effective grant. */
export function relationAccess(
  name: string,
  rights: Rights,
  snapshot: PolicySnapshot,
  catalog: Catalog,
): RelationAccess {
  const relation = catalog.relations.get(name);
  const masks = snapshot.masks.get(name);
  if (relation === undefined || masks === undefined)
    throw new InternalError('a grant is on a relation that is not');
  const granted = rolesOf(rights, snapshot).flatMap((role) => effectiveGrants(role, name, rights));
  const denied = deniedOf(name, rights, snapshot, catalog);
  const bind = chainBinder(rights.patterns);
  return Object.freeze({
    grants: Object.freeze(
      granted.map((g) => (denied === 'all' ? withFilter(g, FALSE) : withFilter(g, bind(g.filter)))),
    ),
    masks,
    denied: denied === 'all' ? new Set(relation.columns.map((c) => c.name)) : denied,
    ...(snapshot.ordered.has(name) ? { order: 'by_key' as const } : {}),
  });
}

/** The row filter for a relation that is denied entirely, in case anything reads it. */
const FALSE: Expr = Object.freeze({ kind: 'boolean', value: false, type: 'bool' });
const NO_COLUMNS: ReadonlySet<string> = new Set();

/** Returns the denied columns of a relation; `all` if the rules deny the relation or every column. */
function deniedOf(name: string, rights: Rights, snapshot: PolicySnapshot, catalog: Catalog): DeniedColumns {
  let denied: DeniedColumns = NO_COLUMNS;
  for (const role of rights.denyingRoles) {
    const rule = snapshot.roles.get(role)?.denied.get(name);
    if (rule !== undefined) denied = joinDenied(denied, rule);
  }
  const columns = catalog.relations.get(name)?.columns ?? [];
  const all = denied !== 'all' && denied.size > 0 && columns.every((c) => denied.has(c.name));
  return all ? 'all' : denied;
}

/** Returns a function that binds filters to the chain and caches the results, because grants can share a filter. */
function chainBinder(patterns: readonly AttributePattern[]): (filter: Expr | null) => Expr | null {
  const cache = new Map<Expr, Expr>();
  return (filter) => {
    if (filter === null) return null;
    const bound = cache.get(filter) ?? bindToChain(filter, patterns);
    cache.set(filter, bound);
    return bound;
  };
}

/**
 * Binds a filter to the chain. INVARIANT: an attribute that one subject lacks makes the whole filter false, not only the
 * comparison, because a NOT above the comparison would turn that into "every row".
 */
function bindToChain(filter: Expr, patterns: readonly AttributePattern[]): Expr {
  const needed = [...attributesOf(filter)];
  const complete = patterns.every((p) => needed.every((a) => p.has(a)));
  return complete ? forChain(filter, patterns) : FALSE;
}

function withFilter(grant: PolicyGrant, filter: Expr | null): RelationGrant {
  return grant.filter === filter ? grant : Object.freeze({ ...grant, filter });
}
