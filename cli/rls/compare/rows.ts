import { identifier } from 'osl-compiler';
import { sql, sqlJoin, sqlName, sqlTable } from '../../../src/base/sql.js';
import type { SystemEngine, UpstreamFailure } from '../../../src/engine/index.js';
import { parseAnswer } from '../../answer.js';
import { postQuery } from '../../client.js';
import { problemOf } from '../../reply.js';
import { type ComparedCaller, sessionSettings } from './callers.js';
import type { ComparedColumns } from './compared-columns.js';

/** The compared columns of the rows that a caller sees, each as JSON; or why they are not known. */
export type VisibleRows =
  | { readonly kind: 'rows'; readonly keys: ReadonlySet<string> }
  | { readonly kind: 'unknown'; readonly reason: string };

/** Asks the database, as the caller's role with the caller's settings. Writes nothing. */
export async function rowsUnderRowSecurity(
  system: SystemEngine,
  compared: ComparedColumns,
  caller: ComparedCaller,
  most: number,
): Promise<VisibleRows> {
  const columns = sqlJoin(compared.columns.map(({ inDatabase }) => sql`${sqlName(inDatabase)}::text`));
  try {
    return await system.transaction(async (session) => {
      await session.script(sql`set transaction read only`);
      for (const [name, value] of sessionSettings(caller))
        await session.query(sql`select pg_catalog.set_config($1, $2, true)`, [name, value]);
      await session.script(sql`set local role ${sqlName(caller.role)}`);
      const rows = await session.query(
        sql`select json_build_array(${columns})::text as key from ${sqlTable(compared.source)} limit $1`,
        [most + 1],
      );
      return visible(
        rows.map((row) => JSON.stringify(JSON.parse(String(row['key'])))),
        compared,
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

/** Asks the gateway. @param token of a subject with the caller's attributes */
export async function rowsOfGateway(
  url: string,
  token: string,
  compared: ComparedColumns,
  most: number,
): Promise<VisibleRows> {
  const columns = compared.columns.map(({ name }, i) => `${identifier(name)}::text as k${i}`);
  const osql = `select ${columns.join(', ')} from osl.entities.${identifier(compared.entity)} limit ${most + 1}`;
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
  // Without a grant there is no such entity.
  if (code === 'E0512' || code === 'E2101' || code === 'E2102') return visible([], compared, most);
  return { kind: 'unknown', reason: `the gateway refuses: ${code} ${detail}` };
}

function visible(rows: readonly string[], { isKey }: ComparedColumns, most: number): VisibleRows {
  if (rows.length > most) return { kind: 'unknown', reason: `more than ${most} rows (--rows)` };
  return { kind: 'rows', keys: new Set(isKey ? rows : numbered(rows)) };
}

/** Equal rows with numbers, so that their count is compared as well. */
function numbered(rows: readonly string[]): readonly string[] {
  const counts = new Map<string, number>();
  return rows.map((row) => {
    const count = (counts.get(row) ?? 0) + 1;
    counts.set(row, count);
    return `${row} ${count}`;
  });
}
