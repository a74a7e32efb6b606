import { type ExecuteResult, type MemoryShare, type RowSink, stopError } from '../../engine/index.js';
import type { AnswerCacheKey } from './keeping.js';
import type { KeptAnswer, KeptAnswers } from './kept-answers.js';
import type { DataEpochs } from './parts.js';
import type { AnswerFreshness } from './question.js';
import { unlessStopped } from './runtime/step.js';
import type { ModelUsage } from './spending.js';

/** How one question is answered from what is kept, or kept. */
export interface Again {
  readonly answers: KeptAnswers;
  readonly epochs: DataEpochs;
  readonly keeping: AnswerCacheKey;
  /** Whether an answer that is kept will do; else it is asked anew, and kept. */
  readonly mayReuse: boolean;
  readonly spending: ModelUsage;
  /** Of the question: what is to be kept counts there until it is. */
  readonly memory: MemoryShare;
  readonly signal: AbortSignal | null;
  /** Throws where the plan may not run now: what it reads has gone from the database. */
  requireInService(): void;
  live(sink: RowSink): Promise<ExecuteResult>;
}

/**
 * The answer that is kept, where it is of the state that the data has now and not too old; else that of the database,
 * which is kept where it is whole. Throws as `live` does.
 */
export async function answerAgain(
  again: Again,
  sink: RowSink,
): Promise<ExecuteResult & { readonly freshness: AnswerFreshness | null }> {
  const { answers, epochs, keeping, signal, spending } = again;
  const asOf = Date.now();
  const readAt = performance.now();
  const epoch = await unlessStopped(epochs.of(keeping.rules), signal);
  // What says how old the data is cannot be heard: nothing is given again, and nothing kept.
  if (epoch === null) return { ...(await again.live(sink)), freshness: { from: 'live', asOf } };
  const kept = again.mayReuse ? answers.find(keeping.key, epoch, keeping.maxAgeMs) : null;
  if (kept !== null) {
    again.requireInService();
    spending.keptAnswer(epoch, performance.now() - kept.readAt);
    await give(kept, sink, signal);
    return { rows: kept.rows, truncated: false, freshness: { from: 'cache', asOf: kept.asOf } };
  }
  const copy = new CopyingSink(sink, answers.largest, again.memory);
  const result = await again.live(copy);
  const { pieces, bytes } = copy;
  if (pieces !== null && !result.truncated)
    answers.keep(keeping.key, { pieces, bytes, rows: result.rows, epoch, asOf, readAt });
  return { ...result, freshness: { from: 'live', asOf } };
}

/** @throws QueryError where `signal` stops it */
async function give({ pieces }: KeptAnswer, sink: RowSink, signal: AbortSignal | null): Promise<void> {
  for (const { bytes, rows } of pieces) {
    if (signal?.aborted === true) throw stopError(signal);
    const writing = sink.write(bytes, rows);
    if (writing !== undefined) await unlessStopped(writing, signal);
  }
}

/** Passes rows on, and has a copy of them while they are few. */
class CopyingSink implements RowSink {
  pieces: { readonly bytes: Uint8Array; readonly rows: number }[] | null = [];
  bytes = 0;
  readonly #to: RowSink;
  readonly #most: number;
  readonly #memory: MemoryShare;

  constructor(to: RowSink, most: number, memory: MemoryShare) {
    this.#to = to;
    this.#most = most;
    this.#memory = memory;
  }

  write(dataRows: Uint8Array, rows: number): void | Promise<void> {
    this.bytes += dataRows.length;
    if (this.pieces !== null && (this.bytes > this.#most || !this.#memory.hold(dataRows.length)))
      this.pieces = null;
    // The bytes are a view into a larger piece of memory, which must not stay for the sake of them.
    else this.pieces?.push({ bytes: Uint8Array.from(dataRows), rows });
    return this.#to.write(dataRows, rows);
  }
}
