import type { QueryServer, UsableStandby } from '../../servers.js';
import type { SetupQuery } from '../connect.js';
import { type LogOrigin, type PrimaryHistory, type ServerPosition, STARTED_AT } from './position.js';

/** The reason why a standby does not answer queries. */
export type StandbyFault =
  | 'it cannot be reached'
  | 'it is no standby now'
  | 'the primary does not tell its position'
  | 'it belongs to another system'
  | 'it follows another timeline'
  | 'its data are too old';

/** State of a standby, for operators. */
export interface StandbyView {
  readonly name: string;
  /** Null if it answers queries. */
  readonly fault: StandbyFault | null;
  /** Upper bound on the age of its data in ms; null if unknown. */
  readonly ageMs: number | null;
}

/** Makes the sessions for queries with a standby, each of which `check` must accept first. */
export type OpenQueryServer = (check: (query: SetupQuery) => Promise<void>) => QueryServer;

/** A standby, and what is known of how far it has replayed the primary's log. */
export class Standby {
  readonly name: string;
  readonly server: QueryServer;
  readonly #history: PrimaryHistory;
  readonly #maxLagMs: number;
  #replayed: ServerPosition | null = null;
  #fault: StandbyFault | null = 'it cannot be reached';

  constructor(name: string, open: OpenQueryServer, history: PrimaryHistory, maxLagMs: number) {
    this.name = name;
    this.server = open((query) => this.#requireSame(query));
    this.#history = history;
    this.#maxLagMs = maxLagMs;
  }

  /** Records a position that the standby has reported. */
  moved(position: ServerPosition): void {
    this.#replayed = position;
    this.#fault = this.#judge(position.origin);
    this.server.pool.retry();
  }

  /**
   * Refuses a session with another server than the one whose position is known, as behind a name of several servers.
   *
   * @throws Error
   */
  async #requireSame(query: SetupQuery): Promise<void> {
    const [row] = await query(STARTED_AT);
    if (this.#replayed?.startedAt !== row?.['started_at'])
      throw new Error('the session is not with the standby whose position is known');
  }

  lost(fault: StandbyFault): void {
    this.#replayed = null;
    this.#fault = fault;
  }

  /** True if it does not answer, or is no longer a standby. */
  get isDown(): boolean {
    return this.#fault === 'it cannot be reached' || this.#fault === 'it is no standby now';
  }

  /** The standby for a statement that begins now; null if its data may be older than `notBefore` or the limit. */
  usable(notBefore: number): UsableStandby | null {
    const asOf = this.#asOf;
    if (this.#fault !== null || asOf === null || asOf < notBefore) return null;
    if (performance.now() - asOf > this.#maxLagMs || !this.server.pool.isReady) return null;
    return { server: this.server, asOf };
  }

  view(): StandbyView {
    const asOf = this.#asOf;
    return {
      name: this.name,
      fault: this.#fault,
      ageMs: asOf === null ? null : Math.ceil(performance.now() - asOf),
    };
  }

  get #asOf(): number | null {
    if (this.#replayed === null || !this.#history.isOf(this.#replayed.origin)) return null;
    return this.#history.asOf(this.#replayed.position);
  }

  /** A standby whose data became too old comes back at half the limit, so that it does not come and go at the limit. */
  #judge(origin: LogOrigin): StandbyFault | null {
    if (this.#history.isEmpty) return 'the primary does not tell its position';
    if (!this.#history.isOf(origin))
      return this.#history.isOfSystem(origin)
        ? 'it follows another timeline'
        : 'it belongs to another system';
    const asOf = this.#asOf;
    const limit = this.#fault === null ? this.#maxLagMs : this.#maxLagMs / 2;
    return asOf === null || performance.now() - asOf > limit ? 'its data are too old' : null;
  }
}
