import type { Execution } from './execution.js';
import type { ExecutionHost, ExecutionRules } from './execution-host.js';
import type { SnapshotPlaces } from './fair-share.js';
import type { ChosenServer, QueryServer, QueryServers } from './servers.js';
import type { StandbyReads } from './standby-reads.js';
import type { IsolationLevel, TransactionSnapshot } from './statement.js';
import { connectionLost } from './upstream-error.js';
import { run, type UpstreamSession } from './upstream-session.js';

export interface SnapshotOptions {
  readonly level: IsolationLevel;
  readonly subject: string | null;
  readonly standby: StandbyReads | null;
  readonly servers: QueryServers;
  readonly places: SnapshotPlaces;
  readonly rules: ExecutionRules;
}

/**
 * A read-only upstream transaction and its session. It begins with the first statement and runs one statement at a
 * time. Each runs behind a savepoint and is rolled back to it, so neither its settings nor its failure outlive it.
 *
 * INVARIANT: when the session is lost, the snapshot is lost: no statement is answered from a later state.
 */
export class PinnedSnapshot implements TransactionSnapshot, ExecutionHost<Execution> {
  readonly rules: ExecutionRules;
  readonly inTransaction = true;
  readonly #options: SnapshotOptions;
  #session: UpstreamSession | null = null;
  #hasPlace = false;
  #chosen: ChosenServer | null = null;
  #state: 'new' | 'open' | 'lost' | 'ended' = 'new';
  #tail: Promise<void> = Promise.resolve();
  #wake: () => void = () => undefined;

  constructor(options: SnapshotOptions) {
    this.#options = options;
    // No spool: the transaction keeps its session in any case. A statement cannot run again without its snapshot.
    this.rules = { ...options.rules, spool: null, mayRunAgain: false };
  }

  /** Runs `execution` after all earlier ones. */
  run(execution: Execution): void {
    this.#tail = this.#tail.then(() => this.#runOne(execution));
  }

  onEnded(): void {
    this.#wake();
  }

  /** Ends the transaction after its last statement and returns the session. */
  end(): void {
    if (this.#state === 'ended') return;
    this.#freePlace(); // now, since the client's next transaction may begin before the database has ended this one
    this.#tail = this.#tail.then(() => this.#finish());
  }

  async #runOne(execution: Execution): Promise<void> {
    try {
      const session = await this.#pin();
      do {
        if (execution.settled) return;
        const completion = new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        execution.chosen = this.#chosen;
        execution.start(session, 'alone');
        await completion;
        if (this.#chosen !== null) this.#options.standby?.onEnded(this.#chosen.server);
        await session.whenFree();
        await command(session, 'ROLLBACK TO SAVEPOINT osl', IN_TRANSACTION);
      } while (execution.rerun === 'here');
    } catch (error) {
      this.#lose();
      execution.stop(error);
    }
  }

  async #pin(): Promise<UpstreamSession> {
    if (this.#session !== null && !this.#session.closed && this.#state === 'open') return this.#session;
    if (this.#state !== 'new') throw connectionLost();
    const { level, subject, places } = this.#options;
    places.take(subject);
    this.#hasPlace = true;
    try {
      this.#session = await this.#acquire();
    } catch (error) {
      this.#freePlace();
      this.#state = 'lost';
      throw error;
    }
    this.#state = 'open';
    await command(this.#session, `BEGIN ISOLATION LEVEL ${level} READ ONLY`, IN_TRANSACTION);
    await command(this.#session, 'SAVEPOINT osl', IN_TRANSACTION);
    return this.#session;
  }

  async #acquire(): Promise<UpstreamSession> {
    const { level, subject, standby, servers } = this.#options;
    // A standby refuses SERIALIZABLE.
    const reads = level === 'SERIALIZABLE' ? null : standby;
    const chosen = servers.choose(reads);
    if (chosen.asOf !== null) {
      const session = await sessionOf(chosen.server, subject).catch(() => null); // on failure, the primary is used
      this.#chosen = session === null ? null : servers.recheck(chosen, reads);
      if (session !== null && this.#chosen?.server === chosen.server) return session;
      if (session !== null) chosen.server.pool.release(session);
    }
    this.#chosen = servers.ofPrimary();
    return sessionOf(servers.primary, subject);
  }

  async #finish(): Promise<void> {
    const session = this.#session;
    const isOpen = this.#state === 'open';
    this.#session = null;
    this.#state = 'ended';
    if (!isOpen || session === null) return;
    this.#freePlace();
    try {
      await command(session, 'ROLLBACK', IDLE);
      this.#chosen?.server.pool.release(session);
    } catch {
      session.destroy(); // its state is unknown
    }
  }

  #lose(): void {
    if (this.#state !== 'open') return;
    this.#session?.destroy();
    this.#session = null;
    this.#state = 'lost';
    this.#freePlace();
  }

  #freePlace(): void {
    if (this.#hasPlace) this.#options.places.free(this.#options.subject);
    this.#hasPlace = false;
  }
}

/** Returns an idle session for `subject`, or waits for one. @throws the errors of `Pool.acquire` */
async function sessionOf({ pool }: QueryServer, subject: string | null): Promise<UpstreamSession> {
  return pool.take(subject) ?? pool.acquire(subject);
}

const IDLE = 0x49;
const IN_TRANSACTION = 0x54;

/** Runs `sql`. @throws QueryError E0523 unless it leaves the session in state `status` */
async function command(session: UpstreamSession, sql: string, status: number): Promise<void> {
  const endStatus = await run(session, (out) => out.query(sql)).catch(() => null);
  if (endStatus !== status) throw connectionLost();
}
