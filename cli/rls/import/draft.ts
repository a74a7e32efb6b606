import type { MaskKind, Relation as ModelRelation } from 'osl-compiler';
import type { GrantDocument, PolicyDocument, RoleDocument } from '../../../policy/document.js';
import { compileSnapshot, PolicyProblems } from '../../../policy/index.js';
import { type Manifest, nameFrom } from '../../../src/model/manifest/index.js';
import type { Oid, PgRelation, Role } from '../catalog/catalog.js';
import { qualified, relationObject } from '../catalog/catalog.js';
import type { CheckedDatabase } from '../database.js';
import { attributesNamed, type CallerAttribute } from './caller-value.js';
import { type GrantOrigins, type ImportNote, PolicyFilters, whyNoEntity } from './policy-filters.js';
import { FailsInDatabase, type ImportedTable } from './scope.js';
import { readByCaller } from './session-dependence.js';
import type { MaskedColumn, ViewColumn } from './simple-view.js';
import { type ReadRights, Translations, withOwnRights } from './translations.js';
import {
  bothOf,
  entityRoles,
  grantOn,
  type MaskedLabel,
  maskNote,
  nameOf,
  type TableView,
  type ViewPlan,
  viewGrants,
  viewPlans,
} from './view-plan.js';

export interface ImportedPolicy {
  readonly document: PolicyDocument;
  readonly attributes: readonly CallerAttribute[];
  readonly notes: readonly ImportNote[];
  readonly origins: GrantOrigins;
  /** Views imported as entities over their table, by entity. */
  readonly views: ReadonlyMap<string, TableView>;
}

export interface ImportScope {
  readonly database: CheckedDatabase;
  readonly manifest: Manifest;
  readonly tenant: string;
}

/**
 * Translates the row security of a database to a policy: a role for each database role in scope, and a grant for each
 * alternative of each policy that applies to the role. Parts without an equivalent are left out, so that a role sees
 * less, and are listed in the notes. Requires `ready()` of osl-compiler.
 */
export function importedPolicy({ database, manifest, tenant }: ImportScope): ImportedPolicy {
  const importer = new Importer(database, manifest);
  const roles: Record<string, RoleDocument> = {};
  for (const role of database.roles) {
    const grants = importer.grantsOf(role);
    if (grants.length > 0)
      roles[nameFrom(role.name)] = { description: `The database role ${role.name}.`, grants };
  }
  const document: PolicyDocument = {
    version: 1,
    tenant,
    subjects: {},
    ...(importer.translations.attributes.tables.size > 0 && {
      attributes: Object.fromEntries(importer.translations.attributes.tables),
    }),
    roles,
    masks: Object.fromEntries(importer.masks),
  };
  const sound = withoutFaults(document, manifest, importer.notes);
  const used = attributesNamedIn(sound);
  return {
    document: sound,
    attributes: importer.translations.attributes.callers.filter(({ name }) => used.has(name)),
    notes: importer.notes,
    origins: importer.filters.origins,
    views: importer.views,
  };
}

class Importer {
  readonly notes: ImportNote[] = [];
  readonly translations: Translations;
  readonly filters: PolicyFilters;
  /** Masks by sensitivity label. */
  readonly masks: ReadonlyMap<string, MaskKind>;
  readonly views: ReadonlyMap<string, TableView>;
  readonly #database: CheckedDatabase;
  readonly #plans: ReadonlyMap<Oid, ViewPlan>;
  /** Imported tables, and views that are the source of an entity, by OID. */
  readonly #tables: ReadonlyMap<Oid, ImportedTable>;
  /** Tables of views imported as entities over their table, by the OID of the view. */
  readonly #viewTables: ReadonlyMap<Oid, ImportedTable>;
  readonly #models: ReadonlyMap<string, ModelRelation>;

  constructor(database: CheckedDatabase, manifest: Manifest) {
    this.#database = database;
    this.#plans = viewPlans(database);
    const { own, ofViews } = entityRoles(manifest, this.#plans);
    const imported = (relation: PgRelation, model: ModelRelation): ImportedTable => ({
      relation,
      entity: model.name,
      columns: new Map(model.columns.map((c) => [c.physical, c.name])),
    });
    this.#tables = new Map(
      [...database.catalog.relations.values()].flatMap((relation): [Oid, ImportedTable][] => {
        const model = own.get(nameOf(relation));
        return model === undefined ? [] : [[relation.id, imported(relation, model)]];
      }),
    );
    const views = [...this.#plans.values()].flatMap((plan) => {
      const model = ofViews.get(plan.view.id);
      return plan.kind === 'table' && model !== undefined ? [{ plan, model }] : [];
    });
    this.#viewTables = new Map(
      views.map(({ plan, model }) => [plan.view.id, imported(plan.query.base, model)]),
    );
    this.views = new Map(views.map(({ plan, model }) => [model.name, plan]));
    this.masks = masksOf(views);
    this.#models = manifest.catalog.relations;
    this.translations = new Translations(database, this.#tables);
    this.filters = new PolicyFilters(database, this.translations, this.#models, this.notes);
  }

  grantsOf(role: Role): readonly GrantDocument[] {
    return this.#database.relations.flatMap((relation) => {
      if (this.#database.access.columns(role.id, 'SELECT', relation).length === 0) return [];
      try {
        return this.#grantsOn(role, relation);
      } catch (error) {
        if (!(error instanceof FailsInDatabase)) throw error;
        const detail = 'a condition fails in the database, and with it every query of the role';
        this.notes.push({
          kind: 'nothing visible',
          object: relationObject(relation).identity,
          role: role.name,
          detail,
        });
        return [];
      }
    });
  }

  /** @throws FailsInDatabase if a condition fails for the role; a note names the condition */
  #grantsOn(role: Role, relation: PgRelation): readonly GrantDocument[] {
    const plan = this.#plans.get(relation.id);
    if (plan?.kind === 'table') return this.#ofView(role, plan);
    return plan?.kind === 'refused' ? this.#leaveOut(role, relation) : this.#ofTable(role, relation);
  }

  /** Grants on a table, or on a view that gives everybody the same rows. */
  #ofTable(role: Role, relation: PgRelation): readonly GrantDocument[] {
    const table = this.#tables.get(relation.id);
    if (table === undefined) return relation.kind === 'sequence' ? [] : this.#leaveOut(role, relation);
    const readable = this.#database.access.columns(role.id, 'SELECT', relation);
    const columns = readable.flatMap((column) => table.columns.get(column) ?? []);
    if (columns.length === 0) return [];
    const unreadable = this.#unreadable(role, relation);
    if (unreadable !== null) return this.#leaveOut(role, relation, unreadable);
    const unmask = this.#labels(table, readable);
    return this.filters
      .ofPolicies(withOwnRights(role.id, true), table, { role, view: null })
      .map((rows) => grantOn(table.entity, columns, rows, unmask));
  }

  /** The reason why a security_invoker view fails for a role or for the gateway; null if it works. */
  #unreadable(role: Role, view: PgRelation): string | null {
    for (const read of readByCaller(this.#database, view)) {
      if (!this.#database.access.holds(role.id, 'SELECT', read))
        return `it needs the right to read all of ${qualified(read)}`;
      if (!this.#tables.has(read.id))
        return `${qualified(read)} is not an entity, so the gateway may not read it`;
    }
    return null;
  }

  /** The sensitivity labels of the table columns `names`. */
  #labels({ entity, columns }: ImportedTable, names: Iterable<string>): ReadonlySet<string> {
    const own = this.#models.get(entity)?.columns ?? [];
    const wanted = new Set([...names].map((name) => columns.get(name)));
    return new Set(own.flatMap(({ name, sensitivity }) => (wanted.has(name) ? (sensitivity ?? []) : [])));
  }

  #leaveOut(role: Role, relation: PgRelation, reason?: string): readonly GrantDocument[] {
    const plan = this.#plans.get(relation.id);
    const detail = reason ?? (plan?.kind === 'refused' ? plan.reason : whyNoEntity(relation));
    this.notes.push({ kind: 'refused', object: relationObject(relation).identity, role: role.name, detail });
    return [];
  }

  /** Makes grants for the rows of a view over one table, and grants that unmask columns where the view does. */
  #ofView(role: Role, plan: TableView): readonly GrantDocument[] {
    const { view, query } = plan;
    const note = (kind: ImportNote['kind'], detail: string | null): void =>
      void this.notes.push({ kind, object: relationObject(view).identity, role: role.name, detail });
    const table = this.#viewTables.get(view.id);
    const reading = view.view?.securityInvoker
      ? withOwnRights(role.id, true)
      : { reader: view.owner, user: role.id, isCaller: true };
    const obstacle = table === undefined ? 'its table is not an entity' : this.#obstacle(role, plan, reading);
    if (table === undefined || obstacle !== null) {
      note('refused', obstacle);
      return [];
    }
    const readable = new Set(this.#database.access.columns(role.id, 'SELECT', view));
    const shown = viewColumns(
      query.columns.filter(({ name }) => readable.has(name)),
      (column) => [...this.#labels(table, [column])][0] ?? null,
      table.columns,
    );
    const columns = [...shown.plain, ...shown.masked.keys()].flatMap(
      (column) => table.columns.get(column) ?? [],
    );
    if (columns.length === 0) return [];
    const policies = this.filters.ofPolicies(reading, table, { role, view });
    const { where } = query;
    const conditions =
      where === null ? [null] : this.filters.ofViewCondition(role, plan, table, reading, where);
    const rows = policies.flatMap((filter) => conditions.map((text) => bothOf(filter, text)));
    if (rows.length === 0) {
      note('nothing visible', 'no row meets the conditions of the view for this role');
      return [];
    }
    const masked = [...shown.masked.values()].flatMap(({ of, name, clear }): MaskedLabel[] => {
      const [label] = this.#labels(table, [of]);
      const texts = clear === null ? [] : this.filters.ofViewCondition(role, plan, table, reading, clear);
      return label === undefined
        ? []
        : [{ name, label, mask: this.masks.get(label) ?? 'deny', clear: texts }];
    });
    const notes = [...shown.notes, ...masked.flatMap((column) => maskNote(column) ?? [])];
    note('view', null);
    if (notes.length > 0) note('changed', notes.join('; '));
    return viewGrants(table.entity, columns, rows, this.#labels(table, shown.plain), masked);
  }

  /** The reason why the view fails for a role, which then sees none of its rows; null if it works. */
  #obstacle(role: Role, { view, query }: TableView, { reader }: ReadRights): string | null {
    const { access, catalog } = this.#database;
    const own = new Set(access.columns(reader, 'SELECT', query.base));
    const missing = [...query.reads].find((column) => !own.has(column));
    if (missing !== undefined || own.size === 0)
      return `${this.#database.roleName(reader)} may not read ${qualified(query.base)}${missing === undefined ? '' : `.${missing}`}: the view fails`;
    for (const id of view.view?.calls ?? []) {
      const called = catalog.functions.get(id);
      if (called === undefined || !access.mayExecute(role.id, called))
        return 'it calls a function that the role may not execute: the view fails';
    }
    return null;
  }
}

/**
 * Removes attributes that do not compile, such as those that compare values of different types, and the grants that
 * need them, each with a note.
 */
function withoutFaults(document: PolicyDocument, manifest: Manifest, notes: ImportNote[]): PolicyDocument {
  try {
    compileSnapshot(document, manifest.catalog);
    return withoutUnused(document);
  } catch (error) {
    if (!(error instanceof PolicyProblems)) throw error;
    const faulty = new Map(
      error.problems.flatMap(({ path, message }) =>
        path[0] === 'attributes' ? [[String(path[1]), message] as const] : [],
      ),
    );
    const affected = (text: string | undefined): string | null =>
      [...faulty.keys()].find((name) => text?.includes(`attribute('${name}')`) === true) ?? null;
    // Attributes that need a faulty one are faulty as well.
    for (const [name, { rows }] of Object.entries(document.attributes ?? {})) {
      const by = affected(rows);
      if (by !== null && !faulty.has(name)) faulty.set(name, faulty.get(by) ?? '');
    }
    if (faulty.size === 0) throw error;
    const roles = Object.fromEntries(
      Object.entries(document.roles).map(([role, { grants, ...rest }]) => {
        const sound = grants.filter(({ on, rows }) => {
          const by = affected(rows);
          if (by !== null)
            notes.push({
              kind: 'refused',
              object: on,
              role,
              detail: `attribute ${by}: ${faulty.get(by) ?? ''}`,
            });
          return by === null;
        });
        return [role, { ...rest, grants: sound }];
      }),
    );
    const attributes = Object.fromEntries(
      Object.entries(document.attributes ?? {}).filter(([name]) => !faulty.has(name)),
    );
    return withoutFaults({ ...document, attributes, roles }, manifest, notes);
  }
}

function withoutUnused(document: PolicyDocument): PolicyDocument {
  const used = attributesNamedIn(document);
  const { attributes = {}, ...rest } = document;
  const left = Object.entries(attributes).filter(([name]) => used.has(name));
  if (left.length === 0) return rest;
  const { roles, masks, ...head } = rest;
  return { ...head, attributes: Object.fromEntries(left), roles, masks };
}

/** The attributes that grants name, and those that they need in turn. */
function attributesNamedIn({ roles, attributes = {} }: PolicyDocument): ReadonlySet<string> {
  const filters = Object.values(roles).flatMap(({ grants }) => grants.map(({ rows }) => rows));
  return attributesNamed(filters, (name) => attributes[name]?.rows);
}

/** Columns of a view that a role may read, under the names of the table columns that they show. */
interface ShownColumns {
  readonly plain: readonly string[];
  readonly masked: ReadonlyMap<string, MaskedColumn>;
  /** Notes on columns that are left out. */
  readonly notes: readonly string[];
}

/**
 * Sorts the columns of a view into plain and masked ones; the other columns are left out, with a note.
 *
 * @param labelOf the label of a column of the table; null if it has none
 * @param known names of the entity's columns, by column name of the table
 */
function viewColumns(
  columns: readonly ViewColumn[],
  labelOf: (column: string) => string | null,
  known: ReadonlyMap<string, string>,
): ShownColumns {
  const notes: string[] = [];
  const plain: string[] = [];
  const masked = new Map<string, MaskedColumn>();
  for (const column of columns) {
    if (column.kind === 'computed') notes.push(`${column.name} is left out: ${column.reason}`);
    else if (!known.has(column.of)) notes.push(`${column.name} is left out: the model has no type for it`);
    else if (column.kind === 'plain') plain.push(column.of);
    else if (labelOf(column.of) === null)
      notes.push(`${column.name} is left out: keys of the table cannot be masked`);
    else masked.set(column.of, column);
  }
  return { plain, masked, notes };
}

/** Masks by sensitivity label. If views mask a column in different ways, its mask is `redact`. */
function masksOf(
  views: readonly { readonly plan: TableView; readonly model: ModelRelation }[],
): ReadonlyMap<string, MaskKind> {
  const masks = new Map<string, MaskKind>();
  for (const { plan, model } of views)
    for (const column of plan.query.columns) {
      if (column.kind !== 'masked') continue;
      const label = model.columns.find(({ physical }) => physical === column.of)?.sensitivity ?? null;
      if (label === null) continue;
      const known = masks.get(label) ?? column.mask;
      masks.set(label, known === column.mask ? known : 'redact');
    }
  return masks;
}
