import { LRUCache } from 'lru-cache';
import type { AnswerMemory } from '../../engine/index.js';

/** An answer as the database gave it, which callers of the same rights who ask the same may be given again. */
export interface KeptAnswer {
  /** DataRow messages, as they came, with the number of rows in each piece. */
  readonly pieces: readonly { readonly bytes: Uint8Array; readonly rows: number }[];
  readonly rows: number;
  readonly bytes: number;
  /** The state of the data that it is of, by what was looked at before it was read. */
  readonly epoch: string;
  /** When it was read; `Date.now()`. */
  readonly asOf: number;
  /** As `asOf`, on the clock of `performance.now()`. */
  readonly readAt: number;
}

/** What kept answers may weigh. */
export interface KeptBounds {
  /** Bytes of all of them; 0 keeps none. */
  readonly bytes: number;
  readonly entries: number;
  /** Bytes of one. */
  readonly answerBytes: number;
}

/** What stands beside the rows of an answer, roughly: keys, objects, the list of pieces. */
const ENTRY_BYTES = 512;

/**
 * Answers of this process that may be given again, the longest unused of which make room. They count as memory of answers,
 * and are given up where answers under way need it.
 */
export class KeptAnswers {
  readonly #bounds: KeptBounds;
  readonly #memory: AnswerMemory;
  readonly #answers: LRUCache<string, KeptAnswer> | null;
  #hits = 0;
  #misses = 0;

  constructor(bounds: KeptBounds, memory: AnswerMemory) {
    this.#bounds = bounds;
    this.#memory = memory;
    const { bytes: maxSize, entries: max } = bounds;
    const dispose = (answer: KeptAnswer): void => memory.giveBack(null, sizeOf(answer));
    this.#answers = maxSize === 0 ? null : new LRUCache({ max, maxSize, sizeCalculation: sizeOf, dispose });
    memory.onShortage((bytes) => this.#giveUp(bytes));
  }

  /** Whether any answer is kept at all. */
  get isOn(): boolean {
    return this.#answers !== null;
  }

  /** Bytes of the largest answer that is kept. */
  get largest(): number {
    return Math.min(this.#bounds.answerBytes, this.#bounds.bytes - ENTRY_BYTES);
  }

  /** The answer under `key`, where it is of this state of the data and not older; else it is forgotten. */
  find(key: string, epoch: string, maxAgeMs: number): KeptAnswer | null {
    const found = this.#answers?.get(key);
    const isGood = found?.epoch === epoch && performance.now() - found.readAt <= maxAgeMs;
    if (isGood) this.#hits++;
    else this.#misses++;
    if (found !== undefined && !isGood) this.#answers?.delete(key);
    return isGood ? found : null;
  }

  keep(key: string, answer: KeptAnswer): void {
    if (this.#answers === null) return;
    this.#answers.set(key, Object.freeze(answer));
    if (this.#answers.peek(key) === answer) this.#memory.hold(null, sizeOf(answer));
  }

  /** Forgets all: what is served, or who may see it, is another. */
  clear(): void {
    this.#answers?.clear();
  }

  #giveUp(bytes: number): void {
    const enough = (this.#answers?.calculatedSize ?? 0) - bytes;
    while (this.#answers !== null && this.#answers.size > 0 && this.#answers.calculatedSize > enough)
      this.#answers.pop();
  }

  stats() {
    const { size: entries = 0, calculatedSize: bytes = 0 } = this.#answers ?? {};
    return { hits: this.#hits, misses: this.#misses, entries, bytes };
  }
}

function sizeOf({ bytes }: KeptAnswer): number {
  return bytes + ENTRY_BYTES;
}
