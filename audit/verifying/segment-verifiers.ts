import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { segmentName } from '../format.js';
import type { VerifyResponse } from './segment-verifier-thread.js';
import { type VerifiedSegment, verifySegment } from './verify-segment.js';

const MOST_THREADS = 8;
/** Minimum number of segments for which it is worth starting threads. */
const FEWEST = 6;

/** Worker threads that verify segments ahead of the sequential pass, each independently of the previous ones. */
export class SegmentVerifiers {
  readonly #dir: string;
  readonly #threads: readonly Worker[];
  readonly #waiting = new Map<number, (verified: VerifiedSegment | null) => void>();
  readonly #asked = new Map<number, Promise<VerifiedSegment | null>>();
  readonly #queue: number[];
  readonly #cuts: readonly number[];
  #turn = 0;

  /** @param segments complete segments, in the order in which `verified` will be called */
  constructor(dir: string, segments: readonly number[], cuts: readonly number[]) {
    this.#dir = dir;
    this.#queue = [...segments];
    this.#cuts = cuts;
    const count =
      segments.length < FEWEST ? 0 : Math.min(MOST_THREADS, availableParallelism(), segments.length);
    const data = { cuts: Float64Array.from(cuts) };
    const file = new URL('./segment-verifier-thread.js', import.meta.url);
    this.#threads = Array.from({ length: count }, () =>
      this.#started(new Worker(file, { workerData: data })),
    );
    // Queue two segments per thread, which also bounds memory use.
    for (let i = 0; i < 2 * count; i += 1) this.#askNext();
  }

  /** Returns the result for the segment; null if it could not be verified independently. */
  async verified(segment: number): Promise<VerifiedSegment | null> {
    const asked = this.#asked.get(segment);
    if (asked === undefined) return this.#threads.length === 0 ? this.#here(segment) : null;
    const verified = await asked;
    this.#asked.delete(segment);
    this.#askNext();
    return verified;
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }

  async #here(segment: number): Promise<VerifiedSegment | null> {
    if (!this.#queue.includes(segment)) return null;
    const bytes = await readFile(join(this.#dir, segmentName(segment))).catch(() => null);
    return bytes === null ? null : verifySegment(bytes, this.#cuts);
  }

  #askNext(): void {
    const segment = this.#queue.shift();
    const thread = this.#threads[this.#turn % Math.max(1, this.#threads.length)];
    if (segment === undefined || thread === undefined) return;
    this.#turn += 1;
    this.#asked.set(segment, new Promise((resolve) => this.#waiting.set(segment, resolve)));
    thread.postMessage({ segment, file: join(this.#dir, segmentName(segment)) });
  }

  #started(thread: Worker): Worker {
    thread.on('message', ({ segment, verified }: VerifyResponse) => {
      this.#waiting.get(segment)?.(verified);
      this.#waiting.delete(segment);
    });
    // If a thread fails, the sequential pass reads its segments itself.
    const gone = (): void => {
      for (const resolve of this.#waiting.values()) resolve(null);
      this.#waiting.clear();
      this.#queue.length = 0;
    };
    thread.on('error', gone);
    thread.once('exit', gone);
    return thread;
  }
}
