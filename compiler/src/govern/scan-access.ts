import {
  filtersOf,
  type GroupRule,
  type RelationAccess,
  type RelationGrant,
  showsRows,
} from '../access/access.js';
import { columnOf, type Relation } from '../catalog/catalog.js';
import { InternalError } from '../errors/errors.js';
import { fingerprint } from '../plan/fingerprint.js';
import type { EntityScan, Expr, GovernedScan, SourceId } from '../plan/plan.js';

/** The rights on one scan of a statement. */
export interface ScanAccess {
  readonly access: RelationAccess;
  /** Set if some of these grants give no row output; rows then count only in large enough groups. */
  readonly minimum: Minimum | null;
}

export interface Minimum {
  readonly size: number;
  /** The column that identifies an entity; null: the primary key. */
  readonly unit: string | null;
  /** The minimum number of distinct values in a group, by column. */
  readonly distinct: ReadonlyMap<string, number>;
  /** Maximum percentage of a figure that one row may contribute; null: any. */
  readonly dominance: number | null;
  /**
   * Filters of the grants that show rows, one list for each column: a row that matches a filter of every list counts in
   * groups of any size. Null if there is no such row.
   */
  readonly plain: readonly (readonly Expr[])[] | null;
}

/** The access of every scan of a statement; grants without row output are included if their conditions are met. */
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

/** Returns the minimum of a scan that reads `columns` under the grants `all`; null if all of them show rows. */
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

/** Returns the conditions under which `showing` shows every cell of a row in `columns` just as `all` do. */
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
