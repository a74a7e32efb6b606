import { QueryError } from 'osl-compiler';
import type { ForeignServer } from './postgres/foreign-servers.js';
import { Runner, type RunnerOptions } from './runner.js';
import { QueryServers } from './servers.js';
import type { UpstreamStatement } from './statement.js';
import { toLoggable, type UpstreamError } from './upstream-report.js';

const HEALTHY_MS = 2_000;

/** Reason why no governed session answers in time. `busy`: all sessions are in use, so the upstream may be healthy. */
export type UnhealthyReason =
  | 'busy'
  | 'no answer in time'
  | 'it cannot be reached, or cut the session'
  | 'it refuses the session';

export const UNREACHED: UnhealthyReason = 'it cannot be reached, or cut the session';

/** Returns the primary's pool as the only server, without shared sessions. */
function primaryOnly({ servers }: RunnerOptions): QueryServers {
  return new QueryServers({ pool: servers.primary.pool, lanes: null, standby: null }, null);
}

/** Runs a probe; returns null if a governed session answers within two seconds. */
export async function unhealthyReasonOf(runner: Runner): Promise<UnhealthyReason | null> {
  try {
    await probe(runner, 'SELECT 1::pg_catalog.int4', HEALTHY_MS);
    return null;
  } catch (error) {
    if (!(error instanceof QueryError)) return 'it refuses the session';
    if (error.entry === 'timedOut') return 'no answer in time';
    return error.entry === 'overloaded' ? 'busy' : 'it cannot be reached, or cut the session';
  }
}

/**
 * Runs a statement with one int4 column on behalf of the gateway and drops its rows.
 *
 * @param ms timeout
 * @throws the errors of `Runner.runStatement`
 */
async function probe(runner: Runner, sql: string, ms: number): Promise<void> {
  const statement: UpstreamStatement = {
    sql,
    output: 'rows',
    planMode: 'auto',
    parameterOids: [],
    columnOids: [23],
  };
  const options = { subject: null, resultFormats: [], maxRows: 0, maxBytes: 0, timeoutMs: ms, signal: null };
  await runner.runStatement(statement, [], options, { write: () => undefined });
}

const PROBE_MS = 2_000;
/**
 * Longest pause in ms between probes of a server that does not answer, since each probe may occupy a session until it
 * times out.
 */
const MAX_PAUSE_MS = 30_000;

/** A foreign server that stopped or resumed answering. */
export interface NodeChange {
  readonly server: string;
  /** Reason why the server does not answer; null if it answers again. */
  readonly cause: string | null;
}

/** Reachability of a database's foreign servers. */
export interface DataNodes {
  /** Names of the servers that did not answer the last probe. */
  readonly unreachable: ReadonlySet<string>;
  /** Probes all servers, with growing pauses for unresponsive ones. Never rejects. */
  probeAll(): Promise<readonly NodeChange[]>;
}

export const NO_NODES: DataNodes = Object.freeze({
  unreachable: new Set<string>(),
  probeAll: () => Promise.resolve([]),
});

/**
 * Probes the foreign servers of a database in the same way as queries use them: a session of the governed role opens
 * one table on each server without reading a row. The database must begin a transaction there, so a dead connection is
 * noticed.
 */
export class ForeignNodes implements DataNodes {
  readonly unreachable = new Set<string>();
  readonly #servers: () => readonly ForeignServer[];
  readonly #options: RunnerOptions;
  /** Per server: earliest time of the next probe, and the pause before it. */
  readonly #pauses = new Map<string, { readonly at: number; readonly ms: number }>();

  constructor(servers: () => readonly ForeignServer[], options: RunnerOptions) {
    this.#servers = servers;
    this.#options = options;
  }

  async probeAll(): Promise<readonly NodeChange[]> {
    const servers = this.#servers();
    const changes = await Promise.all(servers.map((server) => this.#probeServer(server)));
    const existing = new Set(servers.map(({ name }) => name));
    for (const name of this.unreachable) if (!existing.has(name)) this.unreachable.delete(name);
    return changes.flatMap((change) => change ?? []);
  }

  async #probeServer({ name, readable }: ForeignServer): Promise<NodeChange | null> {
    const pause = this.#pauses.get(name);
    if (readable === null || (pause !== undefined && performance.now() < pause.at)) return null;
    const cause = await this.#causeOf(readable);
    if (cause === 'busy') return null;
    if (cause === null) {
      this.#pauses.delete(name);
      return this.unreachable.delete(name) ? { server: name, cause } : null;
    }
    const ms = Math.min(MAX_PAUSE_MS, 2 * (pause?.ms ?? PROBE_MS));
    this.#pauses.set(name, { at: performance.now() + ms, ms });
    if (this.unreachable.has(name)) return null;
    this.unreachable.add(name);
    return { server: name, cause };
  }

  /** Returns why a server does not answer; null if it does, `busy` if no session was free or the database is down. */
  async #causeOf(table: string): Promise<string | null> {
    let upstreamError: UpstreamError | null = null;
    // The caller reports the error once, not for each probe; a probe never runs on a shared session.
    const onUpstreamError = (error: UpstreamError): void => {
      upstreamError = error;
    };
    const runner = new Runner({ ...this.#options, servers: primaryOnly(this.#options), onUpstreamError });
    try {
      await probe(runner, `SELECT 1::pg_catalog.int4 FROM ${table} LIMIT 0`, PROBE_MS);
      return null;
    } catch (error) {
      if (upstreamError !== null) return causeText(upstreamError);
      if (error instanceof QueryError && error.entry === 'timedOut') return 'no answer in time';
      return 'busy';
    }
  }
}

function causeText(error: UpstreamError): string {
  const { message, sqlstate } = toLoggable(error);
  return `${message ?? 'it failed'} (${sqlstate})`;
}

/** Number of foreign servers, over all databases, that did not answer the last probe. */
export function unreachableNodes(engines: ReadonlyMap<string, { readonly nodes: DataNodes }>): number {
  return [...engines.values()].reduce((sum, engine) => sum + engine.nodes.unreachable.size, 0);
}
