/**
 * Version that the catalog and ParameterStatus report. The engine is Postgres 18, but clients that see 18 query
 * columns which psql 15 and 17 then do not find.
 */
export const CATALOG_VERSION = '14.18';
