import type { Catalog, FacetStore } from '../catalog.js';
import type { Expr, RuntimeScan, SourceId } from '../plan.js';
import type { Hop, OperatorUse } from '../runtime.js';
import type { TypeName } from '../types.js';

/** A runtime relation while its statement is bound: what is used of it shows only at the end. */
export type RuntimeDraft = RetrievalDraft | TraversalDraft | HydrationDraft;

interface DraftBase {
  readonly source: SourceId;
  /** Every column that it offers, by name. */
  readonly offered: ReadonlyMap<string, TypeName>;
}

export interface RetrievalDraft extends DraftBase {
  readonly kind: 'retrieval';
  readonly facet: FacetStore;
  readonly query: Expr;
  readonly topK: Expr;
  readonly filters: Expr[];
  readonly operators: OperatorUse[];
}

export interface TraversalDraft extends DraftBase {
  readonly kind: 'traversal';
  readonly anchor: string;
  readonly target: string;
  readonly keys: Expr;
  readonly hops: readonly Hop[];
  readonly repeats: boolean;
  readonly maxHops: number;
  /** Null where the caller states none. */
  readonly perHop: number | null;
}

export interface HydrationDraft extends DraftBase {
  readonly kind: 'hydration';
  readonly entity: string;
  keys: Expr | null;
  readonly facets: readonly FacetStore[];
}

const DEFAULT_MAX_PER_HOP = 100_000;

/** The most that a caller may ask for. */
export function mostPerHop(catalog: Catalog): number {
  return catalog.maxPerHop ?? DEFAULT_MAX_PER_HOP;
}

/** The scan of a draft whose columns are not known yet; they are filled in when all is bound. */
export function draftScan(draft: RuntimeDraft, slot: number): RuntimeScan {
  return Object.freeze({ kind: 'runtime', id: draft.source, slot, columns: Object.freeze([]) });
}
