/** Sessions of the Postgres port: statements and settings on top of the protocol in `wire/`. */
export { type CommandResult, commandStatement, textColumn } from './command.js';
export {
  bearerCall,
  createPgFrontend,
  noDatabase,
  type PgFrontend,
  type PgOptions,
  recordRefusedConnection,
  refusedLogin,
} from './frontend.js';
export { countKeys, type OwnSessions, type SessionCaps, type SessionCounts } from './session-register.js';
export { loginError, SessionRecords, tokenExpired, tokenRevoked } from './session-requests.js';
