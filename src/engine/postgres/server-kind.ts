import { formsOf, type SqlForm } from 'osl-compiler';

/** Servers with the protocol of Postgres that the gateway distinguishes. */
export type ServerKind = 'postgres' | 'citus' | 'cockroachdb' | 'yugabytedb' | 'aurora';

/** Documented properties of a kind of server. */
interface ServerKindNotes {
  /** As its users call it. */
  readonly name: string;
  /** Forms that its documented grammar does not have: refused before they are sent. */
  readonly missing: ReadonlySet<SqlForm>;
  /** Forms that it takes where one of its nodes can answer, and refuses by itself elsewhere (0A000). */
  readonly partly: ReadonlySet<SqlForm>;
  /** Operators that its grammar has; null for those of Postgres. */
  readonly operators: ReadonlySet<string> | null;
}

const NONE: ReadonlySet<SqlForm> = new Set();

/** Pages and days: docs/decisions/0110-several-servers-behind-one.md. */
const DOCUMENTED: Readonly<Record<ServerKind, ServerKindNotes>> = {
  postgres: { name: 'PostgreSQL', missing: NONE, partly: NONE, operators: null },
  aurora: { name: 'Aurora PostgreSQL', missing: NONE, partly: NONE, operators: null },
  // The grammar in its documentation is an excerpt; the parser is that of Postgres.
  yugabytedb: { name: 'YugabyteDB', missing: NONE, partly: NONE, operators: null },
  citus: {
    name: 'Citus',
    missing: NONE,
    partly: new Set(['GROUPING SETS', 'WITH RECURSIVE', 'TABLESAMPLE', 'a subquery', 'LATERAL', 'FULL JOIN']),
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
    operators: new Set(
      (
        '+ - * / % ^ # & | ~ < > = <= >= <> << >> || |/ ||/ ? ?| ?& @> <@ -> ->> #> #>> #- && @@ ~* !~ !~* ' +
        '~~ !~~ ~~* !~~* <-> <=> <#> <<= >>='
      ).split(' '),
    ),
  },
};

/** Properties that a server reports. */
export interface ServerReport {
  /** `version()` */
  readonly version: string;
  readonly citus: boolean;
  readonly aurora: boolean;
}

/** Told by what a server has, and by its own words where it has nothing else to be told by. */
export function serverKind({ version, citus, aurora }: ServerReport): ServerKind {
  if (version.startsWith('CockroachDB')) return 'cockroachdb';
  if (citus) return 'citus';
  if (aurora) return 'aurora';
  return /-YB-\d/.test(version) ? 'yugabytedb' : 'postgres';
}

/** Feature of a statement that a kind of server lacks; null if none. */
export function lackingFor(kind: ServerKind, sql: string): string | null {
  const { missing, operators } = DOCUMENTED[kind];
  if (missing.size === 0 && operators === null) return null;
  const used = formsOf(sql);
  const form = [...used.forms].find((one) => missing.has(one));
  if (form !== undefined) return form;
  const operator = operators === null ? undefined : [...used.operators].find((one) => !operators.has(one));
  return operator === undefined ? null : `the operator \`${operator}\``;
}

/** Note for the operator about a server that the gateway was never run on. */
export function kindWarnings(kind: ServerKind): readonly string[] {
  const { name, missing, partly } = DOCUMENTED[kind];
  if (kind === 'postgres') return [];
  const lacks =
    missing.size === 0 ? '' : `; refused, as its grammar lacks it (E0528): ${[...missing].join(', ')}`;
  const some =
    partly.size === 0 ? '' : `; it answers only in part, by its documentation: ${[...partly].join(', ')}`;
  return [`the server is ${name}, on which this gateway was not tried${lacks}${some}`];
}
