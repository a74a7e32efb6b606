import type { Relation as Entity } from 'osl-compiler';
import type { Encoder, Formula, View } from '../../../policy/proof/index.js';
import type { Solver } from '../../policy-proof/solver.js';
import type { Role } from '../catalog/catalog.js';
import type { CallerValueNames } from './caller-values.js';
import type { RowSecurity } from './row-security.js';
import type { Ties } from './ties.js';

/** The rows of one table that one role sees in the database and through the gateway, to be compared. */
export interface Question {
  readonly role: Role;
  readonly policyRole: string;
  readonly entity: Entity;
  readonly encoder: Encoder;
  /** The row is visible in the database. */
  readonly row: Formula;
  readonly view: View;
  /** Physical names of the columns that the role may read in the database. */
  readonly readable: ReadonlySet<string>;
}

/** A difference that may be possible: of rows, or of one column. */
export interface Difference {
  readonly formula: Formula;
  /** `more`: the gateway shows what the database hides. */
  readonly direction: 'more' | 'less';
  /** Name of the entity's column; null for the row. */
  readonly column: string | null;
}

/** Inputs for an example of a difference. */
export interface ExampleContext {
  readonly ties: Ties;
  readonly names: CallerValueNames;
  readonly rowSecurity: RowSecurity;
  readonly solver: Solver;
}
