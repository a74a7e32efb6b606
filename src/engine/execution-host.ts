import type { AnswerMemory } from './answer-memory.js';
import type { SettingForm } from './settings.js';
import type { SpoolRoom } from './spool/spool.js';
import type { ErrorSource, ReportUpstreamError } from './upstream-report.js';
import type { UpstreamSession } from './upstream-session.js';

/** Rules by which the statements of a runner or snapshot are executed. */
export interface ExecutionRules {
  /**
   * True to send the row cap in Execute. If false, the statement is cancelled at the cap instead, which allows parallel
   * plans.
   */
  readonly limitRows: boolean;
  readonly settingForm: SettingForm;
  readonly errors: ErrorSource;
  readonly onUpstreamError: ReportUpstreamError;
  readonly memory: AnswerMemory;
  /** True if a statement may run again after its session is lost: it only reads and needs no session state. */
  readonly mayRunAgain: boolean;
  /** Spool for rows of slow readers, which frees their sessions early; null if there is none. */
  readonly spool: SpoolRoom | null;
}

/** The owner of an execution of type `E`: a `Runner` or a `PinnedSnapshot`. */
export interface ExecutionHost<E> {
  readonly rules: ExecutionRules;
  /** True if the statement runs in a transaction that continues after it. */
  readonly inTransaction: boolean;
  /** Called when the session has answered `execution` in full, or is lost. */
  onEnded(execution: E, session: UpstreamSession): void;
}
