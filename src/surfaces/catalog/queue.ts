import { QueryError } from 'osl-compiler';
import { type CatalogFault, fault } from './fault.js';

/** How long one who waits may still do so, and whether it gave up. */
export interface Patience {
  /** The end of patience, as `Date.now()` tells it. */
  readonly until: number;
  readonly signal: AbortSignal | null;
}

/** Gives a turn back. */
export type Leave = () => void;

/** Turns of statements, some at a time: first come, first served. */
export class StatementQueue {
  readonly #places: number;
  readonly #mostWaiting: number;
  readonly #waiting = new Set<() => void>();
  #taken = 0;

  /** `mostWaiting`: 53300 beyond. */
  constructor(places: number, mostWaiting: number) {
    this.#places = places;
    this.#mostWaiting = mostWaiting;
  }

  /** Nobody has a turn, so that nobody waits for one. */
  get unused(): boolean {
    return this.#taken === 0;
  }

  /** @throws CatalogFault 53300, 57014 */
  async enter(patience: Patience): Promise<Leave> {
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

  #turn({ until, signal }: Patience): Promise<void> {
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

  /** A turn that ends is the next one's at once, so that nobody who comes now is before it. */
  #next(): void {
    const [first] = this.#waiting;
    if (first === undefined) this.#taken -= 1;
    else first();
  }
}

/** Why a statement stopped whose `signal` was aborted. */
export function cancelled(signal: AbortSignal | null): CatalogFault {
  const reason: unknown = signal?.reason;
  const late = reason instanceof QueryError && reason.entry === 'timedOut';
  return fault('57014', late ? reason.message : 'canceling statement due to user request');
}
