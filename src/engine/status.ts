import type { DataNodes } from './data-nodes.js';
import { ailmentOf, UNREACHED, type UnhealthyReason } from './health.js';
import type { OutOfService, OutOfServiceCause } from './out-of-service.js';
import type { EnginePool } from './pool.js';
import type { Runner } from './runner.js';
import { timeZones } from './time-zones.js';
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

  /** Why no governed session answers within two seconds; null if one does. */
  async ailment(): Promise<UnhealthyReason | null> {
    return this.reached ? ailmentOf(this.#parts.runner) : UNREACHED;
  }

  /** The time zone that `text` names, as the upstream shows it; null if it knows none. Throws as `GovernedEngine.execute`. */
  timeZone(text: string): Promise<string | null> {
    return this.#timeZone(text);
  }
}
