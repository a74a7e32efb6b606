/** `pg_catalog` and `information_schema` for BI tools, answered by a Postgres without data. */

export {
  type CatalogDelivery,
  type CatalogProvider,
  type CatalogRequest,
  type CatalogSettings,
  describeCatalog,
  queryCatalog,
  refuseLane,
} from './catalog-requests.js';
export { type CatalogOptions, Catalogs } from './catalogs.js';
export { classify, type StatementLane } from './classify.js';
export {
  CATALOG_VERSION,
  type CatalogCursor,
  type CatalogStatement,
  mentionsSessions,
  type SessionActivity,
  type SessionSignal,
  type SettingChange,
} from './engine-contract.js';
export { type CatalogModel, modelOf } from './model.js';
export {
  type CatalogModelPart,
  CatalogServer,
  type RemoteCatalogReply,
  type RemoteCatalogRequest,
  RemoteCatalogs,
} from './remote.js';
export { type BackendReply, CatalogFault, type ReplyReport } from './reply.js';
