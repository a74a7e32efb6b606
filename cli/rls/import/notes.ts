import type { Relation } from '../catalog/catalog.js';

/** One policy, table or view, and what became of it for a role. */
export interface ImportNote {
  readonly kind:
    | 'imported'
    | 'refused'
    | 'no row security'
    | 'exempt'
    | 'nothing visible'
    /** A view that became an entity over its table. */
    | 'view'
    /** Columns that are masked or left out. */
    | 'changed';
  /** Such as `members on app.document`. */
  readonly object: string;
  readonly role: string;
  /** Reason of a refusal, and its consequence; null if there is nothing to say. */
  readonly detail: string | null;
}

/** Why a table has no entity. */
export function whyNoEntity({ kind, parents }: Relation): string {
  if (kind === 'table' && parents.length > 0)
    return 'a partition or a child: its rows are read through its parent, under the policies of that';
  if (kind === 'foreign table')
    return 'a foreign table: whose rows another server shows depends on the login of each role there';
  return 'it did not become an entity';
}

/** Why a role sees all rows of a table or view. */
export function whyAllRows({ kind }: Relation): string {
  switch (kind) {
    case 'view':
      return 'everybody who may read the view sees the same rows, as in the database';
    case 'materialized view':
      return 'everybody who may read it sees the same rows, as of its last refresh';
    case 'table':
    case 'partitioned table':
    case 'foreign table':
    case 'sequence':
      return 'the role sees all rows, as in the database';
  }
}
