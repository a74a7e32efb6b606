import { queryError } from 'osl-compiler';
import type { ConnectionStatus } from './connection-status.js';
import { FairShare, type FairShareParty } from './fair-share.js';
import { connectionLost } from './upstream-error.js';
import type { UpstreamSession } from './upstream-session.js';

/** Metrics of a pool of database sessions. */
export interface EnginePool {
  /** `questions`: for one query at a time; `short`: shared by short queries; `system`: for the gateway itself. */
  readonly purpose: 'questions' | 'short' | 'system';
  /** Name of the standby to which its sessions are connected; null for the primary. */
  readonly standby: string | null;
  /** Maximum number of sessions. */
  readonly size: number;
  readonly open: number;
  /** Number of running statements. */
  readonly running: number;
  /** Number of requests waiting for a session. */
  readonly waiting: number;
  /** `full`: the database has no connections left; `lost`: it is unreachable or refuses the login. */
  readonly reach: 'open' | 'full' | 'lost';
}

export interface PoolOptions {
  readonly size: number;
  /** Fraction of the pool that a party with half of it must leave free, 0 to 1; see `FairShare`. */
  readonly reserve: number;
  /** Maximum wait for a session in ms. */
  readonly waitMs: number;
  /** Maximum number of waiting requests, of which a party may have half; further requests are refused immediately. */
  readonly maxWaiting: number;
  readonly reach: ConnectionStatus;
  readonly connect: () => Promise<UpstreamSession>;
}

interface PoolWaiter {
  readonly resolve: (session: UpstreamSession) => void;
  readonly reject: (error: Error) => void;
  readonly timer: NodeJS.Timeout;
}

/**
 * A pool of sessions, each used by one holder at a time, and the queue for them.
 *
 * A dead session is replaced on the next request. A pool that cannot grow continues with the sessions it has and
 * retries; requests keep waiting until their deadline and do not see failed attempts.
 */
export class Pool {
  readonly #options: PoolOptions;
  readonly #share: FairShare<PoolWaiter>;
  readonly #idle: UpstreamSession[] = [];
  readonly #all = new Set<UpstreamSession>();
  readonly #lent = new Map<UpstreamSession, FairShareParty>();
  #connecting = 0;
  #retry: NodeJS.Timeout | null = null;
  #closed = false;

  constructor(options: PoolOptions) {
    this.#options = options;
    this.#share = new FairShare(options.reserve);
  }

  /** Returns an idle session for `party`; null if the party must wait for one. */
  take(party: FairShareParty): UpstreamSession | null {
    if (this.#closed || this.#idle.length === 0 || this.#share.waitingOf(party) > 0) return null;
    return this.#share.admits(party, this.#free, this.#places) ? this.#lend(party) : null;
  }

  /** Waits for a session for `party`. Rejects with QueryError `overloaded`, `databaseDown` or `shuttingDown`. */
  acquire(party: FairShareParty): Promise<UpstreamSession> {
    if (this.#closed) return Promise.reject(queryError('shuttingDown', {}));
    const idle = this.take(party);
    if (idle !== null) return Promise.resolve(idle);
    const { maxWaiting, waitMs } = this.#options;
    if (this.#share.waiting >= maxWaiting || 2 * this.#share.waitingOf(party) >= maxWaiting)
      return Promise.reject(overloaded());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#share.leave(party, waiter);
        reject(
          this.#all.size === 0 && this.#options.reach.state === 'lost' ? connectionLost() : overloaded(),
        );
      }, waitMs);
      const waiter: PoolWaiter = { resolve, reject, timer };
      this.#share.wait(party, waiter);
      this.#serve();
    });
  }

  /** Takes a session back. A closed or tainted one is not reused; one being cancelled, only after that. */
  release(session: UpstreamSession): void {
    if (session.closed) return; // its loss has been handled
    if (session.tainted || this.#closed) {
      session.destroy();
      return;
    }
    const quiet = session.whenFree();
    if (quiet === null) {
      this.#takeBack(session);
      this.#idle.push(session);
      this.#serve();
      return;
    }
    quiet.then(
      () => this.release(session),
      () => session.destroy(),
    );
  }

  /** Number of sessions in use plus the number of waiting requests. */
  get load(): number {
    return this.#lent.size + this.#share.waiting;
  }

  get reach(): EnginePool['reach'] {
    return this.#options.reach.state;
  }

  /** True if a session is idle, or the server accepted the last connection. */
  get isReady(): boolean {
    return this.#idle.length > 0 || this.reach === 'open';
  }

  /**
   * Connects if the last attempt failed, even if no request waits. Without this, an unused pool would not notice that
   * its server is reachable again. Does nothing during the pause after a failure.
   */
  retry(): void {
    const { reach, connect, size } = this.#options;
    if (this.#closed || this.#connecting > 0 || reach.state === 'open' || reach.pauseMs > 0) return;
    this.#connecting += 1;
    reach.attempt(connect).then(
      (session) => {
        if (this.#all.size >= size) session.destroy();
        this.#add(session);
      },
      () => {
        this.#connecting -= 1;
        this.#serve();
      },
    );
  }

  /** Returns the metrics of the pool. @param standby name of the standby; null for the primary */
  metrics(purpose: EnginePool['purpose'], standby: string | null = null): EnginePool {
    const { size, reach } = this.#options;
    const { waiting } = this.#share;
    return {
      purpose,
      standby,
      size,
      open: this.#all.size,
      running: this.#lent.size,
      waiting,
      reach: reach.state,
    };
  }

  /** Rejects waiting requests and closes every session. */
  close(): void {
    this.#closed = true;
    if (this.#retry !== null) clearTimeout(this.#retry);
    for (const waiter of this.#share.dismiss()) {
      clearTimeout(waiter.timer);
      waiter.reject(queryError('shuttingDown', {}));
    }
    for (const session of this.#all) session.destroy();
  }

  /** Number of sessions to share: the pool's size while the upstream accepts connections, otherwise the number open. */
  get #places(): number {
    return this.#options.reach.state === 'open' ? this.#options.size : this.#all.size;
  }

  get #free(): number {
    return this.#places - this.#lent.size;
  }

  #lend(party: FairShareParty): UpstreamSession | null {
    const session = this.#idle.pop();
    if (session === undefined) return null;
    this.#lent.set(session, party);
    this.#share.take(party);
    return session;
  }

  #takeBack(session: UpstreamSession): void {
    const party = this.#lent.get(session);
    if (party === undefined) return;
    this.#lent.delete(session);
    this.#share.giveBack(party);
  }

  /** Hands idle sessions to waiting requests; grows the pool when none is left. */
  #serve(): void {
    while (this.#idle.length > 0) {
      const next = this.#share.first(this.#free, this.#places);
      if (next === null) return;
      const session = this.#lend(next.party);
      if (session === null) return;
      this.#share.leave(next.party, next.item);
      clearTimeout(next.item.timer);
      next.item.resolve(session);
    }
    this.#grow();
  }

  #grow(): void {
    const { reach, size } = this.#options;
    while (!this.#closed && this.#share.waiting > this.#connecting) {
      if (this.#all.size + this.#connecting >= size) return;
      if (reach.state !== 'open') {
        if (this.#connecting > 0) return; // one attempt at a time
        if (reach.pauseMs > 0) {
          this.#growLater(reach.pauseMs);
          return;
        }
      }
      this.#connecting += 1;
      reach.attempt(this.#options.connect).then(
        (session) => this.#add(session),
        () => {
          this.#connecting -= 1;
          this.#grow();
        },
      );
    }
  }

  #growLater(ms: number): void {
    this.#retry ??= setTimeout(() => {
      this.#retry = null;
      this.#grow();
    }, ms);
  }

  #add(session: UpstreamSession): void {
    this.#connecting -= 1;
    if (session.closed || this.#closed) {
      session.destroy();
    } else {
      this.#all.add(session);
      session.onClosed = () => this.#remove(session);
      this.#idle.push(session);
    }
    this.#serve();
  }

  #remove(session: UpstreamSession): void {
    this.#all.delete(session);
    this.#takeBack(session);
    const at = this.#idle.indexOf(session);
    if (at >= 0) this.#idle.splice(at, 1);
    this.#serve();
  }
}

function overloaded(): Error {
  return queryError('overloaded', { retryAfterSeconds: 1 });
}
