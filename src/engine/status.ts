import { QueryError } from 'osl-compiler';
import { type DataNodes, UNREACHED, type UnhealthyReason, unhealthyReasonOf } from './data-nodes.js';
import type { OutOfService, OutOfServiceCause } from './out-of-service.js';
import type { EnginePool } from './pool.js';
import type { StandbyView } from './postgres/standby/standby.js';
import { textValuesOf } from './protocol/backend-messages.js';
import type { Runner } from './runner.js';
import type { UpstreamStatement } from './statement.js';
import { connectionLost } from './upstream-error.js';

/** Facts about the server, found by the first session. */
interface ServerFacts {
  /** The role that governed statements run as. */
  readonly role: string;
  /** The server's version, such as `18.6`. */
  readonly serverVersion: string;
  /** Problems that an operator should fix. */
  readonly warnings: readonly string[];
}

export interface StatusParts {
  readonly kind: 'pglite' | 'postgres';
  readonly runner: Runner;
  readonly outOfService: OutOfService;
  readonly nodes: DataNodes;
  /** Returns the facts about the server; null before the first session. */
  readonly server: () => ServerFacts | null;
  readonly whenReached: Promise<void>;
  readonly standbys: () => readonly StandbyView[];
  readonly pools: () => readonly EnginePool[];
}

/** Read access to the state of a database, for surfaces (wire, REST, MCP) and operators. Runs no caller's query. */
export class EngineStatus {
  readonly #parts: StatusParts;
  readonly #timeZone: (text: string) => Promise<string | null>;

  constructor(parts: StatusParts) {
    this.#parts = parts;
    this.#timeZone = timeZones(parts.runner);
    Object.freeze(this);
  }

  get kind(): 'pglite' | 'postgres' {
    return this.#parts.kind;
  }

  /** The role that governed statements run as. Throws QueryError `databaseDown` if the database was never reached. */
  get role(): string {
    const server = this.#parts.server();
    if (server === null) throw connectionLost();
    return server.role;
  }

  /** False until a first session was opened and checked; until then every plan is refused (`databaseDown`). */
  get reached(): boolean {
    return this.#parts.server() !== null;
  }

  /** Resolves once `reached` is true. Never rejects. */
  get whenReached(): Promise<void> {
    return this.#parts.whenReached;
  }

  /** The server's version; empty until the server is reached. */
  get serverVersion(): string {
    return this.#parts.server()?.serverVersion ?? '';
  }

  get warnings(): readonly string[] {
    return this.#parts.server()?.warnings ?? [];
  }

  /** Relations whose queries are refused because their tables changed or are gone. */
  get outOfService(): ReadonlyMap<string, OutOfServiceCause> {
    return this.#parts.outOfService.relations;
  }

  /** Foreign servers of the database. */
  get nodes(): DataNodes {
    return this.#parts.nodes;
  }

  /** The standbys that may answer queries. */
  standbys(): readonly StandbyView[] {
    return this.#parts.standbys();
  }

  pools(): readonly EnginePool[] {
    return this.#parts.pools();
  }

  /** Returns the reason why no governed session answers within two seconds; null if a session answers. */
  async unhealthyReason(): Promise<UnhealthyReason | null> {
    return this.reached ? unhealthyReasonOf(this.#parts.runner) : UNREACHED;
  }

  /**
   * Returns the name of the time zone `text` as the upstream displays it; null if the upstream does not know the zone.
   * Throws the errors of `GovernedEngine.execute`.
   */
  timeZone(text: string): Promise<string | null> {
    return this.#timeZone(text);
  }
}

/** Maximum number of cached answers, including those for unknown names. */
const MAX_CACHED = 1_000;
/** Maximum length of a time zone name in UTF-16 code units. */
const MAX_LENGTH = 255;
const TIMEOUT_MS = 5_000;
const SHOW_TIME_ZONE: UpstreamStatement = {
  sql: `SELECT pg_catalog.current_setting('TimeZone')`,
  parameterOids: [],
  output: 'rows',
  planMode: 'auto',
  columnOids: [25],
};

/** Resolves time zone names on the upstream and caches the results. */
function timeZones(runner: Runner): (text: string) => Promise<string | null> {
  const cache = new Map<string, string | null>();
  return async (text) => {
    if (text === '' || text.length > MAX_LENGTH || text.includes('\0')) return null;
    const cached = cache.get(text);
    if (cached !== undefined) return cached;
    const zone = await resolveTimeZone(runner, text);
    if (cache.size >= MAX_CACHED) cache.clear();
    cache.set(text, zone);
    return zone;
  };
}

async function resolveTimeZone(runner: Runner, text: string): Promise<string | null> {
  let zone: string | null = null;
  const sink = {
    write(rows: Uint8Array) {
      zone = textValuesOf(rows)[0] ?? null;
    },
  };
  const options = {
    subject: null,
    resultFormats: [],
    maxRows: 0,
    maxBytes: 0,
    timeoutMs: TIMEOUT_MS,
    signal: null,
    settings: [['TimeZone', text] as const],
  };
  try {
    await runner.runStatement(SHOW_TIME_ZONE, [], options, sink);
    return zone;
  } catch (error) {
    // Any other error says nothing about the time zone.
    if (error instanceof QueryError && error.entry === 'unresolvable') return null;
    throw error;
  }
}
