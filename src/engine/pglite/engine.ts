import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { sql } from '../../base/sql.js';
import type { AnswerMemory } from '../answer-memory.js';
import { ConnectionStatus } from '../connection-status.js';
import { NO_NODES } from '../data-nodes.js';
import type { EngineContext, OpenedEngine } from '../engine.js';
import { GovernedEngine } from '../governed.js';
import { OutOfService, type OutOfServiceCause } from '../out-of-service.js';
import { Pool } from '../pool.js';
import { Runner } from '../runner.js';
import { QueryServers } from '../servers.js';
import { EngineStatus } from '../status.js';
import { SystemEngine, withSessionFrom } from '../system.js';
import { UpstreamSession } from '../upstream-session.js';
import { checkMajor, lockDataDir } from './data-directory.js';
import { READER, SessionModes } from './modes.js';
import { WorkerTransport } from './transport.js';

export interface PgliteConfig {
  readonly kind: 'pglite';
  /** The data directory; null for a temporary one that is removed on close. */
  readonly dataDir: string | null;
  /** Maximum wait for the single session in ms; default 30,000. */
  readonly waitMs?: number;
  /** Memory limit of the server in bytes; default 1 GiB. */
  readonly maxMemory?: number;
}

const MAX_WAITING = 10_000;
const MAX_MEMORY = 1_073_741_824;

/**
 * Opens the embedded server. It has one session, so statements queue.
 *
 * Throws an Error if another process uses the data directory, another major version made it, or the server does not
 * start.
 */
export async function openPglite(
  config: PgliteConfig,
  { onUpstreamError, onReach, spool, memory }: EngineContext,
): Promise<{ readonly engine: OpenedEngine; readonly runner: Runner }> {
  const directory = acquireDirectory(config.dataDir);
  const servers = new EmbeddedServers(directory.dataDir, config.maxMemory ?? MAX_MEMORY, memory);
  try {
    const first = await servers.start();
    const pool = new Pool({
      size: 1,
      reserve: 0,
      reach: new ConnectionStatus(onReach),
      waitMs: config.waitMs ?? 30_000,
      maxWaiting: MAX_WAITING,
      connect: firstThen(first, () => servers.start()),
    });
    const runner = new Runner({
      servers: new QueryServers({ pool, lanes: null, standby: null }, null),
      limitRows: true,
      settingForm: 'command',
      errors: { backstopSeconds: 0, refusalOf: () => null },
      onUpstreamError,
      spool,
      memory,
      // A statement cannot run again, since the server ends with its session.
      mayRunAgain: false,
      govern: (session) => servers.modes.toGoverned(session),
    });
    const withSession = withSessionFrom(pool, (session) => servers.modes.toSystem(session));
    const system = new SystemEngine(withSession, () => READER);
    const [version] = await system.query(sql`SELECT pg_catalog.current_setting('server_version') AS v`);
    const server = { role: READER, serverVersion: String(version?.['v']), warnings: [] };
    const outOfService = new OutOfService();
    const status = new EngineStatus({
      kind: 'pglite',
      runner,
      outOfService,
      nodes: NO_NODES,
      server: () => server,
      whenReached: Promise.resolve(),
      standbys: () => [],
      pools: () => [pool.metrics('questions')],
    });
    const governed = new GovernedEngine({
      status,
      runner,
      outOfService,
      snapshot: () => null,
      missingForm: () => null,
    });
    const engine: OpenedEngine = Object.freeze({
      governed,
      system,
      takeOutOfService: (relations: ReadonlyMap<string, OutOfServiceCause>) =>
        outOfService.replace(relations),
      renew: () => undefined, // there is no login
      requireCurrent: () => undefined, // there is no standby
      async close() {
        await servers.stop(pool);
        directory.giveBack();
      },
    });
    return { engine, runner };
  } catch (error) {
    await servers.kill();
    directory.giveBack();
    throw error;
  }
}

/** Starts servers on a data directory one after another, since only one may use it at a time. */
class EmbeddedServers {
  readonly modes = new SessionModes();
  readonly #dataDir: string;
  readonly #maxMemory: number;
  readonly #memory: AnswerMemory;
  #last: WorkerTransport | null = null;

  constructor(dataDir: string, maxMemory: number, memory: AnswerMemory) {
    this.#dataDir = dataDir;
    this.#maxMemory = maxMemory;
    this.#memory = memory;
  }

  async start(): Promise<UpstreamSession> {
    await this.#last?.exited;
    const transport = await WorkerTransport.start(this.#dataDir, this.#maxMemory);
    this.#last = transport;
    const session = new UpstreamSession(transport, this.#memory);
    transport.onGrown = () => {
      session.tainted = true;
    };
    await this.modes.prepare(session);
    return session;
  }

  /**
   * Waits up to five seconds for the running statement and, if it ends, shuts the server down cleanly; otherwise
   * terminates it. Rejects waiting requests.
   */
  async stop(pool: Pool): Promise<void> {
    const session =
      pool.take(null) ?? (await Promise.race([pool.acquire(null).catch(() => null), after(5_000)]));
    if (session !== null) await this.#last?.shutDown();
    pool.close();
    await this.kill();
  }

  async kill(): Promise<void> {
    this.#last?.destroy();
    await this.#last?.exited;
  }
}

function after(ms: number): Promise<null> {
  return new Promise((done) => setTimeout(() => done(null), ms).unref());
}

function firstThen(
  first: UpstreamSession,
  next: () => Promise<UpstreamSession>,
): () => Promise<UpstreamSession> {
  let used = false;
  return () => {
    if (used) return next();
    used = true;
    return Promise.resolve(first);
  };
}

interface DataDirectory {
  readonly dataDir: string;
  readonly giveBack: () => void;
}

/**
 * Locks and checks the configured data directory, or creates a temporary one if `configured` is null. Temporary data
 * is on disk as well, so that it survives a restart of the server.
 */
function acquireDirectory(configured: string | null): DataDirectory {
  if (configured === null) {
    const root = mkdtempSync(join(tmpdir(), 'osl-pglite-'));
    const remove = (): void => rmSync(root, { recursive: true, force: true });
    process.once('exit', remove);
    return {
      dataDir: join(root, 'data'),
      giveBack: () => {
        process.off('exit', remove);
        remove();
      },
    };
  }
  const dataDir = resolve(configured);
  mkdirSync(dirname(dataDir), { recursive: true });
  const unlock = lockDataDir(dataDir);
  try {
    checkMajor(dataDir);
  } catch (error) {
    unlock();
    throw error;
  }
  return { dataDir, giveBack: unlock };
}
