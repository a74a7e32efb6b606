import type { Awaitable, SessionControl } from '../../../wire/index.js';
import type { AnswerParts, QuestionRouter } from '../../ask/index.js';
import type { CatalogDoor, CatalogSession, SessionSignal } from '../catalog/index.js';
import type { ActivityRecorder, RunningStatement } from './activity.js';
import type { Cursors } from './cursor.js';
import type { SessionCaller } from './session-caller.js';
import type { SessionRecords, WaitingRowRights } from './session-records.js';
import type { SessionState } from './session-state.js';
import type { SessionSettings } from './settings.js';

/** State and services of one session, passed to each of its statements. */
export interface SessionParts {
  readonly service: AnswerParts;
  readonly caller: SessionCaller;
  readonly rights: WaitingRowRights;
  readonly records: SessionRecords;
  readonly settings: SessionSettings;
  readonly state: SessionState;
  readonly cursors: Cursors;
  /** Prepared statements by name: those of Parse and of SQL's PREPARE share one namespace. */
  readonly statements: Pick<SessionControl, 'statement' | 'statements' | 'keep'>;
  readonly running: RunningStatement;
  readonly activity: ActivityRecorder;
  /** Open sessions of the same caller, including this one. */
  readonly own: {
    all(): Awaitable<readonly CatalogSession[]>;
    signal(signal: SessionSignal): Awaitable<boolean>;
  };
  /** Null: catalog queries are handled as data queries, and so refused. */
  readonly catalogs: CatalogDoor | null;
  readonly questions: QuestionRouter;
  /** Process id of BackendKeyData; 0 before it is sent. */
  readonly processId: () => number;
}
