import type { Node } from '@pgsql/types';
import type { ImportedAttributes } from './attributes.js';
import type { FunctionBodies } from './function-call.js';
import type { Range, Scope, TableLookup } from './scope.js';

export type ReadableRows = (range: Range) => string | null;

/** The role that `current_user` names. */
export interface CurrentUser {
  /** True for the caller, false for the owner of a SECURITY DEFINER function. */
  readonly isCaller: boolean;
  /** Result of `pg_has_role`. @throws Untranslatable for an unknown role or kind of membership */
  hasRole(role: string, privilege: string): boolean;
}

/** Context of a translation: the database, and the role for which it is made. */
export interface Translation {
  readonly tables: TableLookup;
  readonly functions: FunctionBodies;
  readonly attributes: ImportedAttributes;
  /** The search_path for names without a schema. */
  readonly searchPath: readonly string[];
  /** The filter of the rows of a table that a subquery may read; null for all rows. @throws Untranslatable */
  readonly readableRows: ReadableRows;
  /**
   * The same inside a function without SECURITY DEFINER, which reads as the current user. Another role's rows than
   * `readableRows` in a view with the rights of its owner, and in policies below it.
   */
  readonly rowsOfUser: ReadableRows;
  /** The current user. */
  readonly user: CurrentUser;
  /** Writes a condition inside a subquery; see `condition`. */
  filterOf(node: Node, scope: Scope, range: Range, context: Translation, positive: boolean): string;
}
