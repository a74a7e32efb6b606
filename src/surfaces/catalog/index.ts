/** `pg_catalog` and `information_schema` for BI tools, answered by a Postgres without data. */

export type { CatalogDoor, CatalogSettings } from './ask.js';
export {
  askCatalog,
  type CatalogDelivery,
  type CatalogQuestion,
  describeCatalog,
  refuseLane,
} from './ask.js';
export { type CatalogOptions, Catalogs } from './catalogs.js';
export { classify, type StatementLane } from './classify.js';
export { type CatalogModel, modelOf } from './model.js';
export {
  type CatalogAsked,
  type CatalogPart,
  CatalogServer,
  type CatalogTold,
  RemoteCatalogs,
} from './remote.js';
export type { BackendReply, ReplyReport } from './reply.js';
export { CatalogFault } from './reply.js';
export { CATALOG_VERSION } from './roles.js';
export type { SettingChange } from './session-signals.js';
export {
  type CatalogCursor,
  type CatalogSession,
  type CatalogStatement,
  namesSessions,
  type SessionSignal,
} from './session-signals.js';
