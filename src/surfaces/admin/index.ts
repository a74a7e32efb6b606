/** The admin listener: REST and Postgres protocol front ends for `src/ask/operating/`. */
export { type AdminHttp, type AdminParts, adminBesideRest, createAdminHttp } from './http.js';
export type { ProcessConfiguration } from './show.js';
export { ADMIN_DATABASE, createAdminWire } from './wire.js';
