import type { Node } from '@pgsql/types';
import type { RoleAccess } from '../catalog/access.js';
import type { DatabaseFunction, Oid, SecurityCatalog } from '../catalog/catalog.js';
import { calledName, literalOf } from '../nodes.js';
import { Untranslatable } from './scope.js';

/** The role that `current_user` names. */
export interface CurrentUser {
  /** True for the caller, false for the owner of a SECURITY DEFINER function. */
  readonly isCaller: boolean;
  readonly name: string;
  mayExecute(called: DatabaseFunction): boolean;
  /** Result of `pg_has_role`. @throws Untranslatable for an unknown role or kind of membership */
  hasRole(role: string, privilege: string): boolean;
}

/** @param isCaller false for the owner of a SECURITY DEFINER function */
export function currentUser(
  { roles }: SecurityCatalog,
  access: RoleAccess,
  id: Oid,
  isCaller: boolean,
): CurrentUser {
  return {
    isCaller,
    name: roles.get(id)?.name ?? `role ${id}`,
    mayExecute: (called) => access.mayExecute(id, called),
    hasRole: (name, privilege) => {
      const role = [...roles.values()].find((one) => one.name === name);
      if (role === undefined) throw new Untranslatable(`pg_has_role of \`${name}\`, which is no role`);
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

/** The role and all that it is a member of, with or without their privileges. */
function membersOf(roles: SecurityCatalog['roles'], id: Oid): ReadonlySet<Oid> {
  const reached = new Set([id]);
  for (const one of reached) for (const { role } of roles.get(one)?.memberships ?? []) reached.add(role);
  return reached;
}

/**
 * The result of `pg_has_role` for the current user, which the database role decides; null for any other node.
 *
 * @throws Untranslatable for other users and for names that are no literals
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

/** `current_user`, `current_role` and `user`. */
const CURRENT_USER: ReadonlySet<unknown> = new Set([
  'SVFOP_CURRENT_USER',
  'SVFOP_CURRENT_ROLE',
  'SVFOP_USER',
]);
