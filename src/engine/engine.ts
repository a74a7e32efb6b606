import type { AnswerMemory } from './answer-memory.js';
import type { ConnectionChange } from './connection-status.js';
import type { GovernedEngine } from './governed.js';
import type { OutOfServiceCause } from './out-of-service.js';
import type { StandbyChange } from './postgres/standby/standby-set.js';
import type { SpoolRoom } from './spool/spool.js';
import type { SystemEngine } from './system.js';
import type { ReportUpstreamError } from './upstream-report.js';

/**
 * An open database: its two engines and its life cycle. Held only by service startup and command-line tools; each
 * module gets just the engine it needs.
 */
export interface OpenedEngine {
  readonly governed: GovernedEngine;
  readonly system: SystemEngine;
  /** Replaces the set of relations whose queries are refused. */
  takeOutOfService(relations: ReadonlyMap<string, OutOfServiceCause>): void;
  /** Requires answers of standbys to contain, from now on, everything committed so far. */
  requireCurrent(): void;
  /** Replaces the credentials for new sessions; open sessions are kept. */
  renew(urls: RenewedLogins): void;
  close(): Promise<void>;
}

/** The URLs with which new sessions log in; null for a URL that is not known. */
export interface RenewedLogins {
  readonly url: string | null;
  readonly systemUrl: string | null;
  /** URLs of the standbys, by name. */
  readonly standbys: ReadonlyMap<string, string | null>;
}

/** State shared by the engines of a process. */
export interface EngineContext extends EngineEvents {
  /** Spool for rows of slow readers, which frees their sessions early; null if there is none. */
  readonly spool: SpoolRoom | null;
  readonly memory: AnswerMemory;
  /**
   * Set for a serving process, where the engine opens even if the server is down or refuses the login, and keeps
   * trying. If null, opening fails in that case.
   */
  readonly serving: ServingOptions | null;
}

/** Options of an engine in a serving process. */
export interface ServingOptions {
  /**
   * Checks that statements may run on the server, after its role was inspected; they run once this resolves. If it
   * rejects, it is called again after the next attempt to connect, except for a StartProblem during startup.
   */
  admit(): Promise<void>;
  /** Time in ms after which an unresponsive session of the system engine is closed. */
  readonly systemSilenceMs: number;
}

/** Events of an engine for the operator; callers never see them. */
export interface EngineEvents {
  /** Receives the upstream's error about a governed statement. */
  readonly onUpstreamError: ReportUpstreamError;
  /** Reports that sessions can no longer be opened, or that they can be opened again. */
  readonly onReach: (change: ConnectionChange) => void;
  /** Reports that a standby stops or starts answering queries. */
  readonly onStandby: (change: StandbyChange) => void;
}
