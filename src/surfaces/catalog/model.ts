import { createHash } from 'node:crypto';
import {
  type Access,
  type Column,
  formatUnit,
  identifier,
  type Metric,
  PASSAGE_COLUMNS,
  type Relation,
  type RelationAccess,
  type TypeName,
  visibleColumns,
} from 'osl-compiler';
import { governedView, measuredType } from '../../model/graph/index.js';
import type { Bridge, Manifest, Relationship } from '../../model/manifest/index.js';
import { Enums } from './enums.js';

/** What one caller's catalog shows: exactly what the caller may name, and nothing of where it comes from. */
export interface CatalogModel {
  /** Equal for equal models: 64 hex digits over all that is below. */
  readonly signature: string;
  readonly tables: readonly TableModel[];
  readonly foreignKeys: readonly ForeignKey[];
  readonly metrics: readonly MetricsModel[];
  readonly facets: readonly FacetModel[];
  readonly enums: readonly EnumModel[];
}

/** An enum that some column has which the caller sees in the clear. */
export interface EnumModel {
  readonly name: string;
  /** In their order. */
  readonly labels: readonly string[];
}

/** The metrics of one entity; there is at least one. */
export interface MetricsModel {
  readonly entity: string;
  readonly metrics: readonly MetricModel[];
}

export interface MetricModel {
  readonly name: string;
  readonly type: TypeName;
  /** With what its figures are in. */
  readonly description: string | null;
}

export interface FacetModel {
  readonly name: string;
  readonly description: string | null;
  /** What RETRIEVE gives, in its order. */
  readonly columns: readonly (readonly [name: string, type: TypeName])[];
}

export interface TableModel {
  readonly name: string;
  readonly comment: string | null;
  readonly columns: readonly ColumnModel[];
  /** Empty where the caller may not see the whole key in the clear. */
  readonly primaryKey: readonly string[];
}

export interface ColumnModel {
  readonly name: string;
  readonly type: TypeName;
  /** As SQL writes the column's own type, where the caller sees it in the clear; else that of `type`. */
  readonly declared: string;
  /** The type of the model's enum that it has, in place of `declared`; null where it has none. */
  readonly enumName: string | null;
  readonly notNull: boolean;
  readonly comment: string | null;
}

export interface ForeignKey {
  readonly table: string;
  readonly columns: readonly string[];
  readonly target: string;
  readonly targetColumns: readonly string[];
  readonly comment: string | null;
}

const known = new WeakMap<Manifest, WeakMap<Access['relations'], CatalogModel>>();

/** The catalog of whoever has this access. Worked out once for all callers with the same rights. */
export function modelOf(manifest: Manifest, access: Access): CatalogModel {
  let models = known.get(manifest);
  if (models === undefined) {
    models = new WeakMap();
    known.set(manifest, models);
  }
  let model = models.get(access.relations);
  if (model === undefined) {
    model = compose(manifest, access);
    models.set(access.relations, model);
  }
  return model;
}

function compose(manifest: Manifest, access: Access): CatalogModel {
  const tables: TableModel[] = [];
  const enums = new Enums(manifest.catalog.relations.keys());
  const metrics: MetricsModel[] = [];
  for (const [name, relation] of manifest.catalog.relations) {
    const rights = access.relations.get(name);
    if (rights === undefined || rights.grants.length === 0) continue;
    const measured = metricsOf(manifest, access, name);
    const computed = computedOf(relation, manifest, access);
    const table = tableOf(relation, rights, computed, measured, enums);
    if (table === null) continue;
    tables.push(table);
    if (measured.length > 0) metrics.push({ entity: name, metrics: measured });
  }
  const foreignKeys = foreignKeysOf(manifest, new Map(tables.map((t) => [t.name, t])));
  const facets = facetsOf(manifest, access);
  const signature = createHash('sha256')
    .update(JSON.stringify([tables, foreignKeys, metrics, facets, enums.all]))
    .digest('hex');
  return Object.freeze({ signature, tables, foreignKeys, metrics, facets, enums: enums.all });
}

/** Null for what is no table of rows, as a facet, which RETRIEVE asks. */
function tableOf(
  relation: Relation,
  rights: RelationAccess,
  computed: readonly ColumnModel[],
  metrics: readonly MetricModel[],
  enums: Enums,
): TableModel | null {
  if (relation.kind !== 'entity' && relation.kind !== 'bridge') return null;
  const declared = relation.columns.filter((c) => isShown(c, rights));
  const columns = [...declared.map((c) => columnModel(c, relation, rights, enums)), ...computed];
  // What nothing of can be used is not listed: on no surface.
  if (columns.length === 0 && metrics.length === 0) return null;
  const clear = new Set(columns.filter((c) => c.notNull).map((c) => c.name));
  const keyed = relation.primaryKey.length > 0 && relation.primaryKey.every((k) => clear.has(k));
  return {
    name: relation.name,
    comment:
      [relation.description, ...metrics.map(metricLine)].filter((line) => line !== null).join('\n') || null,
    columns,
    primaryKey: keyed ? relation.primaryKey : [],
  };
}

function computedOf(relation: Relation, { catalog }: Manifest, access: Access): readonly ColumnModel[] {
  if (relation.computed === undefined) return [];
  return visibleColumns(relation, catalog, access)
    .filter((c) => c.computed !== undefined)
    .map(({ column: { name, type, description } }) => {
      return { name, type, declared: type, enumName: null, notNull: false, comment: description };
    });
}

/** What `*` has: columns that some grant covers, without those that may not be used at all. */
function isShown(column: Column, rights: RelationAccess): boolean {
  if (rights.denied.has(column.name)) return false;
  const covering = rights.grants.filter((g) => g.columns.has(column.name));
  const { sensitivity } = column;
  if (covering.length === 0 || sensitivity === null) return covering.length > 0;
  const mask = rights.masks.get(sensitivity) ?? 'deny';
  return mask !== 'deny' || covering.some((g) => g.unmask.has(sensitivity));
}

/** A column is NOT NULL only where every row that the caller sees has it in the clear. */
function columnModel(column: Column, relation: Relation, rights: RelationAccess, enums: Enums): ColumnModel {
  const { name, type, form, sensitivity, nullable, description } = column;
  const clear = rights.grants.every(
    (g) => g.columns.has(name) && (sensitivity === null || g.unmask.has(sensitivity)),
  );
  const required = !nullable || relation.primaryKey.includes(name);
  const declared = clear && form !== undefined ? form.sql : type;
  // A label says that there may be such a row: who sees groups alone is not told.
  const enumName = clear && rights.grants.every((g) => g.groups === undefined) ? enums.nameOf(column) : null;
  return { name, type, declared, enumName, notNull: clear && required, comment: description };
}

/** The metrics of the entity that the caller may compute. The compiler itself is asked. */
function metricsOf(manifest: Manifest, access: Access, entity: string): readonly MetricModel[] {
  return [...manifest.catalog.metrics.values()].flatMap((metric): readonly MetricModel[] => {
    const type = metric.entity === entity ? measuredType(metric, manifest, access) : null;
    return type === null ? [] : [{ name: metric.name, type, description: wordsOf(metric) }];
  });
}

/** What a BI tool shows of a metric has no place for its format, so its description says what it is in. */
function wordsOf({ description, format }: Metric): string | null {
  const unit = format === undefined ? null : formatUnit(format);
  const words = [description, unit === null ? null : `In ${unit}.`].filter((w) => w !== null);
  return words.length === 0 ? null : words.join(' ');
}

function metricLine({ name, description }: MetricModel): string {
  return `Metric ${name}${description === null ? '' : `: ${description}`} Use MEASURE(${identifier(name)}).`;
}

/** The facets of which the caller is served a version, with the columns of its passages. */
function facetsOf(manifest: Manifest, access: Access): readonly FacetModel[] {
  return governedView(manifest, access).facets.map(({ name, description, columns }) => ({
    name,
    description,
    columns: [...PASSAGE_COLUMNS, ...columns.map((c) => [c.name, c.type] as const)],
  }));
}

type Tables = ReadonlyMap<string, TableModel>;

/** Along relationships and bridges within one database whose two ends the caller sees in the clear. */
function foreignKeysOf(manifest: Manifest, tables: Tables): readonly ForeignKey[] {
  const candidates = [
    ...[...manifest.relationships.values()].map(fromRelationship),
    ...[...manifest.bridges.values()].flatMap(fromBridge),
  ];
  const { relations } = manifest.catalog;
  const isWithin = (key: ForeignKey): boolean =>
    relations.get(key.table)?.connector === relations.get(key.target)?.connector;
  return candidates.filter((key) => isWithin(key) && isSound(key, tables));
}

function fromRelationship({ from, to, description }: Relationship): ForeignKey {
  return {
    table: from.entity,
    columns: from.columns,
    target: to.entity,
    targetColumns: to.columns,
    comment: description,
  };
}

function fromBridge({ name, left, right }: Bridge): readonly ForeignKey[] {
  return [left, right].map((side) => ({
    table: name,
    columns: side.columns,
    target: side.entity,
    targetColumns: side.keys,
    comment: null,
  }));
}

/** Both ends are there, of equal types, and the target is its table's primary key as the caller sees it. */
function isSound(key: ForeignKey, tables: Tables): boolean {
  const target = tables.get(key.target);
  const from = typesOf(tables.get(key.table), key.columns);
  const to = typesOf(target, key.targetColumns);
  const primary = target?.primaryKey ?? [];
  return (
    from !== null &&
    to !== null &&
    from.join() === to.join() &&
    primary.length === key.targetColumns.length &&
    primary.every((k) => key.targetColumns.includes(k))
  );
}

function typesOf(table: TableModel | undefined, columns: readonly string[]): readonly string[] | null {
  const types = columns.map((name) => {
    const column = table?.columns.find((c) => c.name === name);
    return column?.enumName == null ? column?.type : `enum ${column.enumName}`;
  });
  return types.length > 0 && types.every((t) => t !== undefined) ? types : null;
}
