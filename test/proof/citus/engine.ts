import pg from 'pg';
import { lackingFor, refusalOf } from '../../../src/engine/postgres/server-kind.js';
import type { Answer, Engine } from '../golden/engine.js';

/** The `sqlstate` of an answer for which the gateway would say that Citus cannot run the query: E0531 or E0528. */
export const REFUSED_BY_CITUS = 'refused by Citus';
const REFUSED: Answer = { oids: [], rows: [], sqlstate: REFUSED_BY_CITUS };

/** Message of each error that is not a fault of a value, for those who have to find out why. */
export const messages = new WeakMap<Answer, string>();

const READER = 'osl_reader';

/** Values as the text that the server sends. */
const TEXT = { getTypeParser: () => (value: string | Buffer) => value.toString() };

/** Distribution column of a table, `reference` for a reference table; null if it stays on the coordinator. */
export type Distribution = (schema: string, table: string) => string | null;

/**
 * A database as an engine of the proofs. After each set-up, new tables are distributed as `distribution` says; null for
 * a database without the extension `citus`.
 */
export async function openServerEngine(
  url: string,
  schemas: readonly string[],
  distribution: Distribution | null = null,
): Promise<Engine> {
  const isCitus = distribution !== null;
  const owner = new pg.Client({ connectionString: url });
  const readerUrl = new URL(url);
  readerUrl.username = READER;
  const reader = new pg.Client({ connectionString: readerUrl.href, types: TEXT });
  await Promise.all([owner.connect(), reader.connect()]);
  for (const schema of schemas)
    await owner.query(`create schema if not exists ${schema}; grant usage on schema ${schema} to ${READER};
      alter default privileges in schema ${schema} grant select on tables to ${READER}`);
  for (const client of [owner, reader])
    await client.query(`set timezone = 'UTC'; set search_path = pg_catalog`);
  await reader.query('set default_transaction_read_only = on');
  return {
    setUp: async (sql) => {
      await owner.query(sql);
      if (distribution !== null) await distribute(owner, schemas, distribution);
    },
    ask: async (text, values) => {
      if (isCitus && lackingFor('citus', text) !== null) return REFUSED;
      try {
        const { fields, rows } = await reader.query<(string | null)[]>({
          text,
          values: [...values],
          rowMode: 'array',
        });
        return { oids: fields.map((f) => f.dataTypeID), rows, sqlstate: null };
      } catch (error) {
        return failed(error);
      }
    },
    close: async () => {
      await Promise.all([owner.end(), reader.end()]);
    },
  };
}

/** Distributes the plain tables of `schemas`, each in a transaction of its own. */
async function distribute(
  owner: pg.Client,
  schemas: readonly string[],
  distribution: Distribution,
): Promise<void> {
  const { rows } = await owner.query<{ schema: string; name: string; shards: number | null }>(
    `select n.nspname as schema, c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
     where c.relkind = 'r' and n.nspname = any ($1) order by 1, 2`,
    [schemas],
  );
  for (const { schema, name } of rows) {
    const column = distribution(schema, name);
    if (column === null || (await isDistributed(owner, `${schema}.${name}`))) continue;
    await owner.query(
      column === 'reference'
        ? `select create_reference_table('${schema}.${name}')`
        : `select create_distributed_table('${schema}.${name}', '${column}')`,
    );
  }
}

async function isDistributed(owner: pg.Client, table: string): Promise<boolean> {
  const { rows } = await owner.query('select from pg_dist_partition where logicalrelid = $1::regclass', [
    table,
  ]);
  return rows.length > 0;
}

/** @throws what is not an error of the server */
function failed(error: unknown): Answer {
  if (!(error instanceof pg.DatabaseError) || error.code === undefined) throw error;
  const { code, message } = error;
  if (refusalOf('citus', { sqlstate: code, message }) !== null) return REFUSED;
  const answer = { oids: [], rows: [], sqlstate: code };
  messages.set(answer, `${code} ${message}`);
  return answer;
}
