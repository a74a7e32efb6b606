import type { AnswerMemory } from './answer-memory.js';
import type { DataNodes } from './data-nodes.js';
import type { GovernedDoor, SystemDoor } from './doors.js';
import type { EnginePool } from './engine-pool.js';
import type { Ailment } from './health.js';
import type { OutOfService } from './out-of-service.js';
import type { ReachChange } from './reach.js';
import type { SpoolRoom } from './spool/spool-room.js';
import type { TellUpstreamError } from './upstream-words.js';

/** A database: its two doors, and how it stands. */
export interface Engine {
  readonly kind: 'pglite' | 'postgres';
  readonly governed: GovernedDoor;
  /** What the governed door refuses, as it is gone from the database. */
  readonly outOfService: OutOfService;
  readonly system: SystemDoor;
  /**
   * False until a first session was had and looked at, where the engine was opened without one (`EngineSurroundings`):
   * both doors refuse until then (`databaseDown`).
   */
  readonly reached: boolean;
  /** Resolves once `reached` is true. Never rejects. */
  readonly whenReached: Promise<void>;
  /** The server's version, as in `18.6`; empty until it is reached. */
  readonly serverVersion: string;
  /** What an operator should mend, found at the first session. */
  readonly warnings: readonly string[];
  /**
   * The time zone that `text` names, as the upstream shows it; null where it knows none of that name. Throws
   * QueryError as `execute` does.
   */
  timeZone(text: string): Promise<string | null>;
  /** Why no governed session answers within two seconds; null where one does. */
  ailment(): Promise<Ailment | null>;
  /** The servers behind it, of tables that are not its own. */
  readonly nodes: DataNodes;
  /** The sessions with it, by what they are for. */
  pools(): readonly EnginePool[];
  /** Logs in with other credentials from the next session on; those that are open stay. */
  renew(urls: { readonly url: string | null; readonly systemUrl: string | null }): void;
  close(): Promise<void>;
}

/** What engines of one process share. */
export interface EngineSurroundings extends EngineEvents {
  /** Where rows of slow readers go; null for nowhere: then they keep their sessions. */
  readonly spool: SpoolRoom | null;
  readonly memory: AnswerMemory;
  /**
   * For a process that serves: a server that does not answer, or lets nobody in, is tried again until it does, and the
   * engine opens meanwhile. Null: then it does not open.
   */
  readonly serving: Serving | null;
}

/** What a process that serves wants of an engine. */
export interface Serving {
  /** Resolves once statements may run there. What it rejects with is tried again, but for a StartProblem at the start. */
  admit(): Promise<void>;
  /** After so long without an answer to a statement of the system door its session is given up. ms */
  readonly systemSilenceMs: number;
}

/** What an operator hears of an engine; never a caller. */
export interface EngineEvents {
  /** The upstream's own words about a governed statement. */
  readonly onUpstreamError: TellUpstreamError;
  /** Sessions can no longer be opened, or can again. */
  readonly onReach: (change: ReachChange) => void;
}
