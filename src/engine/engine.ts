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
  /** The server's version, as in `18.6`. */
  readonly serverVersion: string;
  /** What an operator should mend, found at start. */
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
  renew(urls: { readonly url: string; readonly systemUrl: string | null }): void;
  close(): Promise<void>;
}

/** What engines of one process share. */
export interface EngineSurroundings extends EngineEvents {
  /** Where rows of slow readers go; null for nowhere: then they keep their sessions. */
  readonly spool: SpoolRoom | null;
}

/** What an operator hears of an engine; never a caller. */
export interface EngineEvents {
  /** The upstream's own words about a governed statement. */
  readonly onUpstreamError: TellUpstreamError;
  /** Sessions can no longer be opened, or can again. */
  readonly onReach: (change: ReachChange) => void;
}
