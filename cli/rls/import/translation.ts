import type { Node } from '@pgsql/types';
import type { ImportedAttributes } from './attributes.js';
import type { FunctionBodies } from './function-call.js';
import type { Range, Scope, TableLookup } from './scope.js';

/** Context of a translation: the database, and the role for which it is made. */
export interface Translation {
  readonly tables: TableLookup;
  readonly functions: FunctionBodies;
  readonly attributes: ImportedAttributes;
  /** The search_path for names without a schema. */
  readonly searchPath: readonly string[];
  /** True if the role has the privileges of another one; null if there is no role of this name. */
  hasPrivilegesOf(role: string): boolean | null;
  /** The filter of the rows of a table that a subquery may read; null for all rows. @throws Untranslatable */
  readableRows(range: Range): string | null;
  /** Writes a condition inside a subquery; see `condition`. */
  filterOf(node: Node, scope: Scope, range: Range, context: Translation, positive: boolean): string;
}
