/** The admin listener: REST and a Postgres database, over `src/ask/operating/`. */
export { type AdminHttp, type AdminParts, adminBesideRest, createAdminHttp } from './http.js';
export type { ProcessConfiguration } from './show.js';
export { ADMIN_DATABASE, createAdminWire } from './wire.js';
