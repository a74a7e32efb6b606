import { OtherRole, openSessionOnFirst, type PostgresSession } from '../../../base/postgres/index.js';
import type { AnswerMemory } from '../../answer-memory.js';
import { ConnectionStatus } from '../../connection-status.js';
import type { EnginePool } from '../../pool.js';
import type { QueryServer, Standbys, UsableStandby } from '../../servers.js';
import type { StandbyReads } from '../../standby-reads.js';
import { type ConnectorLogins, CurrentLogins } from '../logins.js';
import { connectGoverned, poolsOf, queryServer, type ServerSizes } from '../query-server.js';
import { PrimaryHistory, positionOf, type ServerPosition } from './position.js';
import { type OpenQueryServer, Standby, type StandbyFault, type StandbyView } from './standby.js';

/** Time in ms after which a silent server counts as gone. */
const SILENCE_MS = 2_000;
const RETRY_MS = 500;

interface WatchedServerOptions {
  readonly role: 'primary' | 'standby';
  readonly logins: CurrentLogins;
  readonly everyMs: number;
  /** Called with each position and the time just before it was requested, in ms on the clock of `performance.now()`. */
  readonly onPosition: (requestedAt: number, position: ServerPosition) => void;
  /** Called if the server does not answer or has changed its role; polling continues. */
  readonly onLost: (cause: unknown) => void;
}

/** Polls a server's position in the log, on a separate session. */
class WatchedServer {
  readonly #options: WatchedServerOptions;
  #session: PostgresSession | null = null;
  #timer: NodeJS.Timeout | null = null;
  #polling: Promise<void> | null = null;
  #closed = false;

  constructor(options: WatchedServerOptions) {
    this.#options = options;
    this.#polling = this.#poll();
  }

  /** Polls the server immediately; resolves when the server has answered or is considered lost. */
  async pollNow(): Promise<void> {
    const previous = this.#polling;
    await previous;
    if (this.#polling === previous && !this.#closed) {
      if (this.#timer !== null) clearTimeout(this.#timer);
      this.#polling = this.#poll();
    }
    await this.#polling;
  }

  close(): void {
    this.#closed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#session?.cut();
  }

  async #poll(): Promise<void> {
    const { logins, role, everyMs, onPosition, onLost } = this.#options;
    try {
      this.#session ??= await logins.connect('url', connect);
      const requestedAt = performance.now();
      const position = await positionOf(this.#session);
      if (position.isStandby !== (role === 'standby')) throw new OtherRole(role);
      if (!this.#closed) onPosition(requestedAt, position);
      this.#pollLater(everyMs);
    } catch (error) {
      this.#session?.cut();
      this.#session = null;
      if (!this.#closed) onLost(error);
      this.#pollLater(RETRY_MS);
    }
  }

  #pollLater(ms: number): void {
    if (this.#closed) this.#session?.cut();
    else
      this.#timer = setTimeout(() => {
        this.#polling = this.#poll();
      }, ms).unref();
  }
}

function connect(url: string): Promise<PostgresSession> {
  return openSessionOnFirst(url, { application_name: 'osl-gateway standbys', silenceMs: SILENCE_MS });
}

/** Notice that a standby began or stopped answering queries. */
export interface StandbyChange {
  readonly name: string;
  /** Reason why the standby no longer answers queries; null if it answers them from now on. */
  readonly fault: StandbyFault | null;
}

interface StandbyConfig {
  /** Name of the standby, for operators. */
  readonly name: string;
  /** URL of the governed role; null if `logins` provides it. */
  readonly url: string | null;
  readonly logins?: () => Promise<ConnectorLogins>;
}

export interface StandbyConfigs {
  readonly servers: readonly StandbyConfig[];
  /** Maximum age, in ms, of the data from which a standby may answer. */
  readonly maxLagMs: number;
}

/** Parts of the primary's engine that its standbys use as well. */
interface StandbyHost {
  readonly primary: CurrentLogins;
  readonly sizes: ServerSizes;
  readonly memory: AnswerMemory;
  readonly onStandby: (change: StandbyChange) => void;
}

/** Maximum wait in ms for a session with a standby; after that, the primary is used. */
const WAIT_MS = 500;
/** Number of positions polled per `maxLagMs`, and the bounds of the polling interval in ms. */
const POLLS_PER_LAG = 10;
const MIN_INTERVAL_MS = 50;
const MAX_INTERVAL_MS = 500;

/**
 * The standbys of a database, with the age of their data. Polls the primary for its position in the log, and each
 * standby for the position it has replayed. While the primary does not answer, all standbys age, and soon none is used.
 */
export class StandbySet implements Standbys {
  readonly #standbys: readonly Standby[];
  readonly #logins: ReadonlyMap<string, CurrentLogins>;
  readonly #watchers: readonly WatchedServer[];
  readonly #watcherOf = new Map<QueryServer, WatchedServer>();
  readonly #reported = new Map<string, StandbyFault | null>();
  readonly #onChange: StandbyHost['onStandby'];
  /** Standbys must have all commits before this time, which include everything that the gateway has published. */
  #notBefore = performance.now();

  /** Starts polling the primary and all standbys. A server that cannot be reached is retried. */
  constructor({ servers, maxLagMs }: StandbyConfigs, host: StandbyHost) {
    const everyMs = Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, maxLagMs / POLLS_PER_LAG));
    const history = new PrimaryHistory(2 * maxLagMs);
    this.#onChange = host.onStandby;
    const entries = servers.map(({ name, url, logins: source }) => {
      const logins = new CurrentLogins({ url, systemUrl: null, ...(source && { logins: source }) });
      return {
        name,
        logins,
        standby: new Standby(name, queryServerOpener(name, logins, host), history, maxLagMs),
      };
    });
    this.#standbys = entries.map(({ standby }) => standby);
    this.#logins = new Map(entries.map(({ name, logins }) => [name, logins]));
    this.#watchers = [
      new WatchedServer({
        role: 'primary',
        logins: host.primary,
        everyMs,
        onPosition: (at, { position, origin }) => history.add(at, position, origin),
        onLost: () => undefined, // the primary's own sessions report it
      }),
      ...entries.map(({ standby, logins }) => this.#watch(standby, logins, everyMs)),
    ];
  }

  /** Replaces the credentials for new sessions. @param urls URLs by standby name */
  renew(urls: ReadonlyMap<string, string | null>): void {
    for (const [name, logins] of this.#logins) logins.renew({ url: urls.get(name) ?? null, systemUrl: null });
  }

  async isDown(server: QueryServer): Promise<boolean> {
    await this.#watcherOf.get(server)?.pollNow();
    return this.#standbys.find((standby) => standby.server === server)?.isDown ?? false;
  }

  choose(reads: StandbyReads): UsableStandby | null {
    // Random, not round-robin: a query that is not ready on the chosen standby chooses again, and would use two turns.
    const first = Math.floor(Math.random() * this.#standbys.length);
    let best: UsableStandby | null = null;
    for (let i = 0; i < this.#standbys.length; i++) {
      const standby = this.#standbys[(first + i) % this.#standbys.length];
      const usable = standby?.usable(this.#notBeforeOn(standby.server, reads)) ?? null;
      if (usable !== null && (best === null || usable.server.pool.load < best.server.pool.load))
        best = usable;
    }
    if (best !== null) reads.onChosen(best.server, best.asOf);
    return best;
  }

  recheck(server: QueryServer, reads: StandbyReads): UsableStandby | null {
    const standby = this.#standbys.find((s) => s.server === server);
    const usable = standby?.usable(this.#notBeforeOn(server, reads)) ?? null;
    if (usable !== null) reads.onChosen(server, usable.asOf);
    return usable;
  }

  /** From now on, standbys must have everything that was committed until now. */
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
    for (const watcher of this.#watchers) watcher.close();
    for (const { server } of this.#standbys) {
      server.pool.close();
      server.lanes?.close();
    }
  }

  #notBeforeOn(server: QueryServer, reads: StandbyReads): number {
    return Math.max(this.#notBefore, reads.notBeforeOn(server));
  }

  #watch(standby: Standby, logins: CurrentLogins, everyMs: number): WatchedServer {
    const watcher = new WatchedServer({
      role: 'standby',
      logins,
      everyMs,
      onPosition: (_, position) => {
        standby.setPosition(position);
        this.#report(standby);
      },
      onLost: (cause) => {
        standby.setFault(cause instanceof OtherRole ? 'it is not a standby now' : 'it cannot be reached');
        this.#report(standby);
      },
    });
    this.#watcherOf.set(standby.server, watcher);
    return watcher;
  }

  #report(standby: Standby): void {
    const { name, fault } = standby.view();
    if (this.#reported.get(name) === fault) return;
    this.#reported.set(name, fault);
    this.#onChange({ name, fault });
  }
}

/** Returns a function that creates the query sessions of a standby. */
function queryServerOpener(
  name: string,
  logins: CurrentLogins,
  { sizes, memory }: StandbyHost,
): OpenQueryServer {
  // Changes of this status are not reported: `StandbySet` polls the standby and reports whether it can be reached.
  const reach = new ConnectionStatus(() => undefined);
  return (check) =>
    queryServer(
      (limits, mode) => logins.connect('url', (url) => connectGoverned(url, memory, limits, mode, check)),
      reach,
      { ...sizes, waitMs: WAIT_MS },
      name,
    );
}
