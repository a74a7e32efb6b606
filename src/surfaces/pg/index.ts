/** Sessions of the Postgres port: the statements and settings behind the protocol of `wire/`. */
export { type CommandResult, commandStatement, textColumn } from './command.js';
export {
  createPgFrontend,
  noDatabase,
  type PgFrontend,
  type PgOptions,
  recordRefusedConnection,
  refusedLogin,
} from './frontend.js';
export { tokenRevoked } from './session-caller.js';
export { SessionRecords, wireError } from './session-records.js';
export { countedBy, type OwnSessions, type SessionCaps, type SessionCounts } from './session-register.js';
