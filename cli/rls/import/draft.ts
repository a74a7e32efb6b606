import type { Node } from '@pgsql/types';
import { bindPredicate, type Relation as ModelRelation, QueryError } from 'osl-compiler';
import type { GrantDocument, PolicyDocument, RoleDocument } from '../../../policy/document.js';
import { compileSnapshot, PolicyProblems } from '../../../policy/index.js';
import { type Manifest, nameFrom, tableName } from '../../../src/model/manifest/index.js';
import type { DatabaseFunction, Oid, Policy, Relation, Role } from '../catalog/catalog.js';
import { type CheckedDatabase, governs } from '../checked-database.js';
import { schemasOf } from '../function-body.js';
import { policyObject, qualified, relationObject } from '../identity.js';
import { expressionNode } from '../nodes.js';
import { alternativesOf } from './alternatives.js';
import { type CallerAttribute, ImportedAttributes } from './attributes.js';
import { condition } from './condition.js';
import type { FunctionBodies } from './function-call.js';
import { type ImportedTable, NO_ARGUMENTS, type Range, type Scope, type TableLookup } from './scope.js';
import type { Translation } from './translation.js';
import { FailingPolicy, Untranslatable } from './untranslatable.js';

/** One policy, table or view, and what became of it for a role. */
export interface ImportNote {
  readonly kind: 'imported' | 'refused' | 'no row security' | 'exempt' | 'nothing visible';
  /** Such as `members on app.document`. */
  readonly object: string;
  readonly role: string;
  /** Reason of a refusal, and its consequence; null if there is nothing to say. */
  readonly detail: string | null;
}

export interface ImportedPolicy {
  readonly document: PolicyDocument;
  readonly attributes: readonly CallerAttribute[];
  readonly notes: readonly ImportNote[];
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
    masks: {},
  };
  const sound = withoutFaults(document, manifest, importer.notes);
  const used = attributesNamedIn(sound);
  return {
    document: sound,
    attributes: importer.attributes.callers.filter(({ name }) => used.has(name)),
    notes: importer.notes,
  };
}

class Importer {
  readonly attributes = new ImportedAttributes();
  readonly notes: ImportNote[] = [];
  readonly #database: CheckedDatabase;
  readonly #tables: ReadonlyMap<Oid, ImportedTable>;
  readonly #models: ReadonlyMap<string, ModelRelation>;
  /** True if a policy of the table that is being imported fails in the database. */
  #fails = false;

  constructor(database: CheckedDatabase, manifest: Manifest) {
    this.#database = database;
    const byTable = new Map([...manifest.catalog.relations.values()].map((r) => [tableName(r), r]));
    this.#tables = new Map(
      [...database.catalog.relations.values()].flatMap((relation): [Oid, ImportedTable][] => {
        const model = byTable.get(`${relation.schema}.${relation.name}`);
        if (model === undefined) return [];
        const columns = new Map(model.columns.map((c) => [c.physical, c.name]));
        return [[relation.id, { relation, entity: model.name, columns }]];
      }),
    );
    this.#models = manifest.catalog.relations;
  }

  grantsOf(role: Role): readonly GrantDocument[] {
    const { access } = this.#database;
    return this.#database.relations.flatMap((relation) => {
      const table = this.#tables.get(relation.id);
      const readable = access.columns(role.id, 'SELECT', relation);
      if (table === undefined && readable.length > 0 && relation.kind !== 'sequence')
        this.#leaveOut(role, relation);
      if (table === undefined || readable.length === 0) return [];
      const columns = readable.flatMap((column) => table.columns.get(column) ?? []);
      if (columns.length === 0) return [];
      return this.#rowsOf(role, table).map((rows) => ({
        on: table.entity,
        columns: [...columns],
        ...(rows !== null && { rows }),
      }));
    });
  }

  #leaveOut(role: Role, relation: Relation): void {
    const detail =
      relation.kind === 'table' || relation.kind === 'partitioned table'
        ? 'it did not become an entity'
        : `a ${relation.kind} is not imported: grant its tables, and mask columns by labels`;
    this.notes.push({ kind: 'refused', object: relationObject(relation).identity, role: role.name, detail });
  }

  /** The filters of the grants on one table; null for all rows. */
  #rowsOf(role: Role, table: ImportedTable): readonly (string | null)[] {
    const { relation } = table;
    const object = relationObject(relation).identity;
    const note = (kind: ImportNote['kind'], detail: string | null): void =>
      void this.notes.push({ kind, object, role: role.name, detail });
    if (relation.rowSecurity === 'off') {
      note('no row security', 'the role sees all rows, as in the database');
      return [null];
    }
    const exemption = this.#database.access.exemption(role.id, relation);
    if (exemption !== null) {
      note('exempt', `row security does not apply to this role (${exemption}), so it sees all rows`);
      return [null];
    }
    const policies = this.#policiesFor(role, relation);
    this.#fails = false;
    const restrictive = policies.filter((policy) => !policy.permissive);
    const found = this.#limits(role, table, restrictive);
    if (found === null) return [];
    const filters = policies
      .filter(({ permissive }) => permissive)
      .flatMap((policy) => this.#filtersOf(role, table, policy, found));
    if (policies.every(({ permissive }) => !permissive))
      note('nothing visible', 'no permissive policy for SELECT applies to the role');
    if (this.#fails) {
      note('nothing visible', 'a policy fails for the role, and with it every query of the table');
      return [];
    }
    return filters.includes(null) ? [null] : [...new Set(filters)];
  }

  #policiesFor(role: Role, relation: Relation): readonly Policy[] {
    // A policy without USING adds no condition for SELECT: a permissive one opens nothing.
    return relation.policies.filter(
      (policy) => policy.using !== null && governs(policy, 'SELECT') && this.#database.isFor(policy, role),
    );
  }

  /** The restrictive policies as one filter, empty if there are none; null if one of them has no equivalent. */
  #limits(role: Role, table: ImportedTable, policies: readonly Policy[]): readonly string[] | null {
    const limits: string[] = [];
    for (const policy of policies) {
      const text = this.#attempt(role, table, policy, () =>
        this.#condition(role, table, conditionOf(policy)),
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
    role: Role,
    table: ImportedTable,
    policy: Policy,
    limits: readonly string[],
  ): readonly (string | null)[] {
    const alternatives = alternativesOf(conditionOf(policy));
    return alternatives.flatMap((alternative) => {
      const text = this.#attempt(role, table, policy, () => {
        const parts = [this.#condition(role, table, alternative), ...limits].filter(
          (part) => part !== 'true',
        );
        const filter = parts.length === 0 ? null : parts.join(' and ');
        if (filter !== null) this.#requireBound(filter, table);
        return filter ?? '';
      });
      if (text === null) return [];
      this.notes.push({
        kind: 'imported',
        object: policyObject(table.relation, policy).identity,
        role: role.name,
        detail: null,
      });
      return [text === '' ? null : text];
    });
  }

  /** The result of a translation; null, with a note, if it is impossible. */
  #attempt(role: Role, table: ImportedTable, policy: Policy, translate: () => string): string | null {
    try {
      return translate();
    } catch (error) {
      if (!(error instanceof Untranslatable)) throw error;
      this.#fails ||= error instanceof FailingPolicy;
      this.notes.push({
        kind: 'refused',
        object: policyObject(table.relation, policy).identity,
        role: role.name,
        detail: error.message,
      });
      return null;
    }
  }

  #condition(role: Role, table: ImportedTable, node: Node): string {
    const range: Range = { alias: table.relation.name, table };
    const scope: Scope = { ranges: [range], arguments: NO_ARGUMENTS, outer: null, depth: 0 };
    return condition(node, scope, range, this.#translation(role.id, new Set([table.relation.id])));
  }

  /** @param open tables whose policies are being translated */
  #translation(reader: Oid, open: ReadonlySet<Oid>): Translation {
    const readableRows = (range: Range): string | null => this.#readable(reader, range, open);
    const tables: TableLookup = {
      table: (schema, name, searchPath) => this.#tableNamed(schema, name, searchPath),
    };
    const functions: FunctionBodies = {
      named: (schema, name, args, searchPath) => this.#functionsNamed(schema, name, args, searchPath),
      rowsOfOwner: (called) => (range) => this.#readable(called.owner, range, open),
    };
    return {
      tables,
      functions,
      attributes: this.attributes,
      searchPath: this.#searchPathOf(reader),
      readableRows,
      filterOf: condition,
    };
  }

  /** The search_path of a role, as ALTER ROLE and ALTER DATABASE set it. */
  #searchPathOf(reader: Oid): readonly string[] {
    const role = this.#database.catalog.roles.get(reader);
    const own = role?.settings.find((setting) => setting.startsWith(SEARCH_PATH));
    const names = own === undefined ? ['$user', 'public'] : schemasOf(own.slice(SEARCH_PATH.length));
    return names.map((name) => (name === '$user' ? (role?.name ?? name) : name));
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
  #readable(reader: Oid, { table }: Range, open: ReadonlySet<Oid>): string | null {
    const { relation } = table;
    const { access, catalog } = this.#database;
    const role = catalog.roles.get(reader);
    if (role === undefined) throw new Untranslatable('a function of an unknown owner');
    if (access.columns(reader, 'SELECT', relation).length === 0)
      throw new FailingPolicy(`${qualified(relation)}, which ${role.name} may not read: the policy fails`);
    if (relation.rowSecurity === 'off' || access.exemption(reader, relation) !== null) return null;
    if (open.has(relation.id))
      throw new Untranslatable(
        `${qualified(relation)}, whose policy reads itself: infinite recursion in the database`,
      );
    const policies = this.#policiesFor(role, relation);
    const context = this.#translation(reader, new Set([...open, relation.id]));
    const range: Range = { alias: relation.name, table };
    const scope: Scope = { ranges: [range], arguments: NO_ARGUMENTS, outer: null, depth: 0 };
    const of = (policy: Policy): string => condition(conditionOf(policy), scope, range, context);
    const either = policies.filter(({ permissive }) => permissive).map(of);
    const all = policies.filter(({ permissive }) => !permissive).map(of);
    if (either.length === 0) return 'false';
    return [`(${either.join(' or ')})`, ...all].join(' and ');
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

const SEARCH_PATH = 'search_path=';

/** The condition of a policy. @throws Untranslatable */
function conditionOf({ using }: Policy): Node {
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

/** The document without grants that do not compile, such as those that compare values of different types. */
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

/** The attributes that grants name, and those that these need. */
function attributesNamedIn({ roles, attributes = {} }: PolicyDocument): ReadonlySet<string> {
  const found = new Set<string>();
  const add = (text: string | undefined): void => {
    for (const [, name = ''] of text?.matchAll(/attribute\('([^']+)'\)/g) ?? []) {
      if (found.has(name)) continue;
      found.add(name);
      add(attributes[name]?.rows);
    }
  };
  for (const { grants } of Object.values(roles)) for (const { rows } of grants) add(rows);
  return found;
}
