import { createHash } from 'node:crypto';
import {
  type Access,
  type Column,
  enumName,
  formatUnit,
  identifier,
  type Metric,
  PASSAGE_COLUMNS,
  type Relation,
  type RelationAccess,
  storedType,
  visibleColumns,
} from 'osl-compiler';
import { inTurns } from '../../base/in-turns.js';
import { type GraphView, governedFacets, measuredType } from '../../model/graph/index.js';
import type { Bridge, Manifest, Relationship } from '../../model/manifest/index.js';
import {
  type CatalogForeignKey,
  type ColumnModel,
  ContentsWriter,
  type EnumModel,
  type FacetModel,
  type MetricModel,
  qualifiedName,
  type TableModel,
} from './engine-contract.js';

/**
 * Enums of the columns that a caller sees unmasked, named as in the database but without schema. If two share a name,
 * the second is shown as text; so is an enum whose name or array type name equals an entity's row type.
 */
class Enums {
  readonly #usedNames: Set<string>;
  readonly #models = new Map<string, EnumModel>();

  constructor(relations: Iterable<string>) {
    this.#usedNames = new Set(relations);
  }

  get all(): readonly EnumModel[] {
    return [...this.#models.values()];
  }

  nameOf({ stored, labels }: Column): string | null {
    if (stored === undefined || labels === undefined || storedType(stored)?.isEnum !== true) return null;
    const key = JSON.stringify([stored, labels]);
    const model = this.#models.get(key);
    if (model !== undefined) return model.name;
    const name = enumName(stored);
    if (this.#usedNames.has(name) || this.#usedNames.has(`_${name}`)) return null;
    this.#usedNames.add(name);
    this.#models.set(key, Object.freeze({ name, labels }));
    return name;
  }
}

/** Catalog of one caller: exactly the objects that the caller may reference, without revealing where they come from. */
export interface CatalogModel {
  /** SHA-256 of `parts` in hex. */
  readonly signature: string;
  readonly entities: number;
  readonly columns: number;
  /** Serialized contents, in the format of `ContentsWriter`. */
  readonly parts: readonly Uint8Array[];
}

const modelCache = new WeakMap<Manifest, WeakMap<Access['relations'], Promise<CatalogModel>>>();

/** Returns the catalog for an access, built once for all callers with the same rights, while yielding to other work. */
export function modelOf(manifest: Manifest, access: Access): Promise<CatalogModel> {
  const models = modelCache.get(manifest) ?? new WeakMap<Access['relations'], Promise<CatalogModel>>();
  modelCache.set(manifest, models);
  const cached = models.get(access.relations);
  if (cached !== undefined) return cached;
  const model = inTurns(composeModel(manifest, access));
  models.set(access.relations, model);
  model.catch(() => models.delete(access.relations));
  return model;
}

const WORK_PER_TURN = 1_000;

function* composeModel(manifest: Manifest, access: Access): Generator<void, CatalogModel> {
  const writer = new ContentsWriter();
  const tables = new Map<string, TableWithKeyTypes>();
  const enums = new Enums(manifest.catalog.relations.keys());
  const metricsOf = yield* metricsByEntity(manifest, access);
  let columns = 0;
  let work = 0;
  for (const relation of manifest.catalog.relations.values()) {
    work += relation.columns.length + 1;
    if (work >= WORK_PER_TURN) {
      work = 0;
      yield;
    }
    const rights = access.relations.get(relation.name);
    if (rights === undefined || rights.grants.length === 0) continue;
    const metrics = metricsOf.get(relation.name) ?? [];
    const table = tableOf(relation, rights, computedColumns(relation, manifest, access), metrics, enums);
    if (table === null) continue;
    tables.set(relation.name, table);
    columns += table.model.columns.length;
    writer.add('tables', table.model);
    if (metrics.length > 0) writer.add('metrics', { entity: relation.name, metrics });
  }
  for (const key of candidateKeys(manifest)) {
    work += 1;
    if (work % WORK_PER_TURN === 0) yield;
    if (isVisibleKey(key, tables)) writer.add('foreignKeys', key);
  }
  for (const facet of governedFacets(manifest, access)) {
    yield;
    writer.add('facets', facetModel(facet));
  }
  for (const enumModel of enums.all) writer.add('enums', enumModel);
  const parts = writer.parts();
  const hash = createHash('sha256');
  for (const part of parts) {
    yield;
    hash.update(part);
  }
  return Object.freeze({ signature: hash.digest('hex'), entities: tables.size, columns, parts });
}

interface TableWithKeyTypes {
  readonly model: TableModel;
  readonly keyTypes: ReadonlyMap<string, string>;
}

/** Returns the table for a relation; null for a facet or a relation of which the caller sees nothing. */
function tableOf(
  relation: Relation,
  rights: RelationAccess,
  computed: readonly ColumnModel[],
  metrics: readonly MetricModel[],
  enums: Enums,
): TableWithKeyTypes | null {
  if (relation.kind !== 'entity' && relation.kind !== 'bridge') return null;
  const declared = relation.columns.filter((c) => isShown(c, rights));
  const typedColumns = declared.map((c) => columnModel(c, relation, rights, enums));
  const columns = [...typedColumns.map((c) => c.model), ...computed];
  // Entities without any usable column or metric are hidden on every surface.
  if (columns.length === 0 && metrics.length === 0) return null;
  const unmasked = new Set(columns.filter((c) => c.notNull).map((c) => c.name));
  const showsKey = relation.primaryKey.length > 0 && relation.primaryKey.every((k) => unmasked.has(k));
  const comment = [relation.description, ...metrics.map(metricLine)]
    .filter((line) => line !== null)
    .join('\n');
  return {
    model: {
      name: relation.name,
      comment: comment || null,
      columns,
      primaryKey: showsKey ? relation.primaryKey : [],
    },
    keyTypes: new Map([
      ...typedColumns.map(({ model, keyType }) => [model.name, keyType] as const),
      ...computed.map(({ name, type }) => [name, type] as const),
    ]),
  };
}

function computedColumns(relation: Relation, { catalog }: Manifest, access: Access): readonly ColumnModel[] {
  if (relation.computed === undefined) return [];
  return visibleColumns(relation, catalog, access)
    .filter((c) => c.computed !== undefined)
    .map(({ column: { name, type, description } }) => {
      return { name, type, notNull: false, comment: description };
    });
}

/** True if `*` includes the column: it is covered by a grant and not denied. */
function isShown(column: Column, rights: RelationAccess): boolean {
  if (rights.denied.has(column.name)) return false;
  const coveringGrants = rights.grants.filter((g) => g.columns.has(column.name));
  const { sensitivity } = column;
  if (coveringGrants.length === 0 || sensitivity === null) return coveringGrants.length > 0;
  const mask = rights.masks.get(sensitivity) ?? 'deny';
  return mask !== 'deny' || coveringGrants.some((g) => g.unmask.has(sensitivity));
}

/**
 * Returns the model of a column, and the type by which foreign key columns are compared. The column is NOT NULL only if
 * the caller sees its value unmasked in every visible row.
 */
function columnModel(
  column: Column,
  relation: Relation,
  rights: RelationAccess,
  enums: Enums,
): { readonly model: ColumnModel; readonly keyType: string } {
  const { name, type, form, sensitivity, nullable, description } = column;
  const isUnmasked = rights.grants.every(
    (g) => g.columns.has(name) && (sensitivity === null || g.unmask.has(sensitivity)),
  );
  const required = !nullable || relation.primaryKey.includes(name);
  const declared = isUnmasked && form !== undefined ? form.sql : type;
  // An enum label reveals that rows with that value may exist, which callers limited to groups must not learn.
  const enumName =
    isUnmasked && rights.grants.every((g) => g.groups === undefined) ? enums.nameOf(column) : null;
  const enumType = enumName === null ? null : qualifiedName(enumName);
  return {
    model: { name, type: enumType ?? declared, notNull: isUnmasked && required, comment: description },
    keyType: enumType ?? type,
  };
}

function* metricsByEntity(
  manifest: Manifest,
  access: Access,
): Generator<void, ReadonlyMap<string, readonly MetricModel[]>> {
  const byEntity = new Map<string, MetricModel[]>();
  for (const metric of manifest.catalog.metrics.values()) {
    if (metric.entity === null) continue;
    yield;
    const type = measuredType(metric, manifest, access);
    if (type === null) continue;
    const metrics = byEntity.get(metric.entity) ?? [];
    metrics.push({ name: metric.name, type, description: descriptionWithUnit(metric) });
    byEntity.set(metric.entity, metrics);
  }
  return byEntity;
}

/** Returns a metric's description with its unit, for which BI tools have no other place; null if it has neither. */
function descriptionWithUnit({ description, format }: Metric): string | null {
  const unit = format === undefined ? null : formatUnit(format);
  const parts = [description, unit === null ? null : `In ${unit}.`].filter((w) => w !== null);
  return parts.length === 0 ? null : parts.join(' ');
}

function metricLine({ name, description }: MetricModel): string {
  return `Metric ${name}${description === null ? '' : `: ${description}`} Use MEASURE(${identifier(name)}).`;
}

function facetModel({ name, description, columns }: GraphView['facets'][number]): FacetModel {
  return {
    name,
    description,
    columns: [...PASSAGE_COLUMNS, ...columns.map((c) => [c.name, c.type] as const)],
  };
}

function* candidateKeys(manifest: Manifest): Generator<CatalogForeignKey> {
  const { relations } = manifest.catalog;
  const isInOneDatabase = ({ table, target }: CatalogForeignKey): boolean =>
    relations.get(table)?.connector === relations.get(target)?.connector;
  for (const relationship of manifest.relationships.values()) {
    const key = relationshipKey(relationship);
    if (isInOneDatabase(key)) yield key;
  }
  for (const bridge of manifest.bridges.values()) yield* bridgeKeys(bridge).filter(isInOneDatabase);
}

function relationshipKey({ from, to, description }: Relationship): CatalogForeignKey {
  return {
    table: from.entity,
    columns: from.columns,
    target: to.entity,
    targetColumns: to.columns,
    comment: description,
  };
}

function bridgeKeys({ name, left, right }: Bridge): readonly CatalogForeignKey[] {
  return [left, right].map((side) => ({
    table: name,
    columns: side.columns,
    target: side.entity,
    targetColumns: side.keys,
    comment: null,
  }));
}

/**
 * True if the caller sees the columns at both ends of the key, their types are equal, and the target columns are the
 * primary key of their table, which the caller sees unmasked.
 */
function isVisibleKey(key: CatalogForeignKey, tables: ReadonlyMap<string, TableWithKeyTypes>): boolean {
  const target = tables.get(key.target);
  const from = typesOf(tables.get(key.table), key.columns);
  const to = typesOf(target, key.targetColumns);
  const primary = target?.model.primaryKey ?? [];
  return (
    from !== null &&
    to !== null &&
    from.join() === to.join() &&
    primary.length === key.targetColumns.length &&
    primary.every((k) => key.targetColumns.includes(k))
  );
}

function typesOf(table: TableWithKeyTypes | undefined, columns: readonly string[]): readonly string[] | null {
  const types = columns.map((name) => table?.keyTypes.get(name));
  return types.length > 0 && types.every((t) => t !== undefined) ? types : null;
}
