import type { Joins } from '../catalog/catalog.js';
import type { MetricFormat } from '../catalog/metric-format.js';
import type { Position } from '../errors/errors.js';
import type { Expr, Form, Query, Slot, SourceId } from '../plan/plan.js';
import type { RuntimeRelation } from '../plan/runtime.js';
import type { TypeName } from '../types/types.js';
import type { LiteralSlots } from './literals.js';

/** A bound query: what the caller asked, resolved, not yet governed. */
export interface BoundPlan {
  readonly form: Form;
  readonly query: Query;
  /** The join rule that it was bound under; null where there is none. */
  readonly joins: Joins | null;
  readonly runtime: readonly RuntimeRelation[];
  readonly slots: readonly Slot[];
  /** Type OIDs of `$1 … $n`: those that the client declared, and for the others what their use says. */
  readonly clientOids: readonly number[];
  /** Names of the metrics that it computes. */
  readonly metrics: readonly string[];
  /** What its reader calls the columns. */
  readonly columns: readonly {
    readonly name: string;
    readonly type: TypeName;
    /** Of a metric that says so. */
    readonly format?: MetricFormat;
  }[];
  /** Where a bound expression stands in the caller's text. */
  readonly positionOf: (expr: Expr) => Position | null;
  readonly positionOfSource: (source: SourceId) => Position | null;
  /** Where the literals among `slots` come from. */
  readonly literals: LiteralSlots;
}
