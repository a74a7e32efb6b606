import { readFile } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { segmentName } from '../format.js';
import { judgeSegment, type VerifiedSegment } from './judge.js';
import type { JudgeAnswer } from './judge-thread.js';

const MOST_THREADS = 8;
/** Of fewer segments none is worth a thread. */
const FEWEST = 6;

/** Threads that judge segments before their turn comes: each alone, since none knows what stands before it. */
export class SegmentVerifiers {
  readonly #dir: string;
  readonly #threads: readonly Worker[];
  readonly #waiting = new Map<number, (judged: VerifiedSegment | null) => void>();
  readonly #asked = new Map<number, Promise<VerifiedSegment | null>>();
  readonly #queue: number[];
  readonly #cuts: readonly number[];
  #turn = 0;

  /** @param segments complete ones, in the order in which they will be asked for */
  constructor(dir: string, segments: readonly number[], cuts: readonly number[]) {
    this.#dir = dir;
    this.#queue = [...segments];
    this.#cuts = cuts;
    const count =
      segments.length < FEWEST ? 0 : Math.min(MOST_THREADS, availableParallelism(), segments.length);
    const data = { cuts: Float64Array.from(cuts) };
    const file = new URL('./judge-thread.js', import.meta.url);
    this.#threads = Array.from({ length: count }, () =>
      this.#started(new Worker(file, { workerData: data })),
    );
    // Each has one to read and one to go on with: so much is held, however long the log is.
    for (let i = 0; i < 2 * count; i += 1) this.#askNext();
  }

  /** Result of a verifying thread for a segment; null if it could not be verified alone. */
  async judged(segment: number): Promise<VerifiedSegment | null> {
    const asked = this.#asked.get(segment);
    if (asked === undefined) return this.#threads.length === 0 ? this.#here(segment) : null;
    const judged = await asked;
    this.#asked.delete(segment);
    this.#askNext();
    return judged;
  }

  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.terminate()));
  }

  async #here(segment: number): Promise<VerifiedSegment | null> {
    if (!this.#queue.includes(segment)) return null;
    const bytes = await readFile(join(this.#dir, segmentName(segment))).catch(() => null);
    return bytes === null ? null : judgeSegment(bytes, this.#cuts);
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
    thread.on('message', ({ segment, judged }: JudgeAnswer) => {
      this.#waiting.get(segment)?.(judged);
      this.#waiting.delete(segment);
    });
    // What a thread did not get to is read by who asks.
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
