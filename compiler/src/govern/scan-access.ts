import type { RelationAccess } from '../access/access.js';
import { InternalError } from '../errors/errors.js';
import type { EntityScan, Expr, GovernedScan, SourceId } from '../plan/plan.js';

/** What one scan of a statement may show. */
export interface ScanAccess {
  readonly access: RelationAccess;
  /** Set where some of these grants give no row output, so that its rows count in large enough groups only. */
  readonly minimum: Minimum | null;
}

export interface Minimum {
  readonly size: number;
  /** The column by which entities are told apart; null: the primary key. */
  readonly unit: string | null;
  /** By column: how many values of it a group must have. */
  readonly distinct: ReadonlyMap<string, number>;
  /** Percent of a figure that one row may contribute at most; null: any. */
  readonly dominance: number | null;
  /**
   * Filters of the grants that show rows: one list for each column, all of which must hold in part for the row to
   * count whatever its group. Null where no row does.
   */
  readonly plain: readonly (readonly Expr[])[] | null;
}

/** The access of every scan of a statement: grants without row output apply where their conditions are met. */
export class ScanAccesses {
  readonly #scans: ReadonlyMap<SourceId, ScanAccess>;

  constructor(scans: ReadonlyMap<SourceId, ScanAccess>) {
    this.#scans = scans;
  }

  of(scan: EntityScan | GovernedScan): ScanAccess {
    const found = this.#scans.get(scan.id);
    if (found === undefined)
      throw new InternalError(`no access was worked out for a scan of ${scan.relation.name}`);
    return found;
  }
}
