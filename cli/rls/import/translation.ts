import type { Node } from '@pgsql/types';
import type { ImportedAttributes } from './attributes.js';
import type { CurrentUser } from './current-user.js';
import type { FunctionBodies } from './function-call.js';
import type { Range, ReadableRows, Scope, TableLookup } from './scope.js';

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
