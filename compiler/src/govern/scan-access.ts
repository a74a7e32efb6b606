import {
  filtersOf,
  type GroupRule,
  type RelationAccess,
  type RelationGrant,
  showsRows,
} from '../access/access.js';
import { type Column, columnOf, type Relation } from '../catalog/catalog.js';
import { InternalError } from '../errors/errors.js';
import { fingerprint } from '../plan/fingerprint.js';
import { allOf, baseColumn, caseNode, inType, isNotNull, nullOf } from '../plan/nodes.js';
import {
  type CountedGrant,
  type EntityScan,
  type Expr,
  type FromItem,
  type GovernedColumn,
  type GovernedScan,
  GROUP_KEY,
  type GroupMinimum,
  groupValue,
  type Select,
  type SourceId,
} from '../plan/plan.js';
import { leavesOf } from '../plan/walk.js';
import { anyRow } from './folded-filters.js';
import type { GovernedSlots } from './slots.js';

/** The caller's rights on one scan of a statement. */
export interface ScanAccess {
  readonly access: RelationAccess;
  /** Set if some grants allow only aggregates. Rows shown by no other grant then count only in large groups. */
  readonly minimum: Minimum | null;
}

export interface Minimum {
  readonly size: number;
  /** Column that identifies the entities to count in a group; null: the primary key. */
  readonly unit: string | null;
  /** The minimum number of distinct values in a group, by column. */
  readonly distinct: ReadonlyMap<string, number>;
  /** Maximum percentage of an aggregated value that one row may contribute; null: no limit. */
  readonly dominance: number | null;
  /**
   * Lists of filters of the grants that show rows: one list for the row itself and one for each column. A row that
   * matches at least one filter of every list counts in groups of any size. Null if every row needs a large group.
   */
  readonly plain: readonly (readonly Expr[])[] | null;
}

/** The access of every scan of a statement, including grants that allow only aggregates where they apply. */
export class ScanAccesses {
  readonly #scans: ReadonlyMap<SourceId, ScanAccess>;

  constructor(scans: ReadonlyMap<SourceId, ScanAccess>) {
    this.#scans = scans;
  }

  of(scan: EntityScan | GovernedScan): ScanAccess {
    const found = this.#scans.get(scan.id);
    if (found === undefined)
      throw new InternalError(`no access was worked out for a scan of ${scan.relation.name}`);
    return found;
  }
}

/** Returns the group minimum of a scan of `columns` under the grants `all`; null if all of these grants show rows. */
export function minimumOf(
  relation: Relation,
  columns: readonly string[],
  showing: readonly RelationGrant[],
  all: readonly RelationGrant[],
): Minimum | null {
  const rules = all.flatMap((g) => g.groups ?? []);
  if (rules.length === 0) return null;
  return { ...strictestOf(rules), plain: plainConditions(relation, columns, showing, all) };
}

function strictestOf(rules: readonly GroupRule[]): Omit<Minimum, 'plain'> {
  const distinct = new Map<string, number>();
  for (const rule of rules)
    for (const [column, least] of rule.distinct ?? [])
      distinct.set(column, Math.max(least, distinct.get(column) ?? 0));
  const shares = rules.flatMap((r) => r.dominance ?? []);
  const units = new Set(rules.map((r) => r.unit ?? null));
  if (units.size > 1) throw new InternalError('grants on one relation count by different units');
  return {
    size: Math.max(...rules.map((r) => r.minimum)),
    unit: [...units][0] ?? null,
    distinct,
    dominance: shares.length === 0 ? null : Math.min(...shares),
  };
}

/** Returns the conditions under which the grants `showing` show `columns` of a row as all grants do; see `plain`. */
function plainConditions(
  relation: Relation,
  columns: readonly string[],
  showing: readonly RelationGrant[],
  all: readonly RelationGrant[],
): Minimum['plain'] {
  const conditions = new Map<string, readonly Expr[]>();
  const needed = columns.map((name) => {
    const { covering, clearing } = showersOf(relation, name, all);
    return (clearing.every(showsRows) ? covering : clearing).filter(showsRows);
  });
  for (const grants of [showing, ...needed]) {
    if (grants.length === 0) return null;
    const filters = filtersOf(grants);
    if (filters !== null) conditions.set(filters.map(fingerprint).join(), filters);
  }
  return [...conditions.values()];
}

/** Returns the grants that show a column, masked or not, and those that show it in the clear. */
export function showersOf(relation: Relation, name: string, grants: readonly RelationGrant[]) {
  const covering = grants.filter((g) => g.columns.has(name));
  const label = columnOf(relation, name)?.sensitivity ?? null;
  return { covering, clearing: covering.filter((g) => label === null || g.unmask.has(label)) };
}

/** Returns the columns by which rows that may only be aggregated are counted; see `GROUP_KEY`. */
export function groupColumns(
  relation: Relation,
  minimum: Minimum,
  slots: GovernedSlots,
): readonly GovernedColumn[] {
  const ofCounted = (name: string, value: Expr): GovernedColumn =>
    Object.freeze({ name, type: value.type, expr: unlessShown(value, minimum, slots), masked: 'none' });
  return [
    ofCounted(GROUP_KEY, keyOf(relation, minimum)),
    ...[...minimum.distinct.keys()].map((column, i) =>
      ofCounted(groupValue(i), baseColumn(neededColumn(relation, column))),
    ),
  ];
}

/** Returns `value` if the row may only be aggregated; NULL if other grants show the row. */
function unlessShown(value: Expr, { plain }: Minimum, slots: GovernedSlots): Expr {
  if (plain === null) return value;
  const when = allOf(plain.map((filters) => slots.ground(anyRow(filters))));
  return caseNode(when, nullOf(value.type), value);
}

/** Converts a scan's minimum to its form in the plan. @param grants all grants that apply to the scan */
export function groupMinimum(
  { size, distinct, dominance, plain }: Minimum,
  grants: readonly CountedGrant[],
): GroupMinimum {
  return Object.freeze({
    grants: Object.freeze(grants.map(({ id, filter, columns }) => Object.freeze({ id, filter, columns }))),
    size,
    distinct: Object.freeze([...distinct.values()]),
    dominance,
    everyRow: plain === null,
  });
}

/**
 * Returns a condition that excludes rows without a key: they belong to no entity, and would be counted as shown by
 * other grants. Returns no condition for a key of several columns, which is an array and never NULL.
 */
export function hasKey(relation: Relation, minimum: Pick<Minimum, 'unit'>): readonly Expr[] {
  const key = keyOf(relation, minimum);
  if (key.kind !== 'base') return [];
  return [isNotNull(key)];
}

function keyOf(relation: Relation, { unit }: Pick<Minimum, 'unit'>): Expr {
  if (unit !== null) return baseColumn(neededColumn(relation, unit));
  const columns = relation.columns.filter((c) => relation.primaryKey.includes(c.name));
  const [only] = columns;
  if (only === undefined) throw new InternalError(`${relation.name} has no primary key to count by`);
  if (columns.length === 1) return baseColumn(only);
  const texts = columns.map((c) => inType(baseColumn(c), 'text'));
  return Object.freeze({ kind: 'array', items: Object.freeze(texts), type: 'text[]' });
}

function neededColumn(relation: Relation, name: string): Column {
  const column = columnOf(relation, name);
  if (column === null) throw new InternalError(`${relation.name} has no column ${name} to count by`);
  return column;
}

export type CountedScan = GovernedScan & { readonly minimum: GroupMinimum };

/** Returns the scans of a block that contain rows which may only be aggregated. */
export function countedScans(block: Select): readonly CountedScan[] {
  return leavesOf(block.from).filter(isCounted);
}

function isCounted(leaf: FromItem): leaf is CountedScan {
  return leaf.kind === 'governed' && leaf.minimum !== null;
}
