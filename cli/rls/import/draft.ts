import type { Node } from '@pgsql/types';
import { bindPredicate, type MaskKind, type Relation as ModelRelation, QueryError } from 'osl-compiler';
import type { GrantDocument, PolicyDocument, RoleDocument } from '../../../policy/document.js';
import { type Manifest, nameFrom } from '../../../src/model/manifest/index.js';
import { OTHERS_POLICY, SCHEMA } from '../../../src/model/row-security/index.js';
import type { DatabaseFunction, Oid, Policy, Relation, Role } from '../catalog/catalog.js';
import { type CheckedDatabase, governs, isOfGateway } from '../checked-database.js';
import { policyObject, qualified, relationObject } from '../identity.js';
import { expressionNode } from '../nodes.js';
import { searchPathOf } from '../search-path.js';
import { alternativesOf } from './alternatives.js';
import { type CallerAttribute, ImportedAttributes } from './attributes.js';
import { condition } from './condition.js';
import { currentUser } from './current-user.js';
import type { FunctionBodies } from './function-call.js';
import { GrantOrigins } from './grant-origins.js';
import { type ImportNote, whyAllRows, whyNoEntity } from './notes.js';
import { type ImportedTable, NO_ARGUMENTS, type Range, type Scope, type TableLookup } from './scope.js';
import { readByCaller } from './session-dependence.js';
import { attributesNamedIn, withoutFaults } from './sound-policy.js';
import type { Translation } from './translation.js';
import { FailsInDatabase, Untranslatable } from './untranslatable.js';
import { masksOf, viewColumns } from './view-columns.js';
import { bothOf, grantOn, type MaskedLabel, maskNote, viewGrants } from './view-grants.js';
import { entityRoles, nameOf, type TableView, type ViewPlan, viewPlans } from './view-plan.js';

export interface ImportedPolicy {
  readonly document: PolicyDocument;
  readonly attributes: readonly CallerAttribute[];
  readonly notes: readonly ImportNote[];
  readonly origins: GrantOrigins;
  /** The views that entities over tables stand for, by entity. */
  readonly views: ReadonlyMap<string, TableView>;
}

export interface ImportScope {
  readonly database: CheckedDatabase;
  readonly manifest: Manifest;
  readonly tenant: string;
}

/**
 * Writes the row security of a database as a policy: a role for each database role of the scope, and a grant for each
 * alternative of each policy that applies to it. What has no equivalent is left out, so that a role sees less, and is
 * in the notes. Requires `ready()` of osl-compiler.
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
    ...(importer.attributes.tables.size > 0 && {
      attributes: Object.fromEntries(importer.attributes.tables),
    }),
    roles,
    masks: Object.fromEntries(importer.masks),
  };
  const sound = withoutFaults(document, manifest, importer.notes);
  const used = attributesNamedIn(sound);
  return {
    document: sound,
    attributes: importer.attributes.callers.filter(({ name }) => used.has(name)),
    notes: importer.notes,
    origins: importer.origins,
    views: importer.views,
  };
}

/** Whose rows are read: policies are those of `reader`, and `current_user` is `user`. */
interface Reading {
  readonly reader: Oid;
  readonly user: Oid;
  /** False inside a SECURITY DEFINER function, whose owner is the user. */
  readonly isCaller: boolean;
}

function withOwnRights(id: Oid, isCaller: boolean): Reading {
  return { reader: id, user: id, isCaller };
}

/** The role that reads, and the view through which it does, or null; for the notes. */
interface Subject {
  readonly role: Role;
  readonly view: Relation | null;
}

class Importer {
  readonly attributes = new ImportedAttributes();
  readonly notes: ImportNote[] = [];
  readonly origins = new GrantOrigins();
  /** The mask of each label. */
  readonly masks: ReadonlyMap<string, MaskKind>;
  readonly views: ReadonlyMap<string, TableView>;
  readonly #database: CheckedDatabase;
  readonly #plans: ReadonlyMap<Oid, ViewPlan>;
  /** Tables, and views that became an entity as they are. */
  readonly #tables: ReadonlyMap<Oid, ImportedTable>;
  /** The tables of views that became an entity over their table, by the view. */
  readonly #viewTables: ReadonlyMap<Oid, ImportedTable>;
  readonly #models: ReadonlyMap<string, ModelRelation>;

  constructor(database: CheckedDatabase, manifest: Manifest) {
    this.#database = database;
    this.#plans = viewPlans(database);
    const { own, ofViews } = entityRoles(manifest, this.#plans);
    const imported = (relation: Relation, model: ModelRelation): ImportedTable => ({
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

  /** @throws FailsInDatabase, with a note about the condition */
  #grantsOn(role: Role, relation: Relation): readonly GrantDocument[] {
    const plan = this.#plans.get(relation.id);
    if (plan?.kind === 'table') return this.#ofView(role, plan);
    return plan?.kind === 'refused' ? this.#leaveOut(role, relation) : this.#ofTable(role, relation);
  }

  /** Grants on a table, or on a view that gives everybody the same rows. */
  #ofTable(role: Role, relation: Relation): readonly GrantDocument[] {
    const table = this.#tables.get(relation.id);
    if (table === undefined) return relation.kind === 'sequence' ? [] : this.#leaveOut(role, relation);
    const readable = this.#database.access.columns(role.id, 'SELECT', relation);
    const columns = readable.flatMap((column) => table.columns.get(column) ?? []);
    if (columns.length === 0) return [];
    const unreadable = this.#unreadable(role, relation);
    if (unreadable !== null) return this.#leaveOut(role, relation, unreadable);
    const unmask = this.#labels(table, readable);
    return this.#rowsOf(withOwnRights(role.id, true), table, { role, view: null }).map((rows) =>
      grantOn(table.entity, columns, rows, unmask),
    );
  }

  /** Why a view with the rights of its caller fails for a role, or for the gateway; null if it does not. */
  #unreadable(role: Role, view: Relation): string | null {
    for (const read of readByCaller(this.#database, view)) {
      if (!this.#database.access.holds(role.id, 'SELECT', read))
        return `it needs the right to read all of ${qualified(read)}`;
      if (!this.#tables.has(read.id))
        return `${qualified(read)} is no entity, so the gateway may not read it`;
    }
    return null;
  }

  /** The labels of columns. */
  #labels({ entity, columns }: ImportedTable, names: Iterable<string>): ReadonlySet<string> {
    const own = this.#models.get(entity)?.columns ?? [];
    const wanted = new Set([...names].map((name) => columns.get(name)));
    return new Set(own.flatMap(({ name, sensitivity }) => (wanted.has(name) ? (sensitivity ?? []) : [])));
  }

  #leaveOut(role: Role, relation: Relation, reason?: string): readonly GrantDocument[] {
    const plan = this.#plans.get(relation.id);
    const detail = reason ?? (plan?.kind === 'refused' ? plan.reason : whyNoEntity(relation));
    this.notes.push({ kind: 'refused', object: relationObject(relation).identity, role: role.name, detail });
    return [];
  }

  /** Grants for a view over one table: its rows, and the same with a column unmasked where the view shows it. */
  #ofView(role: Role, plan: TableView): readonly GrantDocument[] {
    const { view, query } = plan;
    const note = (kind: ImportNote['kind'], detail: string | null): void =>
      void this.notes.push({ kind, object: relationObject(view).identity, role: role.name, detail });
    const table = this.#viewTables.get(view.id);
    const reading = view.view?.securityInvoker
      ? withOwnRights(role.id, true)
      : { reader: view.owner, user: role.id, isCaller: true };
    const obstacle = table === undefined ? 'its table is no entity' : this.#obstacle(role, plan, reading);
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
    const policies = this.#rowsOf(reading, table, { role, view });
    const { where } = query;
    const conditions = where === null ? [null] : this.#textsOf(role, plan, table, reading, where);
    const rows = policies.flatMap((filter) => conditions.map((text) => bothOf(filter, text)));
    if (rows.length === 0) {
      note('nothing visible', 'no row meets the conditions of the view for this role');
      return [];
    }
    const masked = [...shown.masked.values()].flatMap(({ of, name, clear }): MaskedLabel[] => {
      const [label] = this.#labels(table, [of]);
      const texts = clear === null ? [] : this.#textsOf(role, plan, table, reading, clear);
      return label === undefined
        ? []
        : [{ name, label, mask: this.masks.get(label) ?? 'deny', clear: texts }];
    });
    const notes = [...shown.notes, ...masked.flatMap((column) => maskNote(column) ?? [])];
    note('view', null);
    if (notes.length > 0) note('changed', notes.join('; '));
    return viewGrants(table.entity, columns, rows, this.#labels(table, shown.plain), masked);
  }

  /** Why the view fails for a role, which then sees nothing of it; null if it does not. */
  #obstacle(role: Role, { view, query }: TableView, { reader }: Reading): string | null {
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

  /** The alternatives of a condition of a view as filters; those without an equivalent are left out, with a note. */
  #textsOf(
    role: Role,
    { view, query }: TableView,
    table: ImportedTable,
    reading: Reading,
    node: Node,
  ): readonly (string | null)[] {
    const range: Range = { alias: query.alias, table };
    const scope: Scope = { ranges: [range], arguments: NO_ARGUMENTS, outer: null, depth: 0 };
    return alternativesOf(node).flatMap((alternative): (string | null)[] => {
      const text = this.#attempt(role, relationObject(view).identity, () => {
        const filter = condition(alternative, scope, range, this.#translation(reading, new Set()));
        this.#requireBound(filter, table);
        return filter;
      });
      return text === null || text === 'false' ? [] : [text === 'true' ? null : text];
    });
  }

  /** The filters of the grants on one table; null for all rows. */
  #rowsOf(reading: Reading, table: ImportedTable, subject: Subject): readonly (string | null)[] {
    const { relation } = table;
    const { role, view } = subject;
    const note = (kind: ImportNote['kind'], detail: string | null): void =>
      void this.notes.push({ kind, object: relationObject(relation).identity, role: role.name, detail });
    if (relation.rowSecurity === 'off') {
      if (view === null) note('no row security', whyAllRows(relation));
      return [null];
    }
    const exemption = this.#database.access.exemption(reading.reader, relation);
    if (exemption !== null) {
      if (view === null)
        note('exempt', `row security does not apply to this role (${exemption}), so it sees all rows`);
      return [null];
    }
    const reader = this.#database.catalog.roles.get(reading.reader);
    const policies = reader === undefined ? [] : this.#policiesFor(reader, relation);
    const restrictive = policies.filter((policy) => !policy.permissive);
    const found = this.#limits(reading, table, restrictive, subject);
    if (found === null) return [];
    const filters = policies
      .filter(({ permissive }) => permissive)
      .flatMap((policy) => this.#filtersOf(reading, table, policy, found, subject));
    if (policies.every(({ permissive }) => !permissive))
      note(
        'nothing visible',
        `no permissive policy for SELECT applies to the ${view === null ? 'role' : 'owner of the view'}`,
      );
    return filters.includes(null) ? [null] : [...new Set(filters)];
  }

  #policiesFor(role: Role, relation: Relation): readonly Policy[] {
    const { catalog, isFor } = this.#database;
    // A policy without USING adds no condition for SELECT: a permissive one opens nothing.
    return relation.policies
      .filter((policy) => policy.using !== null && governs(policy, 'SELECT') && isFor(policy, role))
      .flatMap((policy) => (isOfGateway(policy, catalog) ? secondLineFor(policy, role) : policy));
  }

  /** The restrictive policies as one filter, empty if there are none; null if one of them has no equivalent. */
  #limits(
    reading: Reading,
    table: ImportedTable,
    policies: readonly Policy[],
    subject: Subject,
  ): readonly string[] | null {
    const { role } = subject;
    const limits: string[] = [];
    for (const policy of policies) {
      const text = this.#attempt(role, policyIn(subject, table, policy), () =>
        this.#condition(reading, table, conditionOf(policy)),
      );
      if (text === null) {
        this.notes.push({
          kind: 'nothing visible',
          object: relationObject(table.relation).identity,
          role: role.name,
          detail: 'a restrictive policy could not be imported, and without it the role would see too much',
        });
        return null;
      }
      limits.push(text);
    }
    return limits;
  }

  #filtersOf(
    reading: Reading,
    table: ImportedTable,
    policy: Policy,
    limits: readonly string[],
    subject: Subject,
  ): readonly (string | null)[] {
    const { role } = subject;
    const object = policyIn(subject, table, policy);
    const alternatives = this.#attempt(role, object, () => alternativesOf(conditionOf(policy)));
    return (alternatives ?? []).flatMap((alternative) => {
      const text = this.#attempt(role, object, () => {
        const parts = [this.#condition(reading, table, alternative), ...limits].filter(
          (part) => part !== 'true',
        );
        const filter = parts.length === 0 ? null : parts.join(' and ');
        if (filter !== null) this.#requireBound(filter, table);
        return filter ?? '';
      });
      if (text === null) return [];
      this.notes.push({ kind: 'imported', object, role: role.name, detail: null });
      const filter = text === '' ? null : text;
      this.origins.add(nameFrom(role.name), table.entity, filter, policy.name);
      return [filter];
    });
  }

  /** The result of a translation; null, with a note, if it is impossible. @throws FailsInDatabase, with a note */
  #attempt<T>(role: Role, object: string, translate: () => T): T | null {
    try {
      return translate();
    } catch (error) {
      if (!(error instanceof Untranslatable)) throw error;
      this.notes.push({ kind: 'refused', object, role: role.name, detail: error.message });
      if (error instanceof FailsInDatabase) throw error;
      return null;
    }
  }

  #condition(reading: Reading, table: ImportedTable, node: Node): string {
    const range: Range = { alias: table.relation.name, table };
    const scope: Scope = { ranges: [range], arguments: NO_ARGUMENTS, outer: null, depth: 0 };
    return condition(node, scope, range, this.#translation(reading, new Set([table.relation.id])));
  }

  /** @param open tables whose policies are being translated */
  #translation(reading: Reading, open: ReadonlySet<Oid>): Translation {
    const { access, catalog } = this.#database;
    const { user, isCaller } = reading;
    const rowsOf =
      (as: Reading) =>
      (range: Range): string | null =>
        this.#readable(as, range, open);
    const tables: TableLookup = {
      table: (schema, name, searchPath) => this.#tableNamed(schema, name, searchPath),
    };
    const functions: FunctionBodies = {
      named: (schema, name, args, searchPath) => this.#functionsNamed(schema, name, args, searchPath),
      asOwner: ({ owner }) => ({
        rows: rowsOf(withOwnRights(owner, false)),
        user: currentUser(catalog, access, owner, false),
      }),
    };
    return {
      tables,
      functions,
      attributes: this.attributes,
      searchPath: this.#searchPathOf(user),
      readableRows: rowsOf(reading),
      rowsOfUser: rowsOf(withOwnRights(user, isCaller)),
      user: currentUser(catalog, access, user, isCaller),
      filterOf: condition,
    };
  }

  /** The search_path of a role, as ALTER ROLE and ALTER DATABASE set it. */
  #searchPathOf(reader: Oid): readonly string[] {
    const role = this.#database.catalog.roles.get(reader);
    if (role === undefined) return ['public'];
    return searchPathOf(role) ?? [role.name, 'public'];
  }

  #tableNamed(schema: string | null, name: string, searchPath: readonly string[]): ImportedTable {
    for (const one of schema === null ? searchPath : [schema]) {
      const found = this.#database.relationNamed({ schema: one, name });
      if (found === null) continue;
      const table = this.#tables.get(found.id);
      if (table !== undefined) return table;
      throw new Untranslatable(`${qualified(found)}, which is no entity of the model`);
    }
    throw new Untranslatable(`a table \`${name}\` that was not found`);
  }

  /** Functions of the first schema that has some of this name and number of arguments. */
  #functionsNamed(
    schema: string | null,
    name: string,
    args: number,
    searchPath: readonly string[],
  ): readonly DatabaseFunction[] {
    for (const one of schema === null ? searchPath : [schema]) {
      const found = this.#database
        .functionsNamed({ schema: one, name })
        .filter((f) => argumentsOf(f) === args);
      if (found.length > 0) return found;
    }
    return [];
  }

  /** The filter of the rows that a role may read in a subquery; null for all rows. */
  #readable(reading: Reading, { table }: Range, open: ReadonlySet<Oid>): string | null {
    const { relation } = table;
    const { reader } = reading;
    const { access, catalog } = this.#database;
    const role = catalog.roles.get(reader);
    if (role === undefined) throw new Untranslatable('a function of an unknown owner');
    if (access.columns(reader, 'SELECT', relation).length === 0)
      throw new FailsInDatabase(`${qualified(relation)}, which ${role.name} may not read: the policy fails`);
    if (relation.rowSecurity === 'off' || access.exemption(reader, relation) !== null) return null;
    if (open.has(relation.id))
      throw new FailsInDatabase(
        `${qualified(relation)}, whose policy reads itself: infinite recursion in the database`,
      );
    const policies = this.#policiesFor(role, relation);
    const context = this.#translation(reading, new Set([...open, relation.id]));
    const range: Range = { alias: relation.name, table };
    const scope: Scope = { ranges: [range], arguments: NO_ARGUMENTS, outer: null, depth: 0 };
    const of = (policy: Policy): string => condition(conditionOf(policy), scope, range, context);
    const either = policies.filter(({ permissive }) => permissive).map(of);
    const all = policies.filter(({ permissive }) => !permissive).map(of);
    if (either.length === 0) return 'false';
    // A condition that has AND or OR at its top has parentheses of its own.
    const some = either.length === 1 ? (either[0] ?? 'false') : `(${either.join(' or ')})`;
    return [...new Set([some, ...all])].join(' and ');
  }

  /** @throws Untranslatable if a policy file cannot have the filter */
  #requireBound(filter: string, table: ImportedTable): void {
    const model = this.#models.get(table.entity);
    if (model === undefined) return;
    try {
      bindPredicate(filter, model);
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      throw new Untranslatable(error.message);
    }
  }
}

/** A policy, as a note names it. */
function policyIn({ view }: Subject, table: ImportedTable, policy: Policy): string {
  const { identity } = policyObject(table.relation, policy);
  return view === null ? identity : `${identity}, in the view ${qualified(view)}`;
}

const SECOND_LINE =
  'the rights that a gateway sends, by `osl row-security`: its policy file has these grants';

/**
 * A policy of `osl row-security` for a role. Where it enables row security for the role of its gateway, a second policy
 * lets all other roles see all rows.
 */
function secondLineFor(policy: Policy, { name }: Role): readonly Policy[] {
  const [, gateway] = /^\(SESSION_USER <> '((?:[^']|'')*)'::name\)$/.exec(policy.using ?? '') ?? [];
  if (policy.name !== OTHERS_POLICY || gateway === undefined) return [policy];
  return gateway.replaceAll("''", "'") === name ? [] : [{ ...policy, using: 'true' }];
}

/** The condition of a policy. @throws Untranslatable */
function conditionOf({ using }: Policy): Node {
  if (using?.includes(`${SCHEMA}.`) === true) throw new Untranslatable(SECOND_LINE);
  try {
    const value = expressionNode(using ?? '');
    if (value !== null) return value;
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    throw new Untranslatable(error.message);
  }
  throw new Untranslatable('an empty condition');
}

function argumentsOf({ arguments: types }: DatabaseFunction): number {
  return types === '' ? 0 : types.split(', ').length;
}
