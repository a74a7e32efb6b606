import { identifier, quoteLiteral, type Relation } from 'osl-compiler';
import { type Sql, sql, sqlJoin, sqlName, sqlTable } from '../../../src/base/sql.js';
import type { SystemEngine, UpstreamFailure } from '../../../src/engine/index.js';
import { parseAnswer } from '../../answer.js';
import { postQuery } from '../../client.js';
import { problemOf } from '../../reply.js';
import { type ComparedCaller, sessionSettings } from './callers.js';

/** Keys of the rows that a caller sees, each as JSON; or why they are not known. */
export type VisibleRows =
  | { readonly kind: 'rows'; readonly keys: ReadonlySet<string> }
  | { readonly kind: 'unknown'; readonly reason: string };

/** A row that is compared, by its key. */
export interface SampledRow {
  /** The key as the database writes a JSON array of its texts. */
  readonly key: string;
  /** Texts of the columns of the key. */
  readonly values: readonly string[];
}

/**
 * Keys of some rows of a table, the same ones as long as the table has them; of fewer rows if the login does not see all.
 */
export async function sampledRows(
  system: SystemEngine,
  relation: Relation,
  size: number,
): Promise<readonly SampledRow[]> {
  const key = keyText(relation);
  const rows = await system.query(
    sql`select ${key} as key from ${sqlTable(relation)} order by pg_catalog.md5(${key}) limit $1`,
    [size],
  );
  return rows.map((row) => {
    const text = String(row['key']);
    const values: unknown = JSON.parse(text);
    return { key: text, values: Array.isArray(values) ? values.map(String) : [] };
  });
}

function keyText(relation: Relation): Sql {
  const columns = sqlJoin(keyColumns(relation).map((column) => sql`${sqlName(column.physical)}::text`));
  return sql`json_build_array(${columns})::text`;
}

/** Asks the database, as the caller's role with the caller's settings. Writes nothing. @param sample rows that count; null: all */
export async function rowsUnderRowSecurity(
  system: SystemEngine,
  relation: Relation,
  caller: ComparedCaller,
  most: number,
  sample: readonly SampledRow[] | null,
): Promise<VisibleRows> {
  const key = keyText(relation);
  const keys = sample?.map((row) => row.key) ?? null;
  try {
    return await system.transaction(async (session) => {
      await session.script(sql`set transaction read only`);
      for (const [name, value] of sessionSettings(caller))
        await session.query(sql`select pg_catalog.set_config($1, $2, true)`, [name, value]);
      await session.script(sql`set local role ${sqlName(caller.role)}`);
      const rows = await session.query(
        sql`select ${key} as key from ${sqlTable(relation)} where $2::text[] is null or ${key} = any ($2) limit $1`,
        [most + 1, keys],
      );
      return visible(
        rows.map((row) => JSON.stringify(JSON.parse(String(row['key'])))),
        most,
      );
    });
  } catch (error) {
    if (!isUpstream(error)) throw error;
    // A policy that fails shows no row, and says so to the caller.
    return { kind: 'unknown', reason: `the database fails: ${error.message} (${error.sqlstate})` };
  }
}

function isUpstream(error: unknown): error is UpstreamFailure {
  return error instanceof Error && 'sqlstate' in error;
}

/** Most keys in one question to the gateway. */
const KEYS = 200;

/** Asks the gateway. @param token of a subject with the caller's attributes. @param sample rows that count; null: all */
export async function rowsOfGateway(
  url: string,
  token: string,
  relation: Relation,
  most: number,
  sample: readonly SampledRow[] | null,
): Promise<VisibleRows> {
  if (sample === null) return askGateway(url, token, relation, most, '');
  const keys = new Set<string>();
  for (let from = 0; from < sample.length; from += KEYS) {
    const where = ` where ${sample
      .slice(from, from + KEYS)
      .map((row) => keyCondition(row, relation))
      .join(' or ')}`;
    const part = await askGateway(url, token, relation, most, where);
    if (part.kind === 'unknown') return part;
    for (const key of part.keys) keys.add(key);
  }
  return { kind: 'rows', keys };
}

function keyCondition({ values }: SampledRow, relation: Relation): string {
  const parts = keyColumns(relation).map(
    (column, i) => `${identifier(column.name)}::text = ${quoteLiteral(values[i] ?? '')}`,
  );
  return `(${parts.join(' and ')})`;
}

async function askGateway(
  url: string,
  token: string,
  relation: Relation,
  most: number,
  where: string,
): Promise<VisibleRows> {
  const columns = keyColumns(relation).map((column, i) => `${identifier(column.name)}::text as k${i}`);
  const from = `osl.entities.${identifier(relation.name)}`;
  const osql = `select ${columns.join(', ')} from ${from}${where} limit ${most + 1}`;
  const reply = await postQuery(url, token, { osql });
  const answer = reply.ok ? parseAnswer(reply.body) : null;
  if (answer?.truncated === true)
    return { kind: 'unknown', reason: 'the answer is larger than the gateway gives at once' };
  if (answer !== null)
    return visible(
      answer.rows.map((row) => JSON.stringify(columns.map((_, i) => row[`k${i}`] ?? null))),
      most,
    );
  const { code, detail } = problemOf(reply.body, reply.status);
  // Without a grant there is no such entity.
  if (code === 'E0512' || code === 'E2101' || code === 'E2102') return visible([], most);
  return { kind: 'unknown', reason: `the gateway refuses: ${code} ${detail}` };
}

function visible(keys: readonly string[], most: number): VisibleRows {
  if (keys.length > most) return { kind: 'unknown', reason: `more than ${most} rows (--rows)` };
  return { kind: 'rows', keys: new Set(keys) };
}

function keyColumns(relation: Relation) {
  return relation.columns.filter((column) => relation.primaryKey.includes(column.name));
}
