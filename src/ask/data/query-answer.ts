import type { GovernedPlan } from 'osl-compiler';
import { type RowSink, type StandbyReads, type StandbySource, StepReads } from '../../engine/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { ReceiptRequest } from '../receipts/receipt-request.js';
import type { Caller, ServedVersions } from '../request/caller.js';
import type { Permits } from '../request/respond.js';
import type { IndexRead, ModelUsage } from './model-usage.js';

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

export interface AnswerFreshness {
  /** Source of the answer; `live` means it was read from the entities, at the primary if there are standbys. */
  readonly from: 'live' | 'standby' | 'cache' | 'rollup';
  /** The answer is at least as recent as this time, in ms since the epoch. */
  readonly asOf: number;
}

/** The age of an answer in whole seconds; 0 if it is live. */
export function ageOf({ from, asOf }: AnswerFreshness): number {
  return from === 'live' ? 0 : Math.max(0, Math.floor((Date.now() - asOf) / 1_000));
}

/** The time of an answer in ISO 8601, for REST and SHOW. */
export function asOfText({ asOf }: AnswerFreshness): string {
  return new Date(asOf).toISOString();
}

/** Null if the plan reads no rollup. @param rollups has the rollups in use, with build times in ms since the epoch */
export function rollupFreshness(
  rollups: { usable(manifest: Manifest): { readonly builtAt: ReadonlyMap<string, number> } },
  { manifest }: Caller,
  plan: GovernedPlan,
): AnswerFreshness | null {
  if (plan.rollup === null) return null;
  const known = rollups.usable(manifest).builtAt.get(plan.rollup);
  // If the rollup became too old after planning, report the maximum age.
  const oldest = Date.now() - (manifest.rollups.get(plan.rollup)?.maxAgeMs ?? 0);
  return { from: 'rollup', asOf: known ?? oldest };
}

/** Null if the primary answered. */
export function standbyFreshness(source: StandbySource | null): AnswerFreshness | null {
  return source === null ? null : { from: 'standby', asOf: source.asOf };
}

/** Passes rows on, and counts those that were sent. */
export class CountedSink implements RowSink {
  readonly #sink: RowSink;
  #rows = 0;

  constructor(sink: RowSink) {
    this.#sink = sink;
  }

  write(dataRows: Uint8Array, rows: number): void | Promise<void> {
    this.#rows += rows;
    return this.#sink.write(dataRows, rows);
  }

  left(): number {
    return this.#sink.left?.() ?? this.#rows;
  }
}

/** Permission of a request for standbys to answer it, and the standby that did. */
export class StandbyUse {
  /** Null if only the primary may answer. */
  readonly reads: StandbyReads | null;
  readonly #steps: StepReads | null;
  /** The source of each statement of the request. */
  readonly #sources: (StandbySource | null)[] = [];

  /** @param hasSteps true if the request runs several statements */
  constructor(reads: StandbyReads | null, hasSteps: boolean) {
    this.#steps = reads !== null && hasSteps ? new StepReads(reads) : null;
    this.reads = this.#steps ?? reads;
  }

  /** Requires of all later statements what was committed before `time`, on the clock of `performance.now()`. */
  requireCommitted(time: number): void {
    this.#steps?.requireCommitted(time);
  }

  /** Options of the next statement for the engine. */
  statement(): {
    readonly standby: StandbyReads | null;
    readonly readFrom: (source: StandbySource | null) => void;
  } {
    const place = this.#sources.push(null) - 1;
    return {
      standby: this.reads,
      readFrom: (source) => {
        this.#sources[place] = source; // a statement that is sent again has another source
      },
    };
  }

  /** The standby, as of its first statement; null if the primary answered everything. */
  get source(): StandbySource | null {
    let oldest: StandbySource | null = null;
    for (const source of this.#sources)
      if (source !== null && (oldest === null || source.asOf < oldest.asOf)) oldest = source;
    return oldest;
  }
}
