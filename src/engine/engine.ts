import type { AnswerMemory } from './answer-memory.js';
import type { GovernedEngine } from './governed.js';
import type { OutOfServiceCause } from './out-of-service.js';
import type { ReachChange } from './reach.js';
import type { SpoolRoom } from './spool/spool-room.js';
import type { SystemEngine } from './system.js';
import type { TellUpstreamError } from './upstream-words.js';

/**
 * An open database: the two engines to it, apart, and its life cycle. Service start and tools hold it, and hand each room
 * the part that it needs.
 */
export interface OpenedEngine {
  readonly governed: GovernedEngine;
  readonly system: SystemEngine;
  /** From now on questions about these relations are refused, and about no others. */
  takeOutOfService(relations: ReadonlyMap<string, OutOfServiceCause>): void;
  /** Logs in with other credentials from the next session on; those that are open stay. */
  renew(urls: { readonly url: string | null; readonly systemUrl: string | null }): void;
  close(): Promise<void>;
}

/** State shared by the engines of one process. */
export interface EngineSurroundings extends EngineEvents {
  /** Spool for rows of slow readers; null if there is none: then they keep their sessions. */
  readonly spool: SpoolRoom | null;
  readonly memory: AnswerMemory;
  /**
   * For a process that serves: a server that does not answer, or lets nobody in, is tried again until it does, and the
   * engine opens meanwhile. Null: then it does not open.
   */
  readonly serving: ServingOptions | null;
}

/** Options of an engine in a serving process. */
export interface ServingOptions {
  /** Resolves once statements may run there. What it rejects with is tried again, but for a StartProblem at the start. */
  admit(): Promise<void>;
  /** After so long without an answer to a statement of the system engine its session is given up. ms */
  readonly systemSilenceMs: number;
}

/** Events of an engine for the operator; callers never see them. */
export interface EngineEvents {
  /** The upstream's own words about a governed statement. */
  readonly onUpstreamError: TellUpstreamError;
  /** Sessions can no longer be opened, or can again. */
  readonly onReach: (change: ReachChange) => void;
}
