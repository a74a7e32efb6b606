import { readFileSync } from 'node:fs';
import type { Node } from '@pgsql/types';
import { parse, QueryError, splitStatements } from 'osl-compiler';
import { sql, sqlName } from '../../../src/base/sql.js';
import type { SystemEngine } from '../../../src/engine/index.js';
import { systemFault, usage } from '../../exit.js';
import type { CheckedDatabase } from '../database.js';
import { eachNode, relationNames } from '../statement.js';

/** A statement to compare, with the role that ran it. */
export interface GivenStatement {
  readonly text: string;
  /** Role for whose callers the statement is compared; null for every role. */
  readonly role: string | null;
  /** Number of recorded executions; null if they were not counted. */
  readonly calls: number | null;
}

/** Reads statements, separated by semicolons, from a file. @throws Failure */
export function statementsIn(file: string): readonly GivenStatement[] {
  const statements = split(file)
    .map(({ text }) => text.trim().replace(/;$/, '').trim())
    .filter((text) => text !== '');
  if (statements.length === 0) throw usage(`${file} has no statement`);
  return statements.map((text) => ({ text, role: null, calls: null }));
}

function split(file: string) {
  try {
    return splitStatements(readFileSync(file, 'utf8'));
  } catch (error) {
    if (error instanceof QueryError) throw usage(`${file}: ${error.message}`);
    throw usage(systemFault(error) ?? `${file} cannot be read`);
  }
}

const HOW =
  'add pg_stat_statements to shared_preload_libraries, restart the server, run CREATE EXTENSION pg_stat_statements, ' +
  'and let the application run for a while; or give the statements in a file: --statements FILE';

/**
 * Reads the SELECTs of `roles` over tables of the model from pg_stat_statements, longest total time first.
 *
 * @throws Failure with advice if the extension is missing or may not be read
 */
export async function recordedStatements(
  system: SystemEngine,
  database: CheckedDatabase,
  roles: readonly string[],
  isImported: (table: string) => boolean,
  most: number,
): Promise<readonly GivenStatement[]> {
  const [extension] = await system.query(
    sql`select n.nspname as schema from pg_catalog.pg_extension e
        join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_stat_statements'`,
  );
  if (extension === undefined) throw usage(`the database has no extension pg_stat_statements: ${HOW}`);
  const view = sqlName(String(extension['schema']));
  const rows = await system
    .query(
      sql`select s.query, r.rolname as role, s.calls::float8 as calls from ${view}.pg_stat_statements s
          join pg_catalog.pg_roles r on r.oid = s.userid
          join pg_catalog.pg_database d on d.oid = s.dbid and d.datname = pg_catalog.current_database()
          where r.rolname = any ($1) order by s.total_exec_time desc`,
      [roles],
    )
    .catch((error: unknown) => {
      throw unreadable(error);
    });
  const found = rows.map((row) => ({
    text: String(row['query']).trim(),
    role: String(row['role']),
    calls: Number(row['calls']),
  }));
  if (found.length > 0 && found.every(({ text }) => text === HIDDEN))
    throw usage('the texts of pg_stat_statements are hidden from this role: GRANT pg_read_all_stats to it');
  const own = found.filter(({ text }) => readsOnly(text, database, isImported)).slice(0, most);
  if (own.length > 0) return own;
  throw usage(
    `pg_stat_statements has no SELECT of ${roles.join(', ')} over imported tables: --statements FILE gives some`,
  );
}

function unreadable(error: unknown): unknown {
  if (!(error instanceof Error) || !('sqlstate' in error)) return error;
  const how =
    error.sqlstate === '42501' ? 'GRANT pg_read_all_stats to the role, and USAGE on its schema' : HOW;
  return usage(`pg_stat_statements cannot be read (${error.message}): ${how}`);
}

const HIDDEN = '<insufficient privilege>';

/** True for a SELECT that neither locks nor writes rows and that reads at least one table of the model. */
function readsOnly(text: string, database: CheckedDatabase, isImported: (table: string) => boolean): boolean {
  const statement = selectIn(text);
  if (statement.kind === 'refused') return false;
  const tables = relationNames(statement.node).flatMap((name) => database.relationNamed(name) ?? []);
  return tables.some((table) => isImported(`${table.schema}.${table.name}`));
}

/** A parsed SELECT, or the reason why a statement may not run. */
export type ParsedSelect =
  | { readonly kind: 'select'; readonly node: Node; readonly offsets: 'original' | 'edited' }
  | { readonly kind: 'refused'; readonly reason: string };

/** Parses a single SELECT that neither locks nor writes rows. Requires `ready()` of osl-compiler. */
export function selectIn(text: string): ParsedSelect {
  try {
    const { node, source } = parse(text);
    if (!('SelectStmt' in node)) return { kind: 'refused', reason: 'it is no SELECT' };
    const writing = new Set<string>();
    eachNode(node, (inner) => {
      for (const kind of WRITING) if (kind in inner) writing.add(kind);
      if (
        'SelectStmt' in inner &&
        (inner.SelectStmt.intoClause ?? inner.SelectStmt.lockingClause) !== undefined
      )
        writing.add('INTO or FOR UPDATE');
    });
    if (writing.size > 0) return { kind: 'refused', reason: 'it writes or locks rows' };
    return { kind: 'select', node, offsets: source.quoted.length === 0 ? 'original' : 'edited' };
  } catch (error) {
    if (error instanceof QueryError) return { kind: 'refused', reason: `it cannot be parsed: ${error.code}` };
    throw error;
  }
}

const WRITING = ['InsertStmt', 'UpdateStmt', 'DeleteStmt', 'MergeStmt'] as const;
