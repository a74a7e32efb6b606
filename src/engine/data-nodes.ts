import { QueryError } from 'osl-compiler';
import type { ForeignServer } from './postgres/foreign-servers.js';
import { Runner, type RunnerOptions } from './runner.js';
import type { UpstreamStatement } from './statement.js';
import { type UpstreamError, wordsOf } from './upstream-words.js';

const HEALTHY_MS = 2_000;

/** Reason why a governed session does not answer in time; `busy`: all are in use, and the upstream may be well. */
export type UnhealthyReason =
  | 'busy'
  | 'no answer in time'
  | 'it cannot be reached, or cut the session'
  | 'it refuses the session';

/** Of a server that no session was had with since the start. */
export const UNREACHED: UnhealthyReason = 'it cannot be reached, or cut the session';

/** Null where a governed session answers. */
export async function ailmentOf(runner: Runner): Promise<UnhealthyReason | null> {
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
 * Runs a statement of ours, of one int4, for nobody, and drops what it gives.
 *
 * @param ms what it may take
 * @throws as `Runner.runStatement`, where it is not answered
 */
async function probe(runner: Runner, sql: string, ms: number): Promise<void> {
  const statement: UpstreamStatement = {
    sql,
    asks: 'rows',
    planMode: 'auto',
    parameterOids: [],
    columnOids: [23],
  };
  const options = { subject: null, resultFormats: [], maxRows: 0, maxBytes: 0, timeoutMs: ms, signal: null };
  await runner.runStatement(statement, [], options, { write: () => undefined });
}

/** Time in ms that a server may take to answer. */
const LOOK_MS = 2_000;
/** The longest time between two looks at a server that does not answer: each may hold a session until its end. ms */
const REST_MS = 30_000;

/** A server behind the database that began or ceased to answer. */
export interface NodeChange {
  readonly server: string;
  /** Null: it answers again. */
  readonly cause: string | null;
}

/** The servers that the database reads tables of, and which of them do not answer. */
export interface DataNodes {
  /** Names of those that did not at the last look. */
  readonly unreachable: ReadonlySet<string>;
  /** Looks at all of them, at those that do not answer less and less often. Never rejects. */
  look(): Promise<readonly NodeChange[]>;
}

/** Of an engine whose tables are all its own. */
export const NO_NODES: DataNodes = Object.freeze({
  unreachable: new Set<string>(),
  look: () => Promise.resolve([]),
});

/**
 * Watches the servers behind a database by the way that questions take: a session of the governed role opens a table of
 * each, and reads no row of it. The database has to begin a transaction there, so a dead connection shows.
 */
export class ForeignNodes implements DataNodes {
  readonly unreachable = new Set<string>();
  readonly #servers: () => readonly ForeignServer[];
  readonly #options: RunnerOptions;
  /** By server: since when it may be looked at again, and the rest before that. */
  readonly #rests = new Map<string, { readonly at: number; readonly ms: number }>();

  /** @param servers as the last session found them */
  constructor(servers: () => readonly ForeignServer[], options: RunnerOptions) {
    this.#servers = servers;
    this.#options = options;
  }

  async look(): Promise<readonly NodeChange[]> {
    const servers = this.#servers();
    const found = await Promise.all(servers.map((server) => this.#lookAt(server)));
    const there = new Set(servers.map(({ name }) => name));
    for (const name of this.unreachable) if (!there.has(name)) this.unreachable.delete(name);
    return found.flatMap((change) => change ?? []);
  }

  async #lookAt({ name, readable }: ForeignServer): Promise<NodeChange | null> {
    const rest = this.#rests.get(name);
    if (readable === null || (rest !== undefined && performance.now() < rest.at)) return null;
    const cause = await this.#causeOf(readable);
    if (cause === 'busy') return null;
    if (cause === null) {
      this.#rests.delete(name);
      return this.unreachable.delete(name) ? { server: name, cause } : null;
    }
    const ms = Math.min(REST_MS, 2 * (rest?.ms ?? LOOK_MS));
    this.#rests.set(name, { at: performance.now() + ms, ms });
    if (this.unreachable.has(name)) return null;
    this.unreachable.add(name);
    return { server: name, cause };
  }

  /** Null where the server answers; `busy`: nobody could ask, or the database itself is what does not answer. */
  async #causeOf(table: string): Promise<string | null> {
    let said: UpstreamError | null = null;
    // Told once by whoever watches, not with each look; and never on a session that others share.
    const onUpstreamError = (error: UpstreamError): void => {
      said = error;
    };
    const runner = new Runner({ ...this.#options, lanes: null, onUpstreamError });
    try {
      await probe(runner, `SELECT 1::pg_catalog.int4 FROM ${table} LIMIT 0`, LOOK_MS);
      return null;
    } catch (error) {
      if (said !== null) return causeIn(said);
      if (error instanceof QueryError && error.entry === 'timedOut') return 'no answer in time';
      return 'busy';
    }
  }
}

function causeIn(error: UpstreamError): string {
  const { message, sqlstate } = wordsOf(error);
  return `${message ?? 'it failed'} (${sqlstate})`;
}

/** Number of servers behind the databases that do not answer. */
export function unreachableNodes(engines: ReadonlyMap<string, { readonly nodes: DataNodes }>): number {
  return [...engines.values()].reduce((sum, engine) => sum + engine.nodes.unreachable.size, 0);
}
