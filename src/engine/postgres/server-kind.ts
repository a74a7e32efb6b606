import { formsOf, type QueryError, type SqlForm } from 'osl-compiler';
import type { UpstreamError } from '../upstream-report.js';
import { citusRefusal } from './citus-refusals.js';

/** Servers that speak the Postgres protocol but need different treatment by the gateway. */
export type ServerKind = 'postgres' | 'citus' | 'cockroachdb' | 'yugabytedb' | 'aurora';

interface ServerKindNotes {
  /** Display name. */
  readonly name: string;
  /** Syntax forms missing from its documented grammar or answered wrongly, which are refused before sending. */
  readonly missing: ReadonlySet<SqlForm>;
  /** Syntax forms that the server itself refuses in some queries which read several nodes (E0531). */
  readonly partly: ReadonlySet<SqlForm>;
  /** True if this gateway's tests run on it. */
  readonly tested: boolean;
  /** The supported operators; null if they are those of Postgres. */
  readonly operators: ReadonlySet<string> | null;
}

const NONE: ReadonlySet<SqlForm> = new Set();

/** Properties of each kind, from its documentation and, for Citus, from tests. Sources: docs/decisions/0110-several-servers-behind-one.md. */
const DOCUMENTED: Readonly<Record<ServerKind, ServerKindNotes>> = {
  postgres: { name: 'PostgreSQL', missing: NONE, partly: NONE, tested: true, operators: null },
  aurora: { name: 'Aurora PostgreSQL', missing: NONE, partly: NONE, tested: false, operators: null },
  // The grammar in its documentation is an excerpt, but the parser is Postgres' own.
  yugabytedb: { name: 'YugabyteDB', missing: NONE, partly: NONE, tested: false, operators: null },
  citus: {
    name: 'Citus',
    // Citus 13.2 drops WITH TIES in many queries over several shards, and so returns too few rows.
    missing: new Set(['FETCH … WITH TIES']),
    partly: new Set(['GROUPING SETS', 'WITH RECURSIVE', 'a subquery', 'LATERAL']),
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
    partly: NONE,
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

/** Recognizes a server by its features, or else by its version text. */
export function serverKind({ version, citus, aurora }: ServerReport): ServerKind {
  if (version.startsWith('CockroachDB')) return 'cockroachdb';
  if (citus) return 'citus';
  if (aurora) return 'aurora';
  return /-YB-\d/.test(version) ? 'yugabytedb' : 'postgres';
}

/** A syntax form in `sql` that the server lacks; null if there is none. */
export function lackingFor(kind: ServerKind, sql: string): string | null {
  const { missing, operators } = DOCUMENTED[kind];
  if (missing.size === 0 && operators === null) return null;
  const used = formsOf(sql);
  const form = [...used.forms].find((one) => missing.has(one));
  if (form !== undefined) return form;
  const operator = operators === null ? undefined : [...used.operators].find((one) => !operators.has(one));
  return operator === undefined ? null : `the operator \`${operator}\``;
}

/** Explains an error by which a server of this kind refuses a query; null for every other error. */
export function refusalOf(
  kind: ServerKind,
  error: Pick<UpstreamError, 'sqlstate' | 'message'>,
): QueryError | null {
  return kind === 'citus' ? citusRefusal(error) : null;
}

/** Warnings about a server that is not PostgreSQL itself. */
export function kindWarnings(kind: ServerKind): readonly string[] {
  const { name, missing, partly, tested } = DOCUMENTED[kind];
  if (kind === 'postgres') return [];
  const untested = tested ? '' : ', on which this gateway was not tried';
  const lacks =
    missing.size === 0 ? '' : `; refused, as it does not support it (E0528): ${[...missing].join(', ')}`;
  const some =
    partly.size === 0
      ? ''
      : `; over several shards it refuses some queries with ${[...partly].join(', ')} (E0531)`;
  return [`the server is ${name}${untested}${lacks}${some}`];
}
