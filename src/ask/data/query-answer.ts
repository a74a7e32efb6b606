import type { GovernedPlan } from 'osl-compiler';
import type { ReceiptRequest } from '../receipts/receipt-request.js';
import type { Caller, ServedVersions } from '../request/caller.js';
import type { Permits } from '../request/respond.js';
import type { AnswerFreshness } from './answer-freshness.js';
import type { IndexRead, ModelUsage } from './model-usage.js';
import type { StandbyUse } from './standby-use.js';

/** Metadata of an answer. */
export interface QueryAnswer {
  readonly requestId: string;
  readonly plan: GovernedPlan;
  readonly caller: Caller;
  readonly versions: ServedVersions;
  readonly rows: number;
  /** True if the row or byte cap truncated the answer. */
  readonly truncated: boolean;
  /** True if a cap truncated the rows of a preceding step; each remaining row is still correct. */
  readonly clipped: boolean;
  readonly redactedFields: readonly string[];
  readonly indexes: readonly IndexRead[];
  /** Passages for which a decoder operator failed; its value for them is NULL. */
  readonly errors: readonly { readonly chunkId: string; readonly reason: string }[];
  /** Lets later queries of the same shape skip planning; null on the fast path. */
  readonly permits: Permits | null;
  /** Source and age of the answer; null if it was read from the entities for this query. */
  readonly freshness: AnswerFreshness | null;
  /** The receipt that was requested; null if none. */
  readonly receipt: ReceiptRequest | null;
}

/** Models and standbys that a query uses, for its outcome record. */
export interface QueryUses {
  readonly spending: ModelUsage;
  readonly standby: StandbyUse;
}
