/** The Postgres frontend: sessions of `wire/` in front of the spine. */
export { type CommandResult, commandStatement } from './command-statement.js';
export { createPgFrontend, DATABASE, type PgFrontend, type PgOptions } from './frontend.js';
export { countedBy, type SessionCaps, type SessionCounts } from './open-sessions.js';
export type { OwnSessions, SessionRegister, ToldSession } from './own-sessions.js';
export { wireError } from './wire-error.js';
