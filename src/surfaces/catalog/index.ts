/** `pg_catalog` and `information_schema` for BI tools, answered by a Postgres without data. */
export {
  askCatalog,
  type CatalogDelivery,
  type CatalogQuestion,
  describeCatalog,
  refuseLane,
} from './ask.js';
export { CatalogServer } from './catalog-server.js';
export { type CatalogOptions, Catalogs } from './catalogs.js';
export { classify, type StatementLane } from './classify.js';
export type { CatalogDoor, CatalogSettings } from './door.js';
export { CatalogFault } from './fault.js';
export { type CatalogModel, modelOf } from './model.js';
export {
  type CatalogAsked,
  type CatalogPart,
  type CatalogTold,
  RemoteCatalogs,
} from './remote.js';
export type { BackendReply, ReplyReport } from './reply.js';
export {
  type CatalogCursor,
  type CatalogSession,
  type CatalogStatement,
  namesSessions,
  type SessionSignal,
} from './session-signals.js';
export type { SettingChange } from './setting-changes.js';
export { CATALOG_VERSION } from './version.js';
