import type { Lanes } from './lanes.js';
import type { Pool } from './pool.js';
import type { StandbyReads, StandbySource } from './standby-reads.js';

/** A server with sessions for queries. */
export interface QueryServer {
  readonly pool: Pool;
  /** Sessions shared by short statements; null if the server has none. */
  readonly lanes: Lanes | null;
  /** Name of the standby; null for the primary. */
  readonly standby: string | null;
}

/**
 * The server that a statement runs on. The answer includes all commits before `asOf`, in ms on the clock of
 * `performance.now()`; null on the primary, which has every commit.
 */
export interface ChosenServer {
  readonly server: QueryServer;
  readonly asOf: number | null;
}

/** Returns the standby and its `asOf` in ms since the epoch; null for the primary. */
export function standbySource({ server, asOf }: ChosenServer): StandbySource | null {
  if (server.standby === null || asOf === null) return null;
  return { name: server.standby, asOf: Date.now() - (performance.now() - asOf) };
}

/** A standby that may answer. */
export interface UsableStandby extends ChosenServer {
  readonly asOf: number;
}

/** The standbys of a database. */
export interface Standbys {
  readonly servers: readonly QueryServer[];
  /** Returns the least busy standby recent enough for `reads`, and records it in `reads`; null if none may answer. */
  choose(reads: StandbyReads): UsableStandby | null;
  /** Returns a standby chosen earlier, with its current `asOf`; null if it may no longer answer. */
  recheck(server: QueryServer, reads: StandbyReads): UsableStandby | null;
  /** Polls a standby, and resolves to true if it cannot be reached or is no longer a standby. */
  isDown(server: QueryServer): Promise<boolean>;
}

/** The primary of a database and its standbys. */
export class QueryServers {
  readonly primary: QueryServer;
  readonly #ofPrimary: ChosenServer;
  readonly #standbys: Standbys | null;

  constructor(primary: QueryServer, standbys: Standbys | null) {
    this.primary = primary;
    this.#ofPrimary = Object.freeze({ server: primary, asOf: null });
    this.#standbys = standbys;
  }

  all(): readonly QueryServer[] {
    return [this.primary, ...(this.#standbys?.servers ?? [])];
  }

  get hasStandbys(): boolean {
    return this.#standbys !== null;
  }

  /** Returns a standby that may answer, or else the primary. @param reads null if only the primary may answer */
  choose(reads: StandbyReads | null): ChosenServer {
    return (reads === null ? null : this.#standbys?.choose(reads)) ?? this.ofPrimary();
  }

  /**
   * Checks the chosen server again after a wait for a session; returns the primary if a chosen standby fell behind.
   */
  recheck(chosen: ChosenServer, reads: StandbyReads | null): ChosenServer {
    if (chosen.asOf === null || reads === null || this.#standbys === null) return chosen;
    return this.#standbys.recheck(chosen.server, reads) ?? this.ofPrimary();
  }

  /** Polls a standby. Resolves to true if it cannot be reached or is no longer a standby; to false for the primary. */
  async isDown(server: QueryServer): Promise<boolean> {
    return (await this.#standbys?.isDown(server)) ?? false;
  }

  ofPrimary(): ChosenServer {
    return this.#ofPrimary;
  }
}
