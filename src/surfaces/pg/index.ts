/** The Postgres frontend: sessions of `wire/` in front of the spine. */
export { createPgFrontend, DATABASE, type PgOptions } from './frontend.js';
