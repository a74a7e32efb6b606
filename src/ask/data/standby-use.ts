import { type StandbyReads, type StandbySource, StepReads } from '../../engine/index.js';

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
