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
  /** True if a cap truncated an intermediate result: all rows are correct, but rows or `evidence` may be missing. */
  readonly clipped: boolean;
  readonly redactedFields: readonly string[];
  readonly indexes: readonly IndexRead[];
  /** Passages for which a decoder operator failed, so that its value is NULL. */
  readonly errors: readonly { readonly chunkId: string; readonly reason: string }[];
  /** Lets later queries of the same shape skip planning; null on the fast path. */
  readonly permits: Permits | null;
  /** Source and time of the answer; null if the primary answered and the answer could not be cached. */
  readonly freshness: AnswerFreshness | null;
  /** The receipt that was requested; null if none. */
  readonly receipt: ReceiptRequest | null;
}

/** Models and standbys that a query used, for its outcome record. */
export interface QueryUses {
  readonly usage: ModelUsage;
  readonly standby: StandbyUse;
}

export interface AnswerFreshness {
  /** Source of the answer; `live` means the entities themselves, read from the primary for this query. */
  readonly from: 'live' | 'standby' | 'cache' | 'rollup';
  /** The answer is at least as recent as this time, in ms since the epoch. */
  readonly asOf: number;
}

/** Returns the age of an answer in whole seconds; 0 if it is live. */
export function ageOf({ from, asOf }: AnswerFreshness): number {
  return from === 'live' ? 0 : Math.max(0, Math.floor((Date.now() - asOf) / 1_000));
}

/** Returns the time of an answer in ISO 8601, for REST and SHOW. */
export function asOfText({ asOf }: AnswerFreshness): string {
  return new Date(asOf).toISOString();
}

/** Returns the freshness of a plan's rollup; null if it has none. @param rollups build times in ms since the epoch */
export function rollupFreshness(
  rollups: { usable(manifest: Manifest): { readonly builtAt: ReadonlyMap<string, number> } },
  { manifest }: Caller,
  plan: GovernedPlan,
): AnswerFreshness | null {
  if (plan.rollup === null) return null;
  const builtAt = rollups.usable(manifest).builtAt.get(plan.rollup);
  // If the rollup became too old after planning, report the maximum age.
  const oldest = Date.now() - (manifest.rollups.get(plan.rollup)?.maxAgeMs ?? 0);
  return { from: 'rollup', asOf: builtAt ?? oldest };
}

/** Returns the freshness of an answer from a standby; null if the primary answered. */
export function standbyFreshness(source: StandbySource | null): AnswerFreshness | null {
  return source === null ? null : { from: 'standby', asOf: source.asOf };
}

/** Forwards rows and counts those that were sent. */
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

  rowsSent(): number {
    return this.#sink.rowsSent?.() ?? this.#rows;
  }
}

/** Tracks whether standbys may answer a request, and which one did. */
export class StandbyUse {
  readonly #reads: StandbyReads | null;
  /** Permission that all statements share; null while there is a single statement, for which `#reads` suffices. */
  #steps: StepReads | null;
  /** The source of the rows of each statement of the request; null for the primary. */
  readonly #sources: (StandbySource | null)[] = [];

  /**
   * @param reads null if only the primary may answer
   * @param hasSteps true if the request runs several statements
   */
  constructor(reads: StandbyReads | null, hasSteps: boolean) {
    this.#reads = reads;
    this.#steps = reads !== null && hasSteps ? new StepReads(reads) : null;
  }

  /** Requires that later statements see everything committed before `time`, on the clock of `performance.now()`. */
  requireCommitted(time: number): void {
    if (this.#reads === null) return;
    this.#steps ??= new StepReads(this.#reads);
    this.#steps.requireCommitted(time);
  }

  /** Permission for the next statement; null if only the primary may answer. */
  get reads(): StandbyReads | null {
    return this.#steps ?? this.#reads;
  }

  /** Returns engine options for the next statement, and records the source of its rows. */
  statement(): {
    readonly standby: StandbyReads | null;
    readonly onSource: (source: StandbySource | null) => void;
  } {
    const index = this.#sources.push(null) - 1;
    return {
      standby: this.reads,
      onSource: (source) => {
        this.#sources[index] = source; // replaced if the statement is sent again
      },
    };
  }

  /** The standby that answered, with the time of its oldest data; null if the primary answered everything. */
  get source(): StandbySource | null {
    let oldest: StandbySource | null = null;
    for (const source of this.#sources)
      if (source !== null && (oldest === null || source.asOf < oldest.asOf)) oldest = source;
    return oldest;
  }
}
