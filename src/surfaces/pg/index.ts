/** The Postgres frontend: sessions of `wire/` in front of the spine. */
export { type CommandResult, commandStatement, textColumn } from './command-statement.js';
export {
  createPgFrontend,
  noDatabase,
  type PgFrontend,
  type PgOptions,
  refusedLogin,
} from './frontend.js';
export { countedBy, type SessionCaps, type SessionCounts } from './open-sessions.js';
export type { OwnSessions } from './own-sessions.js';
export { recordRefusedConnection } from './refused-connection.js';
export { tokenRevoked } from './session-caller.js';
export { SessionRecords } from './session-records.js';
export { wireError } from './wire-error.js';
