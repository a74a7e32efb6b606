import { type Access, type RelationAccess, rowAccess } from '../access/access.js';
import { forMetric } from '../access/metric-access.js';
import { columnsFor, columnsOf } from '../bind/index.js';
import {
  type Catalog,
  type Column,
  type ComputedColumn,
  columnOf,
  type FacetStore,
  type Relation,
} from '../catalog/catalog.js';
import { InternalError } from '../errors/errors.js';
import type { ColumnRef, SourceId } from '../plan/plan.js';
import { isOfPassage, type Retrieval, type RuntimeRelation } from '../plan/runtime.js';
import { nodesIn } from '../plan/walk.js';
import { servedAccess, servedVersion } from './facet-version.js';
import { columnRule, type MaskExtent, maskComputes } from './mask.js';

/** The properties of a usable column that a caller may see. */
export interface VisibleColumn {
  readonly column: Column;
  /** Extent to which the value is masked over the rows that the caller sees. */
  readonly masked: MaskExtent;
  /** True if the column can be shown row by row; otherwise it can only be aggregated over large groups. */
  readonly rows: boolean;
  /** True if the caller can join on it: a sealed key (usable in joins), shown row by row, with no mask in the way. */
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

/** Returns a passage field, which the served version may mask even if policy does not. */
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
 * Returns a computed column. It can be shown row by row if all columns that it reads can, and is masked if any of them
 * is.
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

/**
 * Extent to which a field is masked in a caller's passages. `searched`: only in the passages in which the served
 * version redacted something, which cannot be known from the plan.
 */
export type FieldMask = MaskExtent | 'searched';

/**
 * Returns the mask of field `name`, the entity key or metadata, in the passages of `facet`: policy masks, and values
 * that the caller's version does not contain. A caller without a grant sees no passages, so nothing is masked.
 */
export function fieldMask(facet: FacetStore, name: string, catalog: Catalog, access: Access): FieldMask {
  const relation = catalog.relations.get(facet.name);
  const column = relation === undefined ? null : columnOf(relation, name);
  if (relation === undefined || column === null)
    throw new InternalError(`facet ${facet.name} has no field ${name}`);
  const allowed = rowAccess(facet.name, access);
  if (allowed === undefined) return 'none';
  if (columnsFor(relation, allowed).get(name)?.denied !== false) return 'all';
  const version = servedVersion(facet, catalog, access);
  const served = version === null ? allowed : servedAccess(allowed, version);
  const { masked } = columnRule(relation, name, served);
  if (masked !== 'none' || name === facet.entityKey || version === null) return masked;
  return version.searched && column.type !== 'bool' ? 'searched' : 'none';
}

/** A field of the passages of one RETRIEVE. */
export interface PassageField {
  readonly source: SourceId;
  readonly name: string;
  readonly mask: FieldMask;
}

/** The passage fields of a statement's RETRIEVEs, as this caller sees them. */
export class PassageFields {
  readonly #retrievals: ReadonlyMap<SourceId, Retrieval>;
  readonly #catalog: Catalog;
  readonly #access: Access;

  constructor(relations: readonly RuntimeRelation[], catalog: Catalog, access: Access) {
    this.#retrievals = new Map(relations.flatMap((r) => (r.kind === 'retrieval' ? [[r.source, r]] : [])));
    this.#catalog = catalog;
    this.#access = access;
  }

  /** Returns the field that `ref` refers to; null for any other column, such as those that every passage has. */
  of({ source, name }: ColumnRef): PassageField | null {
    const retrieval = this.#retrievals.get(source);
    if (retrieval === undefined || isOfPassage(name, retrieval.asked)) return null;
    const { facet } = retrieval;
    const relation = this.#catalog.relations.get(facet.name);
    if (relation === undefined || columnOf(relation, name) === null) return null;
    return { source, name, mask: fieldMask(facet, name, this.#catalog, this.#access) };
  }

  /** True if the statement reads no passages. */
  get none(): boolean {
    return this.#retrievals.size === 0;
  }

  /** True if `ref` is the key of the entity that a passage belongs to. */
  isKey(ref: ColumnRef): boolean {
    return this.of(ref) !== null && this.#retrievals.get(ref.source)?.facet.entityKey === ref.name;
  }
}
