import type { QueryServer, UsableStandby } from '../../servers.js';
import type { SetupQuery } from '../connect.js';
import { type LogOrigin, type PrimaryHistory, type ServerPosition, STARTED_AT } from './position.js';

/** The reason why a standby does not answer queries. */
export type StandbyFault =
  | 'it cannot be reached'
  | 'it is not a standby now'
  | 'the primary does not tell its position'
  | 'it belongs to another system'
  | 'it follows another timeline'
  | 'its data are too old';

/** State of a standby, for operators. */
export interface StandbyView {
  readonly name: string;
  /** Reason why the standby does not answer queries; null if it answers them. */
  readonly fault: StandbyFault | null;
  /** Upper bound on the age of the standby's data in ms; null if unknown. */
  readonly ageMs: number | null;
}

/** Creates the query sessions of a standby. A new session is used only if `check` resolves. */
export type OpenQueryServer = (check: (query: SetupQuery) => Promise<void>) => QueryServer;

/** A standby and the last position in the primary's log that it has reported as replayed. */
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
  setPosition(position: ServerPosition): void {
    this.#replayed = position;
    this.#fault = this.#faultOf(position.origin);
    this.server.pool.retry();
  }

  /**
   * Rejects a session with a server other than the one whose position is known, since a host name may resolve to
   * several servers.
   *
   * @throws Error
   */
  async #requireSame(query: SetupQuery): Promise<void> {
    const [row] = await query(STARTED_AT);
    if (this.#replayed?.startedAt !== row?.['started_at'])
      throw new Error('the session is not with the standby whose position is known');
  }

  setFault(fault: StandbyFault): void {
    this.#replayed = null;
    this.#fault = fault;
  }

  /** True if the standby cannot be reached or is no longer a standby. */
  get isDown(): boolean {
    return this.#fault === 'it cannot be reached' || this.#fault === 'it is not a standby now';
  }

  /**
   * Returns the standby for a statement that starts now; null if the standby cannot be used, or if its data may be
   * older than `notBefore` or the limit.
   */
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
    if (this.#replayed === null || !this.#history.matches(this.#replayed.origin)) return null;
    return this.#history.asOf(this.#replayed.position);
  }

  /**
   * Returns the reason not to use the standby; null if it may be used. A standby that is not in use is used again only
   * when its age is within half the limit, so that it does not alternate at the limit.
   */
  #faultOf(origin: LogOrigin): StandbyFault | null {
    if (this.#history.isEmpty) return 'the primary does not tell its position';
    if (!this.#history.matches(origin))
      return this.#history.matchesSystem(origin)
        ? 'it follows another timeline'
        : 'it belongs to another system';
    const asOf = this.#asOf;
    const limit = this.#fault === null ? this.#maxLagMs : this.#maxLagMs / 2;
    return asOf === null || performance.now() - asOf > limit ? 'its data are too old' : null;
  }
}
