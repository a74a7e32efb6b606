import type { Catalog } from '../../catalog/catalog.js';
import type { Expr, InQuery, Query, RuntimeScan } from '../../plan/plan.js';
import type {
  Hydration,
  OperatedRows,
  OperatorUse,
  Retrieval,
  RowOperator,
  Traversal,
} from '../../plan/runtime.js';
import type { TypeName } from '../../types/types.js';

/** A runtime relation while it is being bound. Which of its columns are used is known only at the end. */
export type RuntimeDraft = RetrievalDraft | TraversalDraft | HydrationDraft | OperatedDraft;

interface DraftBase {
  readonly offered: ReadonlyMap<string, TypeName>;
}

export interface RetrievalDraft
  extends DraftBase,
    Omit<Retrieval, 'filters' | 'keyFilters' | 'filteredAfter' | 'operators' | 'columns'> {
  readonly filters: Expr[];
  readonly keyFilters: InQuery[];
  filteredAfter: string | null;
  readonly operators: OperatorUse[];
}

export interface TraversalDraft extends DraftBase, Omit<Traversal, 'perHop' | 'clipping' | 'columns'> {
  readonly perHop: number | null;
}

export interface HydrationDraft extends DraftBase, Omit<Hydration, 'keys' | 'clipping' | 'columns'> {
  keys: Expr | null;
}

export interface OperatedDraft extends Omit<OperatedRows, 'rows' | 'operators' | 'key' | 'columns'> {
  readonly offered: Map<string, TypeName>;
  rows: Query | null;
  operators: readonly RowOperator[];
  key: string | null;
}

const NONE = Object.freeze([]);

const DEFAULT_MAX_OPERATED = 10_000;

export function mostOperated(catalog: Catalog): number {
  return catalog.maxOperatedRows ?? DEFAULT_MAX_OPERATED;
}

const DEFAULT_MAX_PER_HOP = 100_000;

/** Returns the maximum `per_hop` that a caller may request. */
export function mostPerHop(catalog: Catalog): number {
  return catalog.maxPerHop ?? DEFAULT_MAX_PER_HOP;
}

/** Creates the scan of a draft, without columns: `withUsedColumns` adds them at the end. */
export function draftScan(draft: Exclude<RuntimeDraft, OperatedDraft>, slot: number): RuntimeScan {
  const sealed = draft.kind === 'retrieval' ? draft.facet.scalarIndexed : NONE;
  return Object.freeze({ kind: 'runtime', id: draft.source, slot, columns: NONE, sealed });
}

/** Creates the scan of the rows that operators map over. @param sealed names of the sealed key columns */
export function operatedScan(draft: OperatedDraft, slot: number, sealed: readonly string[]): RuntimeScan {
  return Object.freeze({ kind: 'runtime', id: draft.source, slot, columns: NONE, sealed, own: true });
}
