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

/** All that decides which rows and cells a caller sees, save the values of attributes. */
export interface Rights {
  /** Roles whose grants count, sorted. */
  readonly roles: readonly string[];
  /** Roles whose deny rules count, sorted. */
  readonly denying: readonly string[];
  /** One per subject of the chain, root first. */
  readonly patterns: readonly AttributePattern[];
  /** Conditions of grants that hold, by their keys, sorted; null: whatever they are, which nobody is answered with. */
  readonly open: readonly string[] | null;
}

/** Grants of `role` on a relation that count: those without conditions, and those whose conditions hold. */
function countingGrants(role: RolePolicy, name: string, { open }: Rights): readonly PolicyGrant[] {
  const grants = role.grants.get(name) ?? [];
  if (role.conditions.size === 0 || open === null) return grants;
  return grants.filter(({ conditions }) => conditions === null || open.includes(conditions.key));
}

/** Relations that some grant of `role` which counts is on. */
function countingRelations(role: RolePolicy, rights: Rights): readonly string[] {
  const names = [...role.grants.keys()];
  if (role.conditions.size === 0) return names;
  return names.filter((name) => countingGrants(role, name, rights).length > 0);
}

/** Names of the relations that some grant covers. A relation in neither set does not exist for the caller. */
export interface NamedRelations {
  readonly seen: ReadonlySet<string>;
  /** Those that a deny rule takes away whole, and the facets of such entities. */
  readonly denied: ReadonlySet<string>;
}

export function relationsOf(rights: Rights, snapshot: PolicySnapshot, catalog: Catalog): NamedRelations {
  const roles = rolesOf(rights, snapshot);
  const granted = new Set(roles.flatMap((role) => countingRelations(role, rights)));
  const ruled = rights.denying.flatMap((r) => [...(snapshot.roles.get(r)?.denied.keys() ?? [])]);
  const whole = new Set(ruled.filter((name) => deniedOf(name, rights, snapshot, catalog) === 'all'));
  if (whole.size > 0) {
    for (const facet of catalog.facets.values()) if (whole.has(facet.entity)) whole.add(facet.name);
  }
  const denied = new Set([...whole].filter((name) => granted.has(name)));
  return { seen: denied.size === 0 ? granted : new Set([...granted].filter((n) => !denied.has(n))), denied };
}

function rolesOf({ roles }: Rights, snapshot: PolicySnapshot): readonly RolePolicy[] {
  return roles.flatMap((name) => snapshot.roles.get(name) ?? []);
}

/** Access to one relation under the grants and deny rules of `rights`; some grant covers it. */
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
  const granted = rolesOf(rights, snapshot).flatMap((role) => countingGrants(role, name, rights));
  const denied = deniedOf(name, rights, snapshot, catalog);
  const tie = tieTo(rights.patterns);
  return Object.freeze({
    grants: Object.freeze(
      granted.map((g) => (denied === 'all' ? withFilter(g, FALSE) : withFilter(g, tie(g.filter)))),
    ),
    masks,
    denied: denied === 'all' ? new Set(relation.columns.map((c) => c.name)) : denied,
    ...(snapshot.ordered.has(name) ? { order: 'by_key' as const } : {}),
  });
}

/** A relation that is denied as a whole has no rows either, should anything read it. */
const FALSE: Expr = Object.freeze({ kind: 'boolean', value: false, type: 'bool' });
const NOTHING: ReadonlySet<string> = new Set();

/** Columns that the deny rules remove from a relation; rules that name every column remove all of it. */
function deniedOf(name: string, rights: Rights, snapshot: PolicySnapshot, catalog: Catalog): DeniedColumns {
  let denied: DeniedColumns = NOTHING;
  for (const role of rights.denying) {
    const rule = snapshot.roles.get(role)?.denied.get(name);
    if (rule !== undefined) denied = joinDenied(denied, rule);
  }
  const columns = catalog.relations.get(name)?.columns ?? [];
  const all = denied !== 'all' && denied.size > 0 && columns.every((c) => denied.has(c.name));
  return all ? 'all' : denied;
}

/** Ties predicates to the chain, each once: grants that share a text share its tied form. */
function tieTo(patterns: readonly AttributePattern[]): (filter: Expr | null) => Expr | null {
  const tied = new Map<Expr, Expr>();
  return (filter) => {
    if (filter === null) return null;
    const known = tied.get(filter) ?? tie(filter, patterns);
    tied.set(filter, known);
    return known;
  };
}

/**
 * INVARIANT: an attribute that one subject lacks makes the whole filter false, not only the comparison that names
 * it, which a NOT above it would turn into "every row".
 */
function tie(filter: Expr, patterns: readonly AttributePattern[]): Expr {
  const needed = [...attributesOf(filter)];
  const complete = patterns.every((p) => needed.every((a) => p.has(a)));
  return complete ? forChain(filter, patterns) : FALSE;
}

function withFilter(grant: PolicyGrant, filter: Expr | null): RelationGrant {
  return grant.filter === filter ? grant : Object.freeze({ ...grant, filter });
}
