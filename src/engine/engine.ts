import type { AnswerMemory } from './answer-memory.js';
import type { ConnectionChange } from './connection-status.js';
import type { GovernedEngine } from './governed.js';
import type { OutOfServiceCause } from './out-of-service.js';
import type { SpoolRoom } from './spool/spool-room.js';
import type { SystemEngine } from './system.js';
import type { ReportUpstreamError } from './upstream-report.js';

/**
 * An open database: its two engines and its life cycle. Service start and tools hold it; each room gets only the
 * engine it needs.
 */
export interface OpenedEngine {
  readonly governed: GovernedEngine;
  readonly system: SystemEngine;
  /** Replaces the set of relations whose queries are refused. */
  takeOutOfService(relations: ReadonlyMap<string, OutOfServiceCause>): void;
  /** Uses other credentials for new sessions; open sessions stay. */
  renew(urls: { readonly url: string | null; readonly systemUrl: string | null }): void;
  close(): Promise<void>;
}

/** State shared by the engines of one process. */
export interface EngineSurroundings extends EngineEvents {
  /** Spool for rows of slow readers. Without one, slow readers keep their sessions. */
  readonly spool: SpoolRoom | null;
  readonly memory: AnswerMemory;
  /**
   * For a serving process: the engine opens even if the server is down or refuses the login, and keeps trying. Null:
   * opening fails.
   */
  readonly serving: ServingOptions | null;
}

/** Options of an engine in a serving process. */
export interface ServingOptions {
  /** Resolves once statements may run. A rejection is retried, except a StartProblem at the start. */
  admit(): Promise<void>;
  /** Time in ms after which a session of the system engine that does not answer is closed. */
  readonly systemSilenceMs: number;
}

/** Events of an engine for the operator; callers never see them. */
export interface EngineEvents {
  /** Receives the upstream's error about a governed statement. */
  readonly onUpstreamError: ReportUpstreamError;
  /** Reports that sessions can no longer be opened, or can again. */
  readonly onReach: (change: ConnectionChange) => void;
}
