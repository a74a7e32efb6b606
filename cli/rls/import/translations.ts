import type { Node } from '@pgsql/types';
import { QueryError } from 'osl-compiler';
import { OTHERS_POLICY, SCHEMA } from '../../../src/model/row-security/index.js';
import type { DatabaseFunction, Oid, PgRelation, Policy, Role } from '../catalog/catalog.js';
import { DEFAULT_SEARCH_PATH, qualified, searchPathOf } from '../catalog/catalog.js';
import { type CheckedDatabase, governs, isOfGateway } from '../database.js';
import { expressionNode } from '../nodes.js';
import { ImportedAttributes } from './caller-value.js';
import { condition } from './condition.js';
import {
  FailsInDatabase,
  type FromTable,
  type ImportedTable,
  type NameScope,
  NO_ARGUMENTS,
  type TableLookup,
  Untranslatable,
} from './scope.js';
import type { FunctionBodies, Translation } from './translation.js';
import { currentUser } from './translation.js';

/** The roles that matter when rows are read: the policies of `reader` apply, and `current_user` is `user`. */
export interface ReadRights {
  readonly reader: Oid;
  readonly user: Oid;
  /** False inside a SECURITY DEFINER function, whose owner is the user. */
  readonly isCaller: boolean;
}

export function withOwnRights(id: Oid, isCaller: boolean): ReadRights {
  return { reader: id, user: id, isCaller };
}

/** Translates conditions of one database to filters, including the row security of tables in subqueries. */
export class Translations {
  readonly attributes = new ImportedAttributes();
  readonly #database: CheckedDatabase;
  readonly #tables: ReadonlyMap<Oid, ImportedTable>;

  /** @param tables tables and views that are the source of an entity */
  constructor(database: CheckedDatabase, tables: ReadonlyMap<Oid, ImportedTable>) {
    this.#database = database;
    this.#tables = tables;
  }

  /** Translates the condition of a policy of `table` to a filter. @throws Untranslatable */
  policyFilter(reading: ReadRights, table: ImportedTable, node: Node): string {
    const range: FromTable = { alias: table.relation.name, table };
    return this.#filter(node, range, this.#translation(reading, new Set([table.relation.id])));
  }

  /** Translates a condition of a view over one table to a filter. @throws Untranslatable */
  viewFilter(reading: ReadRights, range: FromTable, node: Node): string {
    return this.#filter(node, range, this.#translation(reading, new Set()));
  }

  /** Policies that determine which rows a role can read. */
  policiesFor(role: Role, relation: PgRelation): readonly Policy[] {
    const { catalog, isFor } = this.#database;
    // A policy without USING has no effect on SELECT: a permissive one adds no rows, and a restrictive one hides none.
    return relation.policies
      .filter((policy) => policy.using !== null && governs(policy, 'SELECT') && isFor(policy, role))
      .flatMap((policy) => (isOfGateway(policy, catalog) ? secondLineFor(policy, role) : policy));
  }

  #filter(node: Node, range: FromTable, translation: Translation): string {
    const scope: NameScope = { ranges: [range], arguments: NO_ARGUMENTS, outer: null, depth: 0 };
    return condition(node, { scope, range, context: translation, positive: true });
  }

  /** @param open tables whose policies are being translated, to detect policies that read themselves */
  #translation(reading: ReadRights, open: ReadonlySet<Oid>): Translation {
    const { access, catalog } = this.#database;
    const { user, isCaller } = reading;
    const rowsOf =
      (as: ReadRights) =>
      (range: FromTable): string | null =>
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

  /** The search_path of a role, as set by ALTER ROLE or ALTER DATABASE, or the default. */
  #searchPathOf(reader: Oid): readonly string[] {
    const role = this.#database.catalog.roles.get(reader);
    return (role === undefined ? null : searchPathOf(role)) ?? DEFAULT_SEARCH_PATH;
  }

  #tableNamed(schema: string | null, name: string, searchPath: readonly string[]): ImportedTable {
    for (const one of schema === null ? searchPath : [schema]) {
      const found = this.#database.relationNamed({ schema: one, name });
      if (found === null) continue;
      const table = this.#tables.get(found.id);
      if (table !== undefined) return table;
      throw new Untranslatable(`${qualified(found)}, which is not an entity of the model`);
    }
    throw new Untranslatable(`a table \`${name}\` that was not found`);
  }

  /** Functions with this name and number of arguments, from the first schema that has any. */
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

  /** The filter for the rows that a role may read in a subquery; null for all rows. */
  #readable(reading: ReadRights, { table }: FromTable, open: ReadonlySet<Oid>): string | null {
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
    const policies = this.policiesFor(role, relation);
    const context = this.#translation(reading, new Set([...open, relation.id]));
    const range: FromTable = { alias: relation.name, table };
    const of = (policy: Policy): string => this.#filter(conditionOf(policy), range, context);
    const either = policies.filter(({ permissive }) => permissive).map(of);
    const all = policies.filter(({ permissive }) => !permissive).map(of);
    if (either.length === 0) return 'false';
    // A condition with AND or OR at its top level is already in parentheses.
    const some = either.length === 1 ? (either[0] ?? 'false') : `(${either.join(' or ')})`;
    return [...new Set([some, ...all])].join(' and ');
  }
}

const SECOND_LINE =
  'the rights that a gateway sends, by `osl row-security`: its policy file has these grants';

/**
 * A policy made by `osl row-security`, as it applies to a role. `OTHERS_POLICY`, which shows all rows to every role
 * except the gateway's, becomes `true`, or is left out for the gateway's role.
 */
function secondLineFor(policy: Policy, { name }: Role): readonly Policy[] {
  const [, gateway] = /^\(SESSION_USER <> '((?:[^']|'')*)'::name\)$/.exec(policy.using ?? '') ?? [];
  if (policy.name !== OTHERS_POLICY || gateway === undefined) return [policy];
  return gateway.replaceAll("''", "'") === name ? [] : [{ ...policy, using: 'true' }];
}

/** Parses the condition of a policy. @throws Untranslatable */
export function conditionOf({ using }: Policy): Node {
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
