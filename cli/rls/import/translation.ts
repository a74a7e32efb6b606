import type { Node } from '@pgsql/types';
import { parse, QueryError } from 'osl-compiler';
import type { RolePrivileges } from '../catalog/access.js';
import {
  type DatabaseFunction,
  type Oid,
  type SecurityCatalog,
  schemasFor,
  schemasOf,
} from '../catalog/catalog.js';
import { calledName, firstTarget, literalOf, namesOf } from '../nodes.js';
import { queryText } from '../statement.js';
import { type ImportedAttributes, isCallerFunction } from './caller-value.js';
import {
  type BoundNode,
  FailsInDatabase,
  type FromTable,
  type NameScope,
  NO_ARGUMENTS,
  type ReadableRows,
  type TableLookup,
  Untranslatable,
} from './scope.js';

/** The role that `current_user` names. */
interface CurrentUser {
  /** True for the caller, false for the owner of a SECURITY DEFINER function. */
  readonly isCaller: boolean;
  readonly name: string;
  mayExecute(called: DatabaseFunction): boolean;
  /** Result of `pg_has_role`. @throws Untranslatable for an unknown role or kind of membership */
  hasRole(role: string, privilege: string): boolean;
}

/** @param isCaller true for the caller, false for the owner of a SECURITY DEFINER function */
export function currentUser(
  { roles }: SecurityCatalog,
  access: RolePrivileges,
  id: Oid,
  isCaller: boolean,
): CurrentUser {
  return {
    isCaller,
    name: roles.get(id)?.name ?? `role ${id}`,
    mayExecute: (called) => access.mayExecute(id, called),
    hasRole: (name, privilege) => {
      const role = [...roles.values()].find((one) => one.name === name);
      if (role === undefined) throw new Untranslatable(`pg_has_role of \`${name}\`, which is not a role`);
      if (roles.get(id)?.superuser === true) return true;
      switch (privilege.trim().toUpperCase()) {
        case 'MEMBER':
          return membersOf(roles, id).has(role.id);
        case 'USAGE':
          return access.privilegesOf(id).has(role.id);
        default:
          throw new Untranslatable(`pg_has_role with ${privilege}`);
      }
    },
  };
}

/** The role and all roles of which it is a member, with or without inheriting their privileges. */
function membersOf(roles: SecurityCatalog['roles'], id: Oid): ReadonlySet<Oid> {
  const reached = new Set([id]);
  for (const one of reached) for (const { role } of roles.get(one)?.memberships ?? []) reached.add(role);
  return reached;
}

/**
 * The result of `pg_has_role` for the current user, known from the database role; null for any other node.
 *
 * @throws Untranslatable for other users and for names that are not literals
 */
export function membershipOfRole(node: Node, user: CurrentUser): boolean | null {
  if (!('FuncCall' in node)) return null;
  const { schema, name } = calledName(node.FuncCall);
  if (schema !== null || name !== 'pg_has_role') return null;
  const args = node.FuncCall.args ?? [];
  const [role, privilege] = args.slice(-2).map(literalOf);
  if (args.length === 3 && !isCurrentUser(args[0])) throw new Untranslatable('pg_has_role of another user');
  if (role === undefined || role === null || privilege === undefined || privilege === null)
    throw new Untranslatable('pg_has_role of a role that depends on the row');
  return user.hasRole(role, privilege);
}

function isCurrentUser(node: Node | undefined): boolean {
  if (node === undefined) return false;
  if ('TypeCast' in node) return isCurrentUser(node.TypeCast.arg);
  return 'SQLValueFunction' in node && CURRENT_USER.has(node.SQLValueFunction.op);
}

/** Parser names of `current_user`, `current_role` and `user`. */
const CURRENT_USER: ReadonlySet<unknown> = new Set([
  'SVFOP_CURRENT_USER',
  'SVFOP_CURRENT_ROLE',
  'SVFOP_USER',
]);

/** Looks up user-defined functions. */
export interface FunctionBodies {
  /** Functions with this name and number of arguments, in `schema` or in the search_path. */
  named(
    schema: string | null,
    name: string,
    args: number,
    searchPath: readonly string[],
  ): readonly DatabaseFunction[];
  /** The rights of a SECURITY DEFINER function: the rows that it may read, and its current user. */
  asOwner(called: DatabaseFunction): OwnerRights;
}

interface OwnerRights {
  readonly rows: ReadableRows;
  readonly user: CurrentUser;
}

/** The expression of a function body that replaces a call. */
export interface InlinedCall extends BoundNode {
  /** search_path that the function sets; null: that of the caller. */
  readonly searchPath: readonly string[] | null;
  /** Rights of the owner for a SECURITY DEFINER function; null: those of the current user. */
  readonly rights: OwnerRights | null;
}

const DEPTH = 8;

/** The expression that replaces a call of a user-defined function; null for any other node. @throws Untranslatable */
export function inlined(
  node: Node,
  scope: NameScope,
  functions: FunctionBodies,
  searchPath: readonly string[],
  user: CurrentUser,
): InlinedCall | null {
  if (!('FuncCall' in node)) return null;
  const names = namesOf(node.FuncCall.funcname);
  const { schema, name } = calledName(node.FuncCall);
  if ((schema === null && names.length > 1) || isCallerFunction(schema, name)) return null; // built in, or a claim
  const args = node.FuncCall.args ?? [];
  const [called, another] = functions.named(schema, name, args.length, schemasFor(user.name, searchPath));
  if (called === undefined) return null;
  const text = names.join('.');
  if (another !== undefined) throw new Untranslatable(`there are several functions ${text}`);
  if (!user.mayExecute(called))
    throw new FailsInDatabase(`${text}, which ${user.name} may not execute: the policy fails`);
  if (scope.depth > DEPTH) throw new Untranslatable(`${text} calls itself`);
  if (called.strict && args.length > 0) throw new Untranslatable(`${text}, which is STRICT`);
  const bound = new Map<string, BoundNode>();
  for (const [i, arg] of args.entries()) {
    bound.set(`$${i + 1}`, { node: arg, scope });
    const argument = called.argumentNames[i];
    if (argument !== undefined && argument !== '') bound.set(argument, { node: arg, scope });
  }
  return {
    node: expressionOf(called, text),
    // Only the arguments come from outside: a body does not see the columns around its call.
    scope: {
      ranges: [],
      arguments: bound.size === 0 ? NO_ARGUMENTS : bound,
      outer: null,
      depth: scope.depth + 1,
    },
    searchPath: called.searchPath === null ? null : schemasOf(called.searchPath),
    rights: called.securityDefiner ? functions.asOwner(called) : null,
  };
}

/** The single expression of a function, or its single SELECT as a subquery. */
function expressionOf(called: DatabaseFunction, name: string): Node {
  const statement = queryText(called);
  if (statement === null) throw new Untranslatable(`${name}, which is not a single expression of SQL`);
  const { node } = parsed(statement, name);
  const select = 'SelectStmt' in node ? node.SelectStmt : null;
  const target = select === null ? null : firstTarget(select);
  if (select === null || target === null || select.targetList?.length !== 1)
    throw new Untranslatable(`${name}, which is no SELECT of one value`);
  const plain = select.fromClause === undefined && select.whereClause === undefined;
  if (plain) return target;
  return { SubLink: { subLinkType: called.returnsSet ? 'ARRAY_SUBLINK' : 'EXPR_SUBLINK', subselect: node } };
}

function parsed(statement: string, name: string): { readonly node: Node } {
  try {
    return parse(statement.trim().replace(/;$/, ''));
  } catch (error) {
    if (error instanceof QueryError) throw new Untranslatable(`${name}: ${error.message}`);
    throw error;
  }
}

/** Context of a translation: the database, and the role for which it is made. */
export interface Translation {
  readonly tables: TableLookup;
  readonly functions: FunctionBodies;
  readonly attributes: ImportedAttributes;
  /** The search_path in which names without a schema are looked up. */
  readonly searchPath: readonly string[];
  /** The filter for the rows that a subquery may read in a table; null for all. @throws Untranslatable */
  readonly readableRows: ReadableRows;
  /**
   * The same inside a function without SECURITY DEFINER, which reads as the current user. Differs from `readableRows`
   * in a view with the rights of its owner, and in policies below that view.
   */
  readonly rowsOfUser: ReadableRows;
  /** The role that `current_user` names. */
  readonly user: CurrentUser;
  /** Writes a condition inside a subquery; see `condition`. */
  filterOf(node: Node, place: ConditionPlace): string;
}

/** The names that a condition may use, and the table whose rows its filter selects. */
export interface ConditionPlace {
  readonly scope: NameScope;
  readonly range: FromTable;
  readonly context: Translation;
  /** False inside NOT: parts that would then accept more rows than the condition are refused. */
  readonly positive: boolean;
}
