import { queryError } from 'osl-compiler';
import type { Session } from './session.js';
import { connectionLost } from './upstream-error.js';

export interface PoolOptions {
  readonly size: number;
  /** How long a request may wait for a session. */
  readonly waitMs: number;
  /** How many requests may wait; the next is refused at once. */
  readonly maxWaiting: number;
  readonly connect: () => Promise<Session>;
}

interface Waiter {
  readonly give: (session: Session) => void;
  readonly refuse: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * Sessions, each lent to one holder at a time, and a FIFO of requests that wait for one.
 *
 * A session that dies is replaced when somebody next waits.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly #idle: Session[] = [];
  readonly #all = new Set<Session>();
  readonly #waiters = new Set<Waiter>();
  #connecting = 0;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
  }

  /** An idle session, or null. */
  take(): Session | null {
    return this.#closed || this.#waiters.size > 0 ? null : (this.#idle.pop() ?? null);
  }

  /** The next session that is free. Rejects with QueryError `overloaded`, `execution` or `shuttingDown`. */
  acquire(): Promise<Session> {
    if (this.#closed) return Promise.reject(queryError('shuttingDown', {}));
    const idle = this.take();
    if (idle !== null) return Promise.resolve(idle);
    if (this.#waiters.size >= this.#options.maxWaiting) {
      return Promise.reject(queryError('overloaded', { retryAfterSeconds: 1 }));
    }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#waiters.delete(waiter);
        reject(queryError('overloaded', { retryAfterSeconds: 1 }));
      }, this.#options.waitMs);
      const waiter: Waiter = { give: resolve, refuse: reject, timer };
      this.#waiters.add(waiter);
      this.#grow();
    });
  }

  /** Gives a session back. One that is closed, tainted or still being cancelled is not lent again. */
  release(session: Session): void {
    if (session.closed) return; // its death was noticed already
    if (session.tainted || this.#closed) {
      session.destroy();
      return;
    }
    const quiet = session.quiet();
    if (quiet === null) {
      this.#offer(session);
      return;
    }
    quiet.then(
      () => this.release(session),
      () => session.destroy(),
    );
  }

  /** Refuses who waits and ends every session. */
  close(): void {
    this.#closed = true;
    this.#refuseAll(queryError('shuttingDown', {}));
    for (const session of this.#all) session.destroy();
  }

  #offer(session: Session): void {
    for (const waiter of this.#waiters) {
      this.#waiters.delete(waiter);
      clearTimeout(waiter.timer);
      waiter.give(session);
      return;
    }
    this.#idle.push(session);
  }

  #grow(): void {
    const wanted = this.#waiters.size - this.#connecting;
    const room = this.#options.size - this.#all.size - this.#connecting;
    if (this.#closed || wanted <= 0 || room <= 0) return;
    this.#connecting += 1;
    this.#options.connect().then(
      (session) => this.#joined(session),
      () => {
        this.#connecting -= 1;
        this.#refuseAll(connectionLost());
      },
    );
  }

  #joined(session: Session): void {
    this.#connecting -= 1;
    if (session.closed || this.#closed) {
      session.destroy();
      this.#grow();
      return;
    }
    this.#all.add(session);
    session.onClosed = () => this.#left(session);
    this.#offer(session);
  }

  #left(session: Session): void {
    this.#all.delete(session);
    const at = this.#idle.indexOf(session);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#grow();
  }

  #refuseAll(error: Error): void {
    for (const waiter of this.#waiters) {
      clearTimeout(waiter.timer);
      waiter.refuse(error);
    }
    this.#waiters.clear();
  }
}
