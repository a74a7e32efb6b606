/** The Postgres frontend: sessions of `wire/` in front of the spine. */
export { createPgFrontend, DATABASE, type PgFrontend, type PgOptions } from './frontend.js';
export type { SessionCounts } from './open-sessions.js';
export type { OwnSessions } from './own-sessions.js';
