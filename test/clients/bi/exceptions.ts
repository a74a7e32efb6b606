import type { Outcome } from './grade.js';

/**
 * A difference that is not a fault: the catalog's engine is Postgres 18, says that it is 14, and stands beside a
 * Postgres 15 whose cluster has databases and roles of its own. What an exception does not name is still compared.
 */
export interface Exception {
  readonly why: string;
  /** Of the statements that it is for. */
  readonly pattern: RegExp;
  /** Rows, as JSON, that are left out on both sides. */
  readonly rows?: RegExp;
  /** Field names and types, as JSON, that are taken for one another: the first match becomes the second text. */
  readonly fields?: readonly [RegExp, string];
  /** The order is by OIDs of the server's own. */
  readonly unordered?: true;
  /** Of data queries too. */
  readonly data?: true;
  /** True if it depends on the rest of the cluster whether it shows, so that it counts each time. */
  readonly always?: true;
}

export const EXCEPTIONS: readonly Exception[] = [
  {
    why: 'a cast to varchar is described as text, as docs/osl-sql.md says',
    pattern: /\b(varchar|character varying)\b/i,
    data: true,
    fields: [/,1043(?:,-?\d+)?\]/g, ',25,-1]'],
  },
  {
    why: 'a whole row is described as text, as docs/osl-sql.md says',
    pattern: /^(with d as .*)?select (c|customer|d|v|s|row\(.*\)|c\.id, s)(, (o|id|\(id, region\)))? from /is,
    data: true,
    fields: [/,(2249|[12]\d{4}),-1\]/g, ',25,-1]'],
  },
  {
    why: 'objects of the system itself come and go with versions',
    pattern: /pg_catalog\.(pg_class|pg_attribute|pg_proc|pg_type|pg_cast)\b/i,
    rows: /"(pg_catalog|pg_toast|information_schema)"|"_?(pg|osl)_\w+"|"bytea","integer"|"integer","bytea"/,
  },
  {
    why: 'key words come with versions, and are one row',
    pattern: /pg_get_keywords\(\) where word <> all/i,
    rows: /^/,
  },
  {
    why: 'the version',
    pattern: /^select (pg_catalog\.)?version\(\)$|'server_version'/i,
    rows: /^\["(PostgreSQL )?1\d\.\d+[ "]/,
  },
  {
    why: 'a plan is in the words of a version',
    pattern: /^explain/i,
    rows: /^/,
  },
  {
    why: 'statistics of a table count no rows, of which some may be hidden',
    pattern: /n_tup_ins/,
    rows: /^/,
  },
  {
    why: 'types of the system itself, and their ranges',
    pattern: /^with ranges as/i,
    rows: /^\["_?[a-z]/,
    unordered: true,
  },
  {
    why: 'objects of the system itself, one JSON each',
    pattern: /static\/catalogs\.html/,
    rows: /namespaceName\\":\\"(pg_catalog|information_schema)|\\"kind\\":\\"(attribute|type|extension)/,
  },
  {
    why: 'databases and roles of the cluster, not of the catalog',
    pattern: /pg_catalog\.pg_(database d|roles r)/,
    always: true,
    rows: /^\["(osl|template0|template1|osl_reader|osl_settings|pg_\w+)"/,
  },
  {
    why: 'types of the system itself, ordered by OIDs that a server gives out',
    pattern: /group by b\.oid, b\.typarray\s+order by b\.oid/,
    rows: /^\["#"/,
    unordered: true,
  },
  {
    why: 'a column of the system that is narrower since Postgres 17',
    pattern: /stxstattarget|attstattarget/,
    fields: [/stattarget",21/, 'stattarget",23'],
  },
  {
    why: 'the engine has no ICU collations',
    pattern: /pg_collation c, pg_catalog\.pg_namespace/,
    rows: /"icu"/,
  },
  {
    why: 'pg_database has other columns since Postgres 17',
    pattern: /db\.\* FROM pg_catalog\.pg_database db WHERE 1 = 0/,
    fields: [/\["dathasloginevt",16\],|\["(datlocale|daticurules|daticulocale)",25\],/g, ''],
  },
];

/** Returns the rest of an outcome under an exception. */
export function under(exception: Exception, outcome: Outcome): Outcome {
  if (outcome.kind === 'error') return outcome;
  const { rows, fields, unordered } = exception;
  const left = rows === undefined ? outcome.rows : outcome.rows.filter((row) => !rows.test(row));
  return {
    kind: 'rows',
    fields: fields === undefined ? outcome.fields : outcome.fields.replace(...fields),
    rows: unordered === true ? [...left].sort() : left,
  };
}
