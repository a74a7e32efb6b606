import { QueryError } from 'osl-compiler';
import { ailmentOf, type DataNodes, UNREACHED, type UnhealthyReason } from './data-nodes.js';
import type { OutOfService, OutOfServiceCause } from './out-of-service.js';
import type { EnginePool } from './pool.js';
import { textValuesOf } from './protocol/data-row.js';
import type { Runner } from './runner.js';
import type { UpstreamStatement } from './statement.js';
import { connectionLost } from './upstream-error.js';

/** The server behind an engine, as its first session found it. */
interface ServerFacts {
  /** The role that governed statements run as. */
  readonly role: string;
  /** As in `18.6`. */
  readonly serverVersion: string;
  /** Each says what an operator should mend. */
  readonly warnings: readonly string[];
}

/** Parts of an `EngineStatus`, for those who open an engine. */
export interface StatusParts {
  readonly kind: 'pglite' | 'postgres';
  readonly runner: Runner;
  readonly outOfService: OutOfService;
  readonly nodes: DataNodes;
  /** Null until a first session was had. */
  readonly server: () => ServerFacts | null;
  readonly whenReached: Promise<void>;
  readonly pools: () => readonly EnginePool[];
}

/** The state of a database, as surfaces and operators may see it. It runs nothing of theirs. */
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

  /** The role that governed statements run as. Throws QueryError `databaseDown` until it is reached. */
  get role(): string {
    const server = this.#parts.server();
    if (server === null) throw connectionLost();
    return server.role;
  }

  /** False until a first session was had and inspected: every plan is refused until then (`databaseDown`). */
  get reached(): boolean {
    return this.#parts.server() !== null;
  }

  /** Resolves once `reached` is true. Never rejects. */
  get whenReached(): Promise<void> {
    return this.#parts.whenReached;
  }

  /** Empty until it is reached. */
  get serverVersion(): string {
    return this.#parts.server()?.serverVersion ?? '';
  }

  get warnings(): readonly string[] {
    return this.#parts.server()?.warnings ?? [];
  }

  /** Relations that are refused, as their tables are gone from the database or are others. */
  get outOfService(): ReadonlyMap<string, OutOfServiceCause> {
    return this.#parts.outOfService.relations;
  }

  /** The servers behind it, of tables that are not its own. */
  get nodes(): DataNodes {
    return this.#parts.nodes;
  }

  pools(): readonly EnginePool[] {
    return this.#parts.pools();
  }

  /** Reason why no governed session answers within two seconds; null if one does. */
  async ailment(): Promise<UnhealthyReason | null> {
    return this.reached ? ailmentOf(this.#parts.runner) : UNREACHED;
  }

  /** The time zone that `text` names, as the upstream shows it; null if it knows none. Throws as `GovernedEngine.execute`. */
  timeZone(text: string): Promise<string | null> {
    return this.#timeZone(text);
  }
}

/** Answers that are remembered, the wrong names among them. */
const REMEMBERED = 1_000;
/** UTF-16 units; Postgres knows none that is longer. */
const LONGEST = 255;
const ASK_MS = 5_000;
const SHOW: UpstreamStatement = {
  sql: `SELECT pg_catalog.current_setting('TimeZone')`,
  parameterOids: [],
  asks: 'rows',
  planMode: 'auto',
  columnOids: [25],
};

/** Asks the upstream what zone a text names, once for each text. */
function timeZones(runner: Runner): (text: string) => Promise<string | null> {
  const known = new Map<string, string | null>();
  return async (text) => {
    if (text === '' || text.length > LONGEST || text.includes('\0')) return null;
    const found = known.get(text);
    if (found !== undefined) return found;
    const zone = await askUpstream(runner, text);
    if (known.size >= REMEMBERED) known.clear();
    known.set(text, zone);
    return zone;
  };
}

async function askUpstream(runner: Runner, text: string): Promise<string | null> {
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
    timeoutMs: ASK_MS,
    signal: null,
    settings: [['TimeZone', text] as const],
  };
  try {
    await runner.runStatement(SHOW, [], options, sink);
    return zone;
  } catch (error) {
    // Of all that can go wrong, only this says something of the text.
    if (error instanceof QueryError && error.entry === 'unresolvable') return null;
    throw error;
  }
}
