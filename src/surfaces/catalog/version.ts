/**
 * The version that the catalog gives as its own; the wire's ParameterStatus says the same. The engine is Postgres
 * 18, but clients take that for licence to ask for columns that psql 15 and 17 then do not find.
 */
export const CATALOG_VERSION = '14.18';
