import { type Column, identifier, quoteLiteral, type Relation, type TypeName } from 'osl-compiler';
import { type Sql, sql, sqlJoin, sqlName, sqlTable } from '../../../src/base/sql.js';
import type { SystemEngine } from '../../../src/engine/index.js';
import { parseAnswer } from '../../answer.js';
import { postQuery } from '../../client.js';
import { problemOf } from '../../reply.js';
import type { TableView } from '../import/view-plan.js';
import { type ComparedCaller, isUpstream, sessionSettings } from './callers.js';

/** The rows visible to a caller, each as JSON of its compared columns, or the reason why the rows are unknown. */
export type VisibleRows =
  | { readonly kind: 'rows'; readonly keys: ReadonlySet<string> }
  | { readonly kind: 'unknown'; readonly reason: string };

/** A row to compare, identified by its key. */
export interface SampledRow {
  /** The key as a JSON array of its columns' texts, spelled as Postgres prints it. */
  readonly key: string;
  /** Key values as text, one for each column of the key. */
  readonly values: readonly string[];
}

/**
 * Returns the keys of up to `size` rows of a table, chosen by hash, so that a later call returns the same rows if they
 * still exist. Fewer are returned if the login does not see all rows.
 *
 * @param compared the key columns of the entity
 */
export async function sampledRows(
  system: SystemEngine,
  compared: ComparedColumns,
  size: number,
): Promise<readonly SampledRow[]> {
  const key = rowText(compared);
  const rows = await system.query(
    sql`select ${key} as key from ${sqlTable(compared.source)} order by pg_catalog.md5(${key}) limit $1`,
    [size],
  );
  return rows.map((row) => {
    const text = String(row['key']);
    const values: unknown = JSON.parse(text);
    return { key: text, values: Array.isArray(values) ? values.map(String) : [] };
  });
}

function rowText({ columns }: ComparedColumns): Sql {
  const texts = sqlJoin(columns.map(({ inDatabase }) => sql`${sqlName(inDatabase)}::text`));
  return sql`json_build_array(${texts})::text`;
}

/** Queries the database as the caller, read-only. @param sample rows to compare; null: all rows */
export async function rowsUnderRowSecurity(
  system: SystemEngine,
  compared: ComparedColumns,
  caller: ComparedCaller,
  most: number,
  sample: readonly SampledRow[] | null,
): Promise<VisibleRows> {
  const text = rowText(compared);
  const keys = sample?.map((row) => row.key) ?? null;
  try {
    return await system.transaction(async (session) => {
      await session.script(sql`set transaction read only`);
      for (const [name, value] of sessionSettings(caller))
        await session.query(sql`select pg_catalog.set_config($1, $2, true)`, [name, value]);
      await session.script(sql`set local role ${sqlName(caller.role)}`);
      const rows = await session.query(
        sql`select ${text} as key from ${sqlTable(compared.source)} where $2::text[] is null or ${text} = any ($2) limit $1`,
        [most + 1, keys],
      );
      return visible(
        rows.map((row) => JSON.stringify(JSON.parse(String(row['key'])))),
        compared,
        most,
      );
    });
  } catch (error) {
    if (!isUpstream(error)) throw error;
    // If a policy fails, the caller gets an error and sees no rows.
    return { kind: 'unknown', reason: `the database fails: ${error.message} (${error.sqlstate})` };
  }
}

/** Maximum number of keys in one query to the gateway. */
const KEYS = 200;

/** Queries the gateway with the caller's token. @param sample rows to compare; null: all rows */
export async function rowsOfGateway(
  url: string,
  token: string,
  compared: ComparedColumns,
  most: number,
  sample: readonly SampledRow[] | null,
): Promise<VisibleRows> {
  if (sample === null) return askGateway(url, token, compared, most, '');
  const keys = new Set<string>();
  for (let from = 0; from < sample.length; from += KEYS) {
    const where = ` where ${sample
      .slice(from, from + KEYS)
      .map((row) => keyCondition(row, compared))
      .join(' or ')}`;
    const part = await askGateway(url, token, compared, most, where);
    if (part.kind === 'unknown') return part;
    for (const key of part.keys) keys.add(key);
  }
  return { kind: 'rows', keys };
}

function keyCondition({ values }: SampledRow, { columns }: ComparedColumns): string {
  const parts = columns.map(({ name }, i) => `${identifier(name)}::text = ${quoteLiteral(values[i] ?? '')}`);
  return `(${parts.join(' and ')})`;
}

async function askGateway(
  url: string,
  token: string,
  compared: ComparedColumns,
  most: number,
  where: string,
): Promise<VisibleRows> {
  const columns = compared.columns.map(({ name }, i) => `${identifier(name)}::text as k${i}`);
  const from = `osl.entities.${identifier(compared.entity)}`;
  const osql = `select ${columns.join(', ')} from ${from}${where} limit ${most + 1}`;
  const reply = await postQuery(url, token, { osql });
  const answer = reply.ok ? parseAnswer(reply.body) : null;
  if (answer?.truncated === true)
    return { kind: 'unknown', reason: 'the answer is larger than the gateway gives at once' };
  if (answer !== null)
    return visible(
      answer.rows.map((row) => JSON.stringify(columns.map((_, i) => row[`k${i}`] ?? null))),
      compared,
      most,
    );
  const { code, detail } = problemOf(reply.body, reply.status);
  // Without a grant, the entity does not exist for the caller.
  if (code === 'E0512' || code === 'E2101' || code === 'E2102') return visible([], compared, most);
  return { kind: 'unknown', reason: `the gateway refuses: ${code} ${detail}` };
}

function visible(rows: readonly string[], { isKey }: ComparedColumns, most: number): VisibleRows {
  if (rows.length > most) return { kind: 'unknown', reason: `more than ${most} rows (--rows)` };
  return { kind: 'rows', keys: new Set(isKey ? rows : numbered(rows)) };
}

/** Numbers equal rows, so that comparing sets of rows compares their counts too. */
function numbered(rows: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  return rows.map((row) => {
    const count = (counts.get(row) ?? 0) + 1;
    counts.set(row, count);
    return `${row} ${count}`;
  });
}

/** The columns by which the rows of an entity are compared with those of its table or view. */
export interface ComparedColumns {
  readonly entity: string;
  /** The table or view in the database. */
  readonly source: { readonly schema: string; readonly table: string };
  readonly columns: readonly { readonly name: string; readonly inDatabase: string }[];
  /** True if the columns are the entity's key; false for other columns, which several rows may share. */
  readonly isKey: boolean;
  /** True if `source` is a view, whose rows may depend on the role that reads it. */
  readonly isOfView: boolean;
}

/** Types whose text format does not depend on session settings. */
const PLAIN: ReadonlySet<TypeName> = new Set(['bool', 'int2', 'int4', 'int8', 'numeric', 'text', 'uuid']);

/**
 * The key of an entity or, if not all of it is visible, its unlabelled columns of `PLAIN` types. Null if there is
 * nothing to compare.
 *
 * @param view the view that the entity represents, if the entity is declared over the view's table; otherwise null
 * @param granted names of the columns that the role may see
 */
export function comparedColumns(
  relation: Relation,
  view: TableView | null,
  granted: ReadonlySet<string>,
): ComparedColumns | null {
  const source = view === null ? relation : { schema: view.view.schema, table: view.view.name };
  const inDatabase = ({ physical }: Column): string | null => {
    if (view === null) return physical;
    const found = view.query.columns.find((column) => column.kind === 'plain' && column.of === physical);
    return found?.name ?? null;
  };
  const usable = relation.columns.flatMap((column) => {
    const there = granted.has(column.name) ? inDatabase(column) : null;
    return there === null ? [] : [{ column, name: column.name, inDatabase: there }];
  });
  const key = usable.filter(({ name }) => relation.primaryKey.includes(name));
  const isKey = key.length > 0 && key.length === relation.primaryKey.length;
  const others = usable.filter(({ column }) => column.sensitivity === null && PLAIN.has(column.type));
  const columns = (isKey ? key : others).map(({ name, inDatabase: there }) => ({ name, inDatabase: there }));
  return columns.length === 0
    ? null
    : { entity: relation.name, source, columns, isKey, isOfView: view !== null };
}
