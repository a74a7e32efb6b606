import { type Access, type RelationAccess, rowAccess } from '../access/access.js';
import { forMetric } from '../access/metric-access.js';
import { columnsFor, columnsOf } from '../bind/index.js';
import {
  type Catalog,
  type Column,
  type ComputedColumn,
  columnOf,
  type Relation,
} from '../catalog/catalog.js';
import { InternalError } from '../errors/errors.js';
import { nodesIn } from '../plan/walk.js';
import { type FieldMask, fieldMask } from './facet-fields.js';
import { columnRule, type MaskExtent, maskComputes } from './mask.js';

/** The properties of a usable column that a caller may see. */
export interface VisibleColumn {
  readonly column: Column;
  /** Extent to which the value is masked over the rows that the caller sees. */
  readonly masked: MaskExtent;
  /** True if rows show the column; otherwise only aggregates over large enough groups may use it. */
  readonly rows: boolean;
  /** True if the caller can join rows on it: a sealed key that rows show, and no mask prevents the join. */
  readonly joinable: boolean;
  /** Set for a computed column; `column` is then not a column of a table. */
  readonly computed?: ComputedColumn;
}

/** Returns the columns of `relation` that this caller may use, in declared order; empty without access to it. */
export function visibleColumns(
  relation: Relation,
  catalog: Catalog,
  access: Access,
): readonly VisibleColumn[] {
  const rights = access.relations.get(relation.name);
  if (rights === undefined || rights.grants.length === 0) return [];
  const shown = rowAccess(relation.name, access);
  const inRows = shown === undefined ? null : columnsFor(relation, shown);
  const facet = catalog.facets.get(relation.name);
  return [...columnsOf(relation, rights, { catalog, access }).values()]
    .filter((c) => !c.denied)
    .map(({ name, sealed, computed }) => {
      if (computed !== undefined) return computedColumn(computed, catalog, access);
      const rows = inRows?.get(name)?.denied === false && shown !== undefined;
      if (facet !== undefined && rows)
        return field(relation, name, sealed, fieldMask(facet, name, catalog, access));
      return visible(relation, name, sealed, rows, rows ? shown : rights);
    });
}

/** A passage field, which the served version may mask even if policy does not. */
function field(relation: Relation, name: string, sealed: boolean, mask: FieldMask): VisibleColumn {
  const masked = mask === 'searched' ? 'some' : mask;
  const isClear = mask === 'none' || mask === 'searched';
  return Object.freeze({
    column: declaredColumn(relation, name),
    masked,
    rows: true,
    joinable: sealed && isClear,
  });
}

/**
 * Returns a computed column. Rows show it if they show all columns that it reads; it is masked if any of these is
 * masked.
 */
function computedColumn(computed: ComputedColumn, catalog: Catalog, access: Access): VisibleColumn {
  const { name, type, description, reads, sensitivity } = computed;
  let rows = true;
  let masked: MaskExtent = 'none';
  for (const read of reads) {
    const relation = catalog.relations.get(read.relation);
    const shown = rowAccess(read.relation, access);
    if (relation === undefined || shown === undefined || !columnsFor(relation, shown).has(read.column)) {
      rows = false;
      continue;
    }
    const rule = columnRule(relation, read.column, shown);
    if (masked !== 'all' && rule.masked !== 'none') masked = rule.masked;
  }
  const column: Column = Object.freeze({
    name,
    physical: name,
    type,
    description,
    nullable: true,
    sensitivity,
    keyDomain: null,
  });
  return Object.freeze({ column, masked, rows, joinable: false, computed });
}

function declaredColumn(relation: Relation, name: string): Column {
  const column = columnOf(relation, name);
  if (column === null) throw new InternalError(`relation ${relation.name} has no column ${name}`);
  return column;
}

function visible(
  relation: Relation,
  name: string,
  sealed: boolean,
  rows: boolean,
  rights: RelationAccess,
): VisibleColumn {
  const column = declaredColumn(relation, name);
  const { masked, mask } = columnRule(relation, name, rights);
  return Object.freeze({
    column,
    masked,
    rows,
    joinable: rows && sealed && (masked !== 'all' || mask === 'hash'),
  });
}

/**
 * Returns the physical columns whose values statements under `access` may read: those shown, wholly or partly; those in
 * row filters; and the primary key, which breaks ties and distinguishes groups. A column masked by a constant in every
 * row is not included.
 */
export function columnsRead(relation: Relation, access: RelationAccess): ReadonlySet<string> {
  const metrics = new Set(access.grants.flatMap((g) => [...(g.groups?.metrics?.keys() ?? [])]));
  const accesses = [access, ...[...metrics].map((metric) => forMetric(access, metric))];
  const shown = relation.columns.filter((c) => accesses.some((a) => isRead(relation, c.name, a)));
  const keys = relation.primaryKey.flatMap((name) => columnOf(relation, name) ?? []);
  return new Set([
    ...[...shown, ...keys].map((c) => c.physical),
    ...nodesIn(
      access.grants.flatMap(({ filter }) => filter ?? []),
      'base',
    ).map((c) => c.column),
  ]);
}

function isRead(relation: Relation, name: string, access: RelationAccess): boolean {
  if (access.denied.has(name) || !access.grants.some((g) => g.columns.has(name))) return false;
  const rule = columnRule(relation, name, access);
  return rule.masked !== 'all' || maskComputes(rule);
}
