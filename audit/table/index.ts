/** The audit log in Postgres tables, in the schema `osl_audit`. */
export { gatewayGrants, maintenanceGrants, readerGrants, SCHEMA } from './schema.js';
export { announceTableRead, newestInTable, recordsAfter, searchTable, tailTable } from './search.js';
export { connectTable, type TableSession, type TableUrl, tableSource, writersIn } from './source.js';
export { TableStore } from './store.js';
