import type { Awaitable, SessionControl } from '../../../wire/index.js';
import type { AnswerParts, QuestionRouter } from '../../ask/index.js';
import type { CatalogDoor, CatalogSession, SessionSignal } from '../catalog/index.js';
import type { ActivityRecorder, RunningStatement } from './activity.js';
import type { Cursors } from './cursor.js';
import type { SessionCaller } from './session-caller.js';
import type { SessionRecords, WaitingRowRights } from './session-records.js';
import type { SessionState } from './session-state.js';
import type { SessionSettings } from './settings.js';

/** What one session of the wire is made of; its statements are given all of it. */
export interface SessionParts {
  readonly service: AnswerParts;
  readonly caller: SessionCaller;
  readonly rights: WaitingRowRights;
  readonly records: SessionRecords;
  readonly settings: SessionSettings;
  readonly state: SessionState;
  readonly cursors: Cursors;
  /** What PREPARE keeps and EXECUTE runs: the statements of the protocol, which have their names from one set. */
  readonly statements: Pick<SessionControl, 'statement' | 'statements' | 'keep'>;
  readonly running: RunningStatement;
  readonly activity: ActivityRecorder;
  /** The open sessions of the same caller, this one among them. */
  readonly own: {
    all(): Awaitable<readonly CatalogSession[]>;
    signal(signal: SessionSignal): Awaitable<boolean>;
  };
  /** Null: questions about the catalog are questions like any other, and refused. */
  readonly catalogs: CatalogDoor | null;
  /** Door for the questions of all sessions. */
  readonly questions: QuestionRouter;
  /** The process id of BackendKeyData; 0 before that is sent. */
  readonly processId: () => number;
}
