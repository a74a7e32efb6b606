import type { Relation } from '../catalog/catalog.js';
import { InternalError, queryError } from '../errors/errors.js';
import { fingerprint } from '../plan/fingerprint.js';
import { allOf, FALSE, TRUE } from '../plan/nodes.js';
import type { Expr } from '../plan/plan.js';
import { mapChildren, someExpr } from '../plan/walk.js';
import { GROUPS_ONLY } from './groups-only.js';

/** The replacement for a cell that the caller may not read in the clear. */
export type MaskKind = 'redact' | 'null' | 'hash' | 'partial' | 'year' | 'deny';

/**
 * The rights of one caller: the result of identity and policy, and the only input that `govern` trusts.
 *
 * Attribute values are not included: row filters refer to them as parameters, so that callers with the same rights
 * share plans.
 */
export interface Access {
  /**
   * Equal signatures mean equal plans. Derived from the versions of policy and catalog, the roles with grants or deny
   * rules, the conditions of grants that hold, and, for each subject of the chain, how many values each attribute has:
   * missing, `any`, none, one or several.
   */
  readonly signature: string;
  readonly policyVersion: string;
  /** The number of subjects in the chain, root to leaf; attribute parameters refer to them by index. */
  readonly chainLength: number;
  /** Rights by relation name. A relation that is not listed does not exist for this caller. */
  readonly relations: ReadonlyMap<string, RelationAccess>;
  /**
   * Relations that are granted but that a deny rule covers entirely, with the granted rights. They are not in
   * `relations`, so nothing lists, suggests or reads them; a query that names one is refused as denied.
   */
  readonly denied?: ReadonlyMap<string, RelationAccess>;
}

export interface RelationAccess {
  /** Never empty. A row is visible if a grant's filter accepts it; a cell, if such a grant covers its column. */
  readonly grants: readonly RelationGrant[];
  /** The mask for each sensitivity label used in this relation; a label that has no mask is treated as `deny`. */
  readonly masks: ReadonlyMap<string, MaskKind>;
  /** Columns that a deny rule names. Deny rules override every grant. */
  readonly denied: ReadonlySet<string>;
  /**
   * `by_key` if results that read these rows need a total order, with ties broken by key: statistics and storage order
   * depend on hidden rows and must not influence results. Absent: the engine's order.
   */
  readonly order?: 'by_key';
}

/**
 * Returns the rights to read rows of a bound relation. Grants without row output are left out; only `scanAccesses`
 * applies them.
 *
 * @throws QueryError E2103 if all grants are without row output
 */
export function accessTo(relation: Relation, access: Access): RelationAccess {
  const rows = rowsOf(grantsOn(relation, access));
  if (rows !== null) return rows;
  throw queryError('groupsOnly', { relation: relation.name, ...GROUPS_ONLY.rows(relation.name) });
}

/** Returns all rights on a bound relation, including grants without row output. */
export function grantsOn(relation: Relation, access: Access): RelationAccess {
  const found = access.relations.get(relation.name);
  if (found === undefined || found.grants.length === 0) {
    throw new InternalError(`no grant reaches ${relation.name}`);
  }
  return found;
}

export interface RelationGrant {
  /** Opaque id, safe to show to the caller. */
  readonly id: string;
  readonly columns: ReadonlySet<string>;
  /** Sensitivity labels that this grant shows in the clear. */
  readonly unmask: ReadonlySet<string>;
  /** The row filter over base columns; null means every row. */
  readonly filter: Expr | null;
  /** On a facet: true if its passages may be sent to a language model. Absent: false. */
  readonly decode?: boolean;
  /** Set if the grant gives no row output, only aggregates over groups that are large enough. */
  readonly groups?: GroupRule;
}

/** Conditions under which a grant without row output may be used; see `govern/groups.ts`. */
export interface GroupRule {
  /** The minimum number of entities in a group, counted by primary key or by `unit`. At least 2. */
  readonly minimum: number;
  /** Column that identifies a row's entity, if an entity may have several rows; equal in all grants on a relation. */
  readonly unit?: string;
  /** The minimum number of distinct values in a group, by column. */
  readonly distinct?: ReadonlyMap<string, number>;
  /** The maximum percentage of a figure that one row may contribute; absent: no maximum. */
  readonly dominance?: number;
  /** The only metrics that may be used, with the columns that each reads; null if any aggregate may be used. */
  readonly metrics: ReadonlyMap<string, ReadonlySet<string>> | null;
  /** Set if answers are compared with earlier ones to protect small groups; see `govern/population.ts`. */
  readonly overlap?: OverlapRule;
}

export function showsRows(grant: RelationGrant): boolean {
  return grant.groups === undefined;
}

const rowAccesses = new WeakMap<RelationAccess, RelationAccess | null>();

/** Returns `all` without the grants that show no rows; null if no grant is left. */
function rowsOf(all: RelationAccess): RelationAccess | null {
  if (all.grants.every(showsRows)) return all;
  const known = rowAccesses.get(all);
  if (known !== undefined) return known;
  const grants = Object.freeze(all.grants.filter(showsRows));
  const rows = grants.length === 0 ? null : Object.freeze({ ...all, grants });
  rowAccesses.set(all, rows);
  return rows;
}

/** Returns the row rights on relation `name`; undefined if no grant shows its rows. */
export function rowAccess(name: string, access: Access): RelationAccess | undefined {
  const found = access.relations.get(name);
  return found === undefined ? undefined : (rowsOf(found) ?? undefined);
}

/** Returns the distinct filters of `grants`; null if one of the grants includes every row. */
export function filtersOf(grants: readonly RelationGrant[]): readonly Expr[] | null {
  const distinct = new Map<string, Expr>();
  for (const { filter } of grants) {
    if (filter === null) return null;
    distinct.set(fingerprint(filter), filter);
  }
  return [...distinct.values()];
}

/** True if `grants` provably accept every row that `all` accept. The proof compares filters for equality only. */
export function sameRows(grants: readonly RelationGrant[], all: readonly RelationGrant[]): boolean {
  if (grants.length === 0) return false;
  const mine = filtersOf(grants);
  if (mine === null) return true;
  const theirs = filtersOf(all);
  if (theirs === null) return false;
  const have = new Set(mine.map(fingerprint));
  return theirs.every((f) => have.has(fingerprint(f)));
}

/**
 * The number of values that one subject has for each attribute. `any` matches everything; an attribute that is not
 * listed is missing. A single value is compared by `=`, which Postgres propagates through joins, unlike a list.
 */
export type AttributePattern = ReadonlyMap<string, 'any' | 'none' | 'one' | 'many'>;

export function attributePattern(
  attributes: ReadonlyMap<string, 'any' | readonly string[]>,
): AttributePattern {
  const countOf = (value: 'any' | readonly string[]): 'any' | 'none' | 'one' | 'many' =>
    value === 'any' ? 'any' : value.length === 0 ? 'none' : value.length === 1 ? 'one' : 'many';
  return new Map([...attributes].map(([name, value]) => [name, countOf(value)] as const));
}

/**
 * Ties a predicate to a delegation chain, root first: it must hold for every subject, so a longer chain never sees
 * more. `any` matches everything; if an attribute is missing, the whole predicate is false, so that a NOT around it
 * cannot turn that into "every row".
 */
export function forChain(filter: Expr, chain: readonly AttributePattern[]): Expr {
  if (!mentionsAttribute(filter)) return filter;
  const each = chain.map((pattern, index) =>
    lacksAttribute(filter, pattern) ? FALSE : tieToSubject(filter, pattern, index),
  );
  return each.length === 0 ? FALSE : allOf(each);
}

function mentionsAttribute(filter: Expr): boolean {
  return someExpr(filter, (e) => e.kind === 'attribute_match');
}

function lacksAttribute(filter: Expr, pattern: AttributePattern): boolean {
  return someExpr(filter, (e) => e.kind === 'attribute_match' && !pattern.has(e.attribute));
}

function tieToSubject(expr: Expr, pattern: AttributePattern, index: number): Expr {
  if (expr.kind !== 'attribute_match') {
    return mapChildren(
      expr,
      (e) => tieToSubject(e, pattern, index),
      (q) => q,
    );
  }
  const values = pattern.get(expr.attribute) ?? 'none';
  if (values === 'any') return TRUE;
  if (values === 'none') return FALSE;
  return Object.freeze({ ...expr, subject: Object.freeze({ index, values }) });
}

/** Answers of one subject, or of all members of the group `with`, are compared for `days` days from the first one. */
export interface OverlapRule {
  readonly days: number;
  readonly with: string | null;
}
