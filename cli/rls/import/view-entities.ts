import type { Relation as ModelRelation } from 'osl-compiler';
import { NameAllocator } from '../../../src/model/discovery/index.js';
import {
  type ManifestDocument,
  ManifestProblems,
  nameFrom,
  parseManifest,
  RESERVED,
  tableName,
  withSuffix,
} from '../../../src/model/manifest/index.js';
import { CONNECTOR, type DraftedManifest, type ExcludedTable } from '../../proposal/index.js';
import { qualified } from '../identity.js';
import { nameOf, type TableView } from './view-plan.js';

/** A view with the name that its entity is to have. */
export interface NamedView {
  readonly plan: TableView;
  readonly name: string;
}

/**
 * Adds entities for views over tables of the manifest. Columns that a view masks get a label each, which holds for all
 * entities over the table. A view whose entity does not compile is left out, with the reason.
 */
export function withViewEntities(drafted: DraftedManifest, views: readonly NamedView[]): DraftedManifest {
  const all = attempt(drafted, views);
  if (typeof all !== 'string') return all;
  const leftOut: ExcludedTable[] = [];
  let sound = drafted;
  for (const named of views) {
    const one = attempt(sound, [named]);
    if (typeof one !== 'string') sound = one;
    else leftOut.push({ table: nameOf(named.plan.view), reason: one });
  }
  return { ...sound, leftOut: [...sound.leftOut, ...leftOut] };
}

/** The manifest with the entities, or why it does not compile. */
function attempt(drafted: DraftedManifest, views: readonly NamedView[]): DraftedManifest | string {
  let document = drafted.document;
  for (const named of views) document = withView(document, drafted, named);
  try {
    return { ...drafted, document, manifest: parseManifest(JSON.stringify(document), 'manifest.yaml') };
  } catch (error) {
    if (!(error instanceof ManifestProblems)) throw error;
    return error.diagnostics[0]?.message ?? error.message;
  }
}

function withView(
  document: ManifestDocument,
  { manifest }: DraftedManifest,
  { plan, name }: NamedView,
): ManifestDocument {
  const table = nameOf(plan.query.base);
  const model = [...manifest.catalog.relations.values()].find((relation) => tableName(relation) === table);
  const connector = document.connectors[CONNECTOR];
  const source = model === undefined ? undefined : document.entities[model.name]?.source;
  // The grants of the view are then refused: its table is no entity.
  if (model === undefined || connector === undefined || source === undefined) return document;
  const declared = new Map(Object.entries(connector.tables[table]?.columns ?? {}));
  const columns = labelled(declared, plan, model, connector.tables);
  const tables = { ...connector.tables, [table]: { columns: Object.fromEntries(columns) } };
  return {
    ...document,
    connectors: { ...document.connectors, [CONNECTOR]: { ...connector, tables } },
    entities: { ...document.entities, [name]: { source, ...entityOf(plan, model) } },
  };
}

type EntityEntry = ManifestDocument['entities'][string];
type Tables = ManifestDocument['connectors'][string]['tables'];
type ColumnEntries = ReadonlyMap<string, Tables[string]['columns'][string]>;

/** The columns of the table with a label for each that the view masks. Keys have none, since joins need their values. */
function labelled(
  columns: ColumnEntries,
  { query }: TableView,
  model: ModelRelation,
  all: Tables,
): ColumnEntries {
  const taken = new Set(
    Object.values(all).flatMap((one) => Object.values(one.columns).flatMap((c) => c.sensitivity ?? [])),
  );
  const masked = new Set(query.columns.flatMap((column) => (column.kind === 'masked' ? [column.of] : [])));
  return new Map(
    [...columns].map(([column, declared]) => {
      if (!masked.has(column) || declared.sensitivity !== undefined || isKey(model, column))
        return [column, declared];
      return [column, { ...declared, sensitivity: freeLabel(`${model.name}_${column}`, taken) }];
    }),
  );
}

function isKey({ columns, primaryKey, sealedKeys }: ModelRelation, column: string): boolean {
  const name = columns.find(({ physical }) => physical === column)?.name ?? column;
  return primaryKey.includes(name) || sealedKeys.includes(name);
}

/** A label of its own for each column of the database: whoever is shown one unmasked is shown no other. */
function freeLabel(wanted: string, taken: Set<string>): string {
  const base = nameFrom(wanted);
  for (let n = 1; ; n++) {
    const label = n === 1 ? base : withSuffix(base, `_${n}`);
    if (taken.has(label)) continue;
    taken.add(label);
    return label;
  }
}

/** Shows the columns of the view under its names, then those of the table, which filters may need. */
function entityOf({ view, query }: TableView, model: ModelRelation): Omit<EntityEntry, 'source'> {
  const names = new NameAllocator(RESERVED);
  const byColumn = new Map<string, string>();
  for (const column of query.columns) {
    if (column.kind === 'computed' || !model.columns.some(({ physical }) => physical === column.of)) continue;
    byColumn.set(column.of, names.free(column.name, 'column'));
  }
  const shown = new Set(query.columns.flatMap((column) => (column.kind === 'plain' ? [column.of] : [])));
  for (const { name, physical } of model.columns)
    if (!byColumn.has(physical)) byColumn.set(physical, names.free(name, 'column'));
  const key = model.primaryKey.map((name) => model.columns.find((c) => c.name === name)?.physical ?? name);
  return {
    description: `Rows of ${qualified(query.base)} as the view ${qualified(view)} shows them.`,
    ...(key.length > 0 &&
      key.every((column) => shown.has(column)) && {
        primary_key: key.map((column) => byColumn.get(column) ?? column),
      }),
    columns: Object.fromEntries(
      [...byColumn].map(([column, name]) => [name, column === name ? null : { column }]),
    ),
  };
}
