import { QueryError } from 'osl-compiler';
import { type CatalogFault, fault } from './reply.js';

export interface WaitLimit {
  /** Deadline in ms since the epoch. */
  readonly until: number;
  readonly signal: AbortSignal | null;
}

export type Release = () => void;

/** FIFO semaphore for statements. */
export class StatementQueue {
  readonly #places: number;
  readonly #mostWaiting: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  /** `mostWaiting` limits the queue: when it is full, further statements fail with 53300. */
  constructor(places: number, mostWaiting: number) {
    this.#places = places;
    this.#mostWaiting = mostWaiting;
  }

  get unused(): boolean {
    return this.#taken === 0;
  }

  /** @throws CatalogFault 53300, 57014 */
  async enter(patience: WaitLimit): Promise<Release> {
    if (this.#taken < this.#places) {
      this.#taken += 1;
    } else {
      if (this.#waiting.size >= this.#mostWaiting)
        throw fault('53300', 'too many statements wait for this catalog');
      await this.#turn(patience);
    }
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#next();
    };
  }

  #turn({ until, signal }: WaitLimit): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (): void => {
        clearTimeout(late);
        signal?.removeEventListener('abort', abort);
        this.#waiting.delete(mine);
      };
      const mine = (): void => {
        settle();
        resolve();
      };
      const giveUp = (reason: Error): void => {
        settle();
        reject(reason);
      };
      const abort = (): void => giveUp(cancelled(signal));
      const late = setTimeout(
        () => giveUp(fault('53300', 'the catalog is busy', 'try again')),
        Math.max(0, until - Date.now()),
      );
      this.#waiting.add(mine);
      if (signal?.aborted === true) abort();
      else signal?.addEventListener('abort', abort, { once: true });
    });
  }

  /** Hands a free place directly to the first in line, so that newcomers cannot overtake it. */
  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) this.#taken -= 1;
    else first();
  }
}

export function cancelled(signal: AbortSignal | null): CatalogFault {
  const reason: unknown = signal?.reason;
  const late = reason instanceof QueryError && reason.entry === 'timedOut';
  return fault('57014', late ? reason.message : 'canceling statement due to user request');
}
