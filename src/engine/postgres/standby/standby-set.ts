import { OtherRole, type PostgresSession } from '../../../base/postgres/index.js';
import type { EnginePool } from '../../pool.js';
import type { QueryServer, Standbys, UsableStandby } from '../../servers.js';
import type { StandbyReads } from '../../standby-reads.js';
import { poolsOf } from '../query-server.js';
import { PrimaryHistory } from './history.js';
import { type OpenServer, Standby, type StandbyFault, type StandbyView } from './standby.js';
import { WatchedServer } from './watched-server.js';

type Login = (connect: (url: string) => Promise<PostgresSession>) => Promise<PostgresSession>;

interface StandbyServer {
  /** Its name for operators. */
  readonly name: string;
  readonly open: OpenServer;
  readonly login: Login;
}

/** A standby began to answer queries, or stopped. */
export interface StandbyChange {
  readonly name: string;
  /** Null if it answers queries from now on. */
  readonly fault: StandbyFault | null;
}

export interface StandbySetOptions {
  readonly primary: Login;
  readonly standbys: readonly StandbyServer[];
  /** Maximum age of the data of an answer in ms. */
  readonly maxLagMs: number;
  readonly onChange: (change: StandbyChange) => void;
}

/** Samples for each maximum age, and their bounds in ms. */
const SAMPLES = 10;
const SHORTEST_MS = 50;
const LONGEST_MS = 500;

/**
 * The standbys of a database, each with its age. The primary is asked for its position in the log, and each standby for
 * how far it has replayed it. Without answers of the primary all standbys age, and soon none is used.
 */
export class StandbySet implements Standbys {
  readonly #standbys: readonly Standby[];
  readonly #watched: readonly WatchedServer[];
  readonly #watchedStandbys = new Map<QueryServer, WatchedServer>();
  readonly #told = new Map<string, StandbyFault | null>();
  readonly #onChange: StandbySetOptions['onChange'];
  /** Data before this time are not shown: what the gateway has published must be in them. */
  #notBefore = performance.now();

  constructor({ primary, standbys, maxLagMs, onChange }: StandbySetOptions) {
    const everyMs = Math.min(LONGEST_MS, Math.max(SHORTEST_MS, maxLagMs / SAMPLES));
    const history = new PrimaryHistory(2 * maxLagMs);
    this.#onChange = onChange;
    const made = standbys.map(({ name, open, login }) => ({
      standby: new Standby(name, open, history, maxLagMs),
      login,
    }));
    this.#standbys = made.map(({ standby }) => standby);
    this.#watched = [
      new WatchedServer({
        role: 'primary',
        login: primary,
        everyMs,
        moved: (at, { position, origin }) => history.add(at, position, origin),
        lost: () => undefined, // the primary's own sessions report it
      }),
      ...made.map(({ standby, login }) => this.#watch(standby, login, everyMs)),
    ];
  }

  async isDown(server: QueryServer): Promise<boolean> {
    await this.#watchedStandbys.get(server)?.askNow();
    return this.#standbys.find((standby) => standby.server === server)?.isDown ?? false;
  }

  choose(reads: StandbyReads): UsableStandby | null {
    // Of equally busy ones any, and not the next: a query that is not ready on the one it was given is chosen for again.
    const first = Math.floor(Math.random() * this.#standbys.length);
    let best: UsableStandby | null = null;
    for (let i = 0; i < this.#standbys.length; i++) {
      const standby = this.#standbys[(first + i) % this.#standbys.length];
      const usable = standby?.usable(this.#notBeforeOn(standby.server, reads)) ?? null;
      if (usable !== null && (best === null || usable.server.pool.load < best.server.pool.load))
        best = usable;
    }
    if (best !== null) reads.chose(best.server, best.asOf);
    return best;
  }

  recheck(server: QueryServer, reads: StandbyReads): UsableStandby | null {
    const standby = this.#standbys.find((s) => s.server === server);
    const usable = standby?.usable(this.#notBeforeOn(server, reads)) ?? null;
    if (usable !== null) reads.chose(server, usable.asOf);
    return usable;
  }

  /** Requires from now on data that contain everything committed until now. */
  requireCurrent(): void {
    this.#notBefore = performance.now();
  }

  get servers(): readonly QueryServer[] {
    return this.#standbys.map(({ server }) => server);
  }

  pools(): readonly EnginePool[] {
    return this.#standbys.flatMap(({ server }) => poolsOf(server));
  }

  views(): readonly StandbyView[] {
    return this.#standbys.map((standby) => standby.view());
  }

  close(): void {
    for (const watched of this.#watched) watched.close();
    for (const { server } of this.#standbys) {
      server.pool.close();
      server.lanes?.close();
    }
  }

  #notBeforeOn(server: QueryServer, reads: StandbyReads): number {
    return Math.max(this.#notBefore, reads.notBeforeOn(server));
  }

  #watch(standby: Standby, login: Login, everyMs: number): WatchedServer {
    const watched = new WatchedServer({
      role: 'standby',
      login,
      everyMs,
      moved: (_, position) => {
        standby.moved(position);
        this.#tell(standby);
      },
      lost: (cause) => {
        standby.lost(cause instanceof OtherRole ? 'it is no standby now' : 'it cannot be reached');
        this.#tell(standby);
      },
    });
    this.#watchedStandbys.set(standby.server, watched);
    return watched;
  }

  #tell(standby: Standby): void {
    const { name, fault } = standby.view();
    if (this.#told.get(name) === fault) return;
    this.#told.set(name, fault);
    this.#onChange({ name, fault });
  }
}
