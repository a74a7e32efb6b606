import type { MaskKind, Relation as ModelRelation } from 'osl-compiler';
import type { GrantDocument } from '../../../policy/document.js';
import { type Manifest, modelNameFrom, tableName } from '../../../src/model/manifest/index.js';
import type { Oid, PgRelation } from '../catalog/catalog.js';
import type { CheckedDatabase } from '../database.js';
import { Untranslatable } from './scope.js';
import { sessionDependence } from './session-dependence.js';
import { type SimpleView, simpleView, type ViewColumn } from './simple-view.js';

/** The way in which a view is imported, or the reason why it is not. */
export type ViewPlan =
  /** As an entity over the view: everybody who may read the view gets the same rows. */
  | { readonly kind: 'view'; readonly view: PgRelation }
  /** As another entity over the view's table, with the conditions and masks of the view in the grants. */
  | TableView
  | { readonly kind: 'refused'; readonly view: PgRelation; readonly reason: string };

export interface TableView {
  readonly kind: 'table';
  readonly view: PgRelation;
  readonly query: SimpleView;
}

/** The plans of the views that a role in scope may read, by OID. Requires `ready()` of osl-compiler. */
export function viewPlans(db: CheckedDatabase): ReadonlyMap<Oid, ViewPlan> {
  return new Map(
    db.relations.flatMap((relation): [Oid, ViewPlan][] => {
      if (relation.view === null || !isReadable(db, relation)) return [];
      if (relation.kind === 'materialized view') return [[relation.id, { kind: 'view', view: relation }]];
      return [[relation.id, planOf(db, relation)]];
    }),
  );
}

function isReadable({ roles, access }: CheckedDatabase, view: PgRelation): boolean {
  return roles.some(({ id }) => access.columns(id, 'SELECT', view).length > 0);
}

function planOf(db: CheckedDatabase, view: PgRelation): ViewPlan {
  const dependence = sessionDependence(db, view);
  if (dependence === null) return { kind: 'view', view };
  try {
    const query = simpleView(db, view);
    return { kind: 'table', view, query: { ...query, columns: distinct(query.columns) } };
  } catch (error) {
    if (!(error instanceof Untranslatable)) throw error;
    const reason = `its rows depend on the caller (${dependence}), and it is more than rows of one table: ${error.message}`;
    return { kind: 'refused', view, reason };
  }
}

/** Keeps one view column, preferably unmasked, for each table column; the others become computed. */
function distinct(columns: readonly ViewColumn[]): readonly ViewColumn[] {
  const plain = new Set(columns.flatMap((column) => (column.kind === 'plain' ? [column.of] : [])));
  const seen = new Set<string>();
  return columns.map((column): ViewColumn => {
    if (column.kind === 'computed') return column;
    const known = seen.has(column.of) || (column.kind === 'masked' && plain.has(column.of));
    seen.add(column.of);
    return known ? { kind: 'computed', name: column.name, reason: `${column.of} is shown already` } : column;
  });
}

/** The entities of a manifest, by the relation that they show in the database. */
export interface EntityRoles {
  /** Entities of tables, and of views with a plan of the kind `view`, by `schema.name`. */
  readonly own: ReadonlyMap<string, ModelRelation>;
  /** Entities of views with a plan of the kind `table`, by the OID of the view. */
  readonly ofViews: ReadonlyMap<Oid, ModelRelation>;
}

/** Separates the entities of views over a table from the entity of the table itself, by their names. */
export function entityRoles(manifest: Manifest, plans: ReadonlyMap<Oid, ViewPlan>): EntityRoles {
  const byTable = new Map<string, ModelRelation[]>();
  for (const relation of manifest.catalog.relations.values()) {
    const key = tableName(relation);
    byTable.set(key, [...(byTable.get(key) ?? []), relation]);
  }
  const ofViews = new Map<Oid, ModelRelation>();
  for (const plan of plans.values()) {
    if (plan.kind !== 'table') continue;
    const { view, query } = plan;
    const entities = byTable.get(nameOf(query.base)) ?? [];
    const names = [`${view.schema}_${view.name}`, view.name].map(modelNameFrom);
    const found =
      names.map((name) => entities.find((entity) => entity.name === name)).find(Boolean) ??
      entities.find(({ name }) => names.includes(name.replace(/_\d+$/, '')));
    // Keep one entity for the table itself.
    if (found === undefined || entities.length < 2) continue;
    ofViews.set(view.id, found);
    byTable.set(
      nameOf(query.base),
      entities.filter((entity) => entity !== found),
    );
  }
  const own = new Map([...byTable].flatMap(([key, [first]]) => (first === undefined ? [] : [[key, first]])));
  return { own, ofViews };
}

/** Returns `schema.name` as in manifests. */
export function nameOf({ schema, name }: Pick<PgRelation, 'schema' | 'name'>): string {
  return tableName({ schema, table: name });
}

/** A filter of rows; null accepts all rows. */
type RowFilter = string | null;

/** A masked column of a view, and the rows in which a role sees its values. */
export interface MaskedLabel {
  readonly name: string;
  readonly label: string;
  readonly mask: MaskKind;
  /** Filters, any of which unmasks the value; empty if it is always masked. */
  readonly clear: readonly RowFilter[];
}

/**
 * The grants of a role on the entity of a view: one for each filter in `rows`, and another one with a masked column
 * unmasked for each condition under which the view shows that column.
 *
 * @param plain labels of columns that the view shows without a mask
 */
export function viewGrants(
  entity: string,
  columns: readonly string[],
  rows: readonly RowFilter[],
  plain: ReadonlySet<string>,
  masked: readonly MaskedLabel[],
): readonly GrantDocument[] {
  const always = masked.filter(isAlwaysClear).map(({ label }) => label);
  const unmask = new Set([...plain, ...always]);
  const filters = widest(rows);
  const clear = masked.flatMap((column) =>
    isAlwaysClear(column)
      ? []
      : column.clear.flatMap((text) =>
          widest(filters.map((filter) => bothOf(filter, text))).map((filter) =>
            grantOn(entity, columns, filter, new Set([...unmask, column.label])),
          ),
        ),
  );
  return [...filters.map((filter) => grantOn(entity, columns, filter, unmask)), ...clear];
}

export function grantOn(
  entity: string,
  columns: readonly string[],
  rows: RowFilter,
  unmask: ReadonlySet<string>,
): GrantDocument {
  return {
    on: entity,
    columns: [...columns],
    ...(rows !== null && { rows }),
    ...(unmask.size > 0 && { unmask: [...unmask] }),
  };
}

/** Note on a masked column for the report; null if the role always sees its values. */
export function maskNote(column: MaskedLabel): string | null {
  if (isAlwaysClear(column)) return null;
  const others = column.clear.length > 0 ? ' unless the view shows the value' : '';
  return `${column.name} has the mask \`${column.mask}\`${others}`;
}

function isAlwaysClear({ clear }: MaskedLabel): boolean {
  return clear.includes(null);
}

/** Removes duplicate filters; a filter that accepts all rows replaces the others. */
function widest(filters: readonly RowFilter[]): readonly RowFilter[] {
  return filters.includes(null) ? [null] : [...new Set(filters)];
}

/** Combines two filters with AND. */
export function bothOf(one: RowFilter, other: RowFilter): RowFilter {
  if (one === null || other === null) return one ?? other;
  return `${one} and ${other}`;
}
