import { formsOf, type QueryError, queryError, type SqlForm } from 'osl-compiler';
import type { UpstreamError } from '../upstream-report.js';

/** Servers that speak the Postgres protocol but need different treatment by the gateway. */
export type ServerKind = 'postgres' | 'citus' | 'cockroachdb' | 'yugabytedb' | 'aurora';

interface ServerKindNotes {
  /** Display name. */
  readonly name: string;
  /** Syntax forms that the server lacks (by its documentation) or answers wrongly; refused before sending (E0528). */
  readonly missing: ReadonlySet<SqlForm>;
  /** Syntax forms that the server itself refuses in some queries over several nodes (E0531). */
  readonly partial: ReadonlySet<SqlForm>;
  /** True if this gateway's tests run on it. */
  readonly tested: boolean;
  /** The supported operators; null if all operators of Postgres are supported. */
  readonly operators: ReadonlySet<string> | null;
}

const NONE: ReadonlySet<SqlForm> = new Set();

/** Properties of each kind, from its documentation and, for Citus, from tests. Sources: docs/decisions/0110-several-servers-behind-one.md. */
const DOCUMENTED: Readonly<Record<ServerKind, ServerKindNotes>> = {
  postgres: { name: 'PostgreSQL', missing: NONE, partial: NONE, tested: true, operators: null },
  aurora: { name: 'Aurora PostgreSQL', missing: NONE, partial: NONE, tested: false, operators: null },
  // YugabyteDB documents only an excerpt of its grammar, but uses the parser of Postgres.
  yugabytedb: { name: 'YugabyteDB', missing: NONE, partial: NONE, tested: false, operators: null },
  citus: {
    name: 'Citus',
    // Citus 13.2 drops WITH TIES in many queries over several shards, and so returns too few rows.
    missing: new Set(['FETCH … WITH TIES']),
    partial: new Set(['GROUPING SETS', 'WITH RECURSIVE', 'a subquery', 'LATERAL']),
    tested: true,
    operators: null,
  },
  cockroachdb: {
    name: 'CockroachDB',
    missing: new Set([
      'GROUPING SETS',
      'FETCH … WITH TIES',
      'TABLESAMPLE',
      'a sorted DISTINCT aggregate',
      'a variadic call',
      'SQL/JSON',
      'XML',
    ]),
    partial: NONE,
    tested: false,
    operators: new Set(
      (
        '+ - * / % ^ # & | ~ < > = <= >= <> << >> || |/ ||/ ? ?| ?& @> <@ -> ->> #> #>> #- && @@ ~* !~ !~* ' +
        '~~ !~~ ~~* !~~* <-> <=> <#> <<= >>='
      ).split(' '),
    ),
  },
};

/** Properties reported by a server. */
export interface ServerReport {
  /** The result of `version()`. */
  readonly version: string;
  readonly citus: boolean;
  readonly aurora: boolean;
}

/** Determines the kind of a server from its version text and the extensions and functions it has. */
export function serverKind({ version, citus, aurora }: ServerReport): ServerKind {
  if (version.startsWith('CockroachDB')) return 'cockroachdb';
  if (citus) return 'citus';
  if (aurora) return 'aurora';
  return /-YB-\d/.test(version) ? 'yugabytedb' : 'postgres';
}

/** Returns a syntax form or an operator in `sql` that the server lacks; null if the server supports all of them. */
export function lackingFor(kind: ServerKind, sql: string): string | null {
  const { missing, operators } = DOCUMENTED[kind];
  if (missing.size === 0 && operators === null) return null;
  const used = formsOf(sql);
  const form = [...used.forms].find((name) => missing.has(name));
  if (form !== undefined) return form;
  const operator = operators === null ? undefined : [...used.operators].find((name) => !operators.has(name));
  return operator === undefined ? null : `the operator \`${operator}\``;
}

/** Returns an error that explains why a server of this kind refused a query; null for any other upstream error. */
export function refusalOf(
  kind: ServerKind,
  error: Pick<UpstreamError, 'sqlstate' | 'message'>,
): QueryError | null {
  const refusal = kind === 'citus' ? listedRefusal(error.sqlstate, error.message) : null;
  return refusal === null ? null : queryError('shardsRefused', { ...refusal });
}

/** Warnings about a server that is not PostgreSQL itself. */
export function kindWarnings(kind: ServerKind): readonly string[] {
  const { name, missing, partial, tested } = DOCUMENTED[kind];
  if (kind === 'postgres') return [];
  const untested = tested ? '' : ', on which this gateway was not tried';
  const missingText =
    missing.size === 0 ? '' : `; refused, as it does not support it (E0528): ${[...missing].join(', ')}`;
  const partialText =
    partial.size === 0
      ? ''
      : `; over several shards it refuses some queries with ${[...partial].join(', ')} (E0531)`;
  return [`the server is ${name}${untested}${missingText}${partialText}`];
}

/** Explanation of a refusal by Citus and its remedy, in fixed words of the gateway that contain no data. */
interface ShardRefusal {
  readonly reason: string;
  readonly hint: string;
}

const GROUPINGS: ShardRefusal = {
  reason: 'GROUPING SETS, ROLLUP, CUBE and GROUPING need rows of several shards',
  hint: 'filter on one value of the distribution column, such as one tenant, or send one GROUP BY for each grouping',
};
const RECURSION: ShardRefusal = {
  reason: 'WITH RECURSIVE reads rows of several shards',
  hint: 'filter on one value of the distribution column in each part of the recursion',
};
const JOIN: ShardRefusal = {
  reason: 'tables or subqueries are combined on other columns than the distribution column',
  hint: 'add the distribution column to the condition that combines them, or filter on one value of it, such as one tenant',
};
const CORRELATED: ShardRefusal = {
  reason:
    'a correlated subquery reads distributed rows for each row of a reference table, a list of values, a function or a subquery',
  hint: 'write it as a join, or filter on one value of the distribution column',
};
const LATERAL: ShardRefusal = {
  reason: 'an outer LATERAL join reads distributed rows for each row of something that is not distributed',
  hint: 'join a grouped subquery instead, or filter on one value of the distribution column',
};
const SUBQUERY: ShardRefusal = {
  reason: 'a subquery needs rows of several shards before the outer query can continue',
  hint: 'group or partition by the distribution column in it, or filter on one value of that column',
};
const AGGREGATE: ShardRefusal = {
  reason: 'an aggregate cannot be combined from its parts in several shards',
  hint: 'group by the distribution column, or filter on one value of it',
};
const COUNT: ShardRefusal = {
  reason: 'LIMIT or OFFSET is a subquery',
  hint: 'write the number, or send it as a parameter',
};
const LOCAL: ShardRefusal = {
  reason: 'a distributed table is joined with a table that only the coordinator has',
  hint: 'read the other table in a WITH query; the operator can make it a reference table',
};
const SET_OPERATION: ShardRefusal = {
  reason: 'the parts of a UNION, INTERSECT or EXCEPT lie in several shards',
  hint: 'select the distribution column at the same position in each part, or filter on one value of it',
};
const COLUMNLESS: ShardRefusal = {
  reason: 'a table is joined of which no column is read',
  hint: 'read a column of each table, as in `count(a.id)`',
};
const SAMPLE: ShardRefusal = {
  reason: 'TABLESAMPLE of a single shard',
  hint: 'leave TABLESAMPLE out, or leave out the filter on the distribution column',
};
const PSEUDOCONSTANT: ShardRefusal = {
  reason: 'a query with an outer join has a condition that reads no column of its tables',
  hint: 'leave that condition out, or write it with a column',
};
const OTHER: ShardRefusal = {
  reason: 'its planner has no plan for this form of query',
  hint: 'filter on one value of the distribution column, or write the query in simpler parts',
};
const VALUELESS: ShardRefusal = {
  reason: 'its planner has no plan that is made without the values of parameters',
  hint: 'the plan of a statement with parameters cannot be shown; an operator can run EXPLAIN with values at the coordinator',
};

const correlatedWith = (what: string): readonly [string, ShardRefusal] => [
  `correlated subqueries are not supported when the FROM clause contains ${what}`,
  CORRELATED,
];
const lateralTo = (what: string): readonly [string, ShardRefusal] => [
  `cannot perform a lateral outer join when a distributed subquery references ${what}`,
  LATERAL,
];
const cannotRun = (what: string, refusal: ShardRefusal): readonly [string, ShardRefusal] => [
  `could not run distributed query with ${what}`,
  refusal,
];

/**
 * Messages of Citus 13.2 (SQLSTATE 0A000) for SELECT. Each is a constant of its planner, so none can contain a value; a
 * message that is not listed is never shown.
 */
const REFUSALS: ReadonlyMap<string, ShardRefusal> = new Map([
  cannotRun('GROUPING SETS, CUBE, or ROLLUP', GROUPINGS),
  cannotRun('GROUPING', GROUPINGS),
  cannotRun('RECURSIVE', RECURSION),
  cannotRun('UNION, INTERSECT, or EXCEPT', SET_OPERATION),
  cannotRun('common table expressions', SUBQUERY),
  cannotRun('complex table expressions', OTHER),
  cannotRun('join types other than INNER or OUTER JOINS', JOIN),
  ['recursive CTEs are only supported when they contain a filter on the distribution column', RECURSION],
  [
    'complex joins are only supported when all distributed tables are co-located and joined on their distribution columns',
    JOIN,
  ],
  [
    'recursive complex joins are only supported when all distributed tables are co-located and joined on their distribution columns',
    JOIN,
  ],
  [
    'complex joins are only supported when all distributed tables are joined on their distribution columns with equal operator',
    JOIN,
  ],
  correlatedWith('a reference table'),
  correlatedWith('a CTE or subquery'),
  correlatedWith('a set returning function'),
  correlatedWith('a subquery without FROM'),
  correlatedWith('VALUES'),
  correlatedWith('JSON_TABLE'),
  lateralTo('a reference table'),
  lateralTo('a table function'),
  lateralTo('a subquery without FROM'),
  lateralTo('complex subqueries, CTEs or local tables'),
  lateralTo('VALUES'),
  ['cannot push down this subquery', SUBQUERY],
  ['cannot push down subquery on the target list', SUBQUERY],
  ['CTEs that refer to other subqueries are not supported in multi-shard queries', SUBQUERY],
  ['Subqueries in HAVING cannot refer to outer query', SUBQUERY],
  ['cannot handle complex subqueries when the router executor is disabled', SUBQUERY],
  [
    'cannot pushdown the subquery since not all subqueries in the UNION have the partition column in the same position',
    SET_OPERATION,
  ],
  ['subquery in LIMIT is not supported in multi-shard queries', COUNT],
  ['subquery in OFFSET is not supported in multi-shard queries', COUNT],
  ['cannot compute aggregate (distinct)', AGGREGATE],
  ['cannot compute count (distinct)', AGGREGATE],
  ['array_agg with order by is unsupported', AGGREGATE],
  ['direct joins between distributed and local tables are not supported', LOCAL],
  ['cannot perform distributed planning on this query', OTHER],
  ['could not create distributed plan', VALUELESS],
]);

/** `unsupported aggregate function NAME`: safe to match, since NAME is a function that occurs in the statement. */
const UNSUPPORTED_AGGREGATE = /^unsupported aggregate function \w+$/;

/** Constant messages with other SQLSTATEs, of Citus's planner or about SQL that Citus generated for its workers. */
const OTHER_SQLSTATES: ReadonlyMap<string, readonly [sqlstate: string, ShardRefusal]> = new Map([
  ['a column definition list is required for functions returning "record"', ['42601', COLUMNLESS]],
  ['argument of TABLESAMPLE must be type real, not type text', ['42804', SAMPLE]],
  ['the query contains a join that requires repartitioning', ['XX000', JOIN]],
  ['PlaceHolderVar found where not expected', ['XX000', OTHER]],
  [
    'Distributed queries with outer joins and pseudoconstant quals are not supported in PG15 and PG16.',
    ['XX000', PSEUDOCONSTANT],
  ],
]);

function listedRefusal(sqlstate: string, message: string): ShardRefusal | null {
  const other = OTHER_SQLSTATES.get(message);
  if (other?.[0] === sqlstate) return other[1];
  if (sqlstate !== '0A000') return null;
  return REFUSALS.get(message) ?? (UNSUPPORTED_AGGREGATE.test(message) ? AGGREGATE : null);
}
