/** The audit log in tables of a Postgres, schema `osl_audit`. */
export { gatewayGrants, maintenanceGrants, readerGrants, SCHEMA } from './schema.js';
export { newestInTable, noteTableReading, recordsAfter, searchTable, tailTable } from './search.js';
export { connectTable, type TableSession, type TableUrl } from './session.js';
export { tableSource, writersIn } from './source.js';
export { TableStore } from './store.js';
