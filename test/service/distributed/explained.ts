import pg from 'pg';
import type { Server } from '../../tools/cli/support.js';
import { asked } from '../operations/support.js';
import { OWN_TENANT, SEVERAL_TENANTS } from './citus-shop.js';

/** Part of an explain answer: docs/rest.md. */
interface Explained {
  readonly upstream: {
    readonly sql: string;
    readonly parameters: readonly { readonly type: string; readonly from: string; readonly value?: string }[];
  };
}

/**
 * Citus' plan, with all tasks, of the statement that the gateway sends for `osql`, prepared and with its values as the
 * gateway sends them.
 */
export async function explainedOnCitus(
  server: Server,
  bearer: string,
  osql: string,
  url: string,
): Promise<string> {
  const body = { osql, explain: true, upstream: 'statement' };
  const { status, body: told } = await asked(server, '/osl/query', body, {
    authorization: `Bearer ${bearer}`,
  });
  if (status !== 200) throw new Error(`${status} ${told}`);
  const { upstream } = JSON.parse(told) as Explained; // docs/rest.md
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query('set search_path to pg_catalog, pg_temp; set citus.explain_all_tasks to on');
    const types = upstream.parameters.map(({ type }) => type).join(', ');
    await client.query(`prepare q${types === '' ? '' : ` (${types})`} as ${upstream.sql}`);
    const values = upstream.parameters.map(({ type, value }) => pg.escapeLiteral(value ?? attribute(type)));
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain (costs off) execute q${types === '' ? '' : `(${values.join(', ')})`}`,
    );
    return rows.map((row) => row['QUERY PLAN']).join('\n');
  } finally {
    await client.end();
  }
}

/** The attribute `tenant` of the caller, one value or a list of them. */
const attribute = (type: string): string =>
  type.endsWith('[]') ? `{${SEVERAL_TENANTS.join()}}` : `${OWN_TENANT}`;
