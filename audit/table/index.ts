/** The audit log in Postgres tables, in the schema `osl_audit`. */

export {
  announceTableRead,
  connectTable,
  newestInTable,
  recordsAfter,
  searchTable,
  type TableSession,
  type TableUrl,
  tableSource,
  tailTable,
  writersIn,
} from './reader.js';
export { gatewayGrants, maintenanceGrants, readerGrants, SCHEMA } from './schema.js';
export { TableStore } from './store.js';
