import type { UpstreamError } from './upstream-report.js';

/** A server, compared by object identity. */
interface ReadServer {
  /** Name of the standby; null for the primary. */
  readonly standby: string | null;
}

/** The standby that answered a statement. */
export interface StandbySource {
  /** Name of the standby, for operators; callers do not see it. */
  readonly name: string;
  /** The answer includes everything that was committed before this time, in ms since the epoch. */
  readonly asOf: number;
}

/**
 * Permission for standbys to answer. All statements of a session or of a request pass the same object, so that none
 * reads older data than an earlier one. Times are in ms on the clock of `performance.now()`.
 */
export interface StandbyReads {
  /** Everything that was committed before this time must be in an answer of `server`; Infinity if it may not answer. */
  notBeforeOn(server: ReadServer): number;
  /** Records that a statement will run on `server`, which has everything that was committed before `asOf`. */
  onChosen(server: ReadServer, asOf: number): void;
  /** Records that a statement has ended: it may have seen everything that `server` had replayed until now. */
  onEnded(server: ReadServer): void;
}

/**
 * Permission for standbys to answer in a session. A standby's answer is never older than an earlier one of another
 * standby, but may be older than an earlier answer of the primary, which was used because no standby was recent enough.
 */
export class SessionReads implements StandbyReads {
  #notBefore = Number.NEGATIVE_INFINITY;
  /** The standby that answered the last statement, and the time at which that statement ended. */
  #last: ReadServer | null = null;
  #endedAt = Number.NEGATIVE_INFINITY;

  notBeforeOn(server: ReadServer): number {
    // `asOf` is a lower bound: a statement may have seen everything that was committed until it ended.
    const isSame = this.#last === null || this.#last === server;
    return isSame ? this.#notBefore : Math.max(this.#notBefore, this.#endedAt);
  }

  onChosen(_: ReadServer, asOf: number): void {
    this.requireCommitted(asOf);
  }

  onEnded(server: ReadServer): void {
    if (server.standby === null) return;
    this.#last = server;
    this.#endedAt = performance.now();
  }

  /** Requires everything that was committed before `time`; has no effect if a later time is already required. */
  requireCommitted(time: number): void {
    this.#notBefore = Math.max(this.#notBefore, time);
  }
}

/**
 * Permission for standbys to answer a request with several statements. All run on the same standby; once one has run on
 * the primary, the later ones do too.
 */
export class StepReads implements StandbyReads {
  readonly #reads: StandbyReads;
  #notBefore = Number.NEGATIVE_INFINITY;
  #server: ReadServer | null = null;

  /** @param reads permission of the session, which applies as well */
  constructor(reads: StandbyReads) {
    this.#reads = reads;
  }

  notBeforeOn(server: ReadServer): number {
    if (this.#server !== null && this.#server !== server) return Number.POSITIVE_INFINITY;
    return Math.max(this.#notBefore, this.#reads.notBeforeOn(server));
  }

  onChosen(server: ReadServer, asOf: number): void {
    this.#server = server;
    this.#reads.onChosen(server, asOf);
  }

  onEnded(server: ReadServer): void {
    this.#server = server;
    this.#reads.onEnded(server);
  }

  /** Requires everything that was committed before `time`. */
  requireCommitted(time: number): void {
    this.#notBefore = Math.max(this.#notBefore, time);
  }
}

/** serialization_failure: on a standby, the statement conflicted with replay of the primary's log. */
const RECOVERY_CONFLICT = '40001';
/**
 * SQLSTATEs of a standby that the primary would not report: the statement conflicted with replay, deadlocked with it
 * (deadlock_detected), or reads something that a standby lacks, such as an unlogged table (feature_not_supported).
 */
const STANDBY_ONLY: ReadonlySet<string> = new Set([RECOVERY_CONFLICT, '40P01', '0A000']);
/** admin_shutdown: the server is shut down, or somebody has ended the session. */
const ADMIN_SHUTDOWN = '57P01';

/** True for an error of a standby after which the primary may answer. */
export function isStandbyOnly({ sqlstate }: UpstreamError): boolean {
  return STANDBY_ONLY.has(sqlstate);
}

export function isReplayConflict({ sqlstate }: UpstreamError): boolean {
  return sqlstate === RECOVERY_CONFLICT;
}

export function isShutdown(error: UpstreamError | null): boolean {
  return error?.sqlstate === ADMIN_SHUTDOWN;
}
