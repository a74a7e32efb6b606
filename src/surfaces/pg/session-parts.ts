import type { AnswerParts } from '../../ask/index.js';
import type { Catalogs } from '../catalog/index.js';
import type { Cursors } from './cursor.js';
import type { Running } from './running.js';
import type { SessionCaller } from './session-caller.js';
import type { SessionRecords } from './session-records.js';
import type { SessionState } from './session-state.js';
import type { SessionSettings } from './settings.js';

/** What one session of the wire is made of; its statements are given all of it. */
export interface SessionParts {
  readonly service: AnswerParts;
  readonly caller: SessionCaller;
  readonly records: SessionRecords;
  readonly settings: SessionSettings;
  readonly state: SessionState;
  readonly cursors: Cursors;
  readonly running: Running;
  /** Null: questions about the catalog are questions like any other, and refused. */
  readonly catalogs: Catalogs | null;
  /** The process id of BackendKeyData; 0 before that is sent. */
  readonly processId: () => number;
}
