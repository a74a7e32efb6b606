import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import type { Test } from 'tap';
import { TENANT } from '../../../bench/support/gateway.js';
import { dataScript, SCHEMA, TABLES, type TableName } from '../../../bench/tpch/data.js';
import {
  byHand,
  manifestText,
  type PolicyName,
  policyText,
  subjectOf,
} from '../../../bench/tpch/policies.js';
import { plainText, type Question, textByHand } from '../../../bench/tpch/questions.js';
import { mintToken } from '../../../policy/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import type { Citus } from '../../support/citus.js';
import { connectPg } from '../../support/pg-client.js';
import { temporary } from '../../tools/cli/support.js';
import { served } from '../operations/support.js';

/** The rows of `SCHEMA` as plain tables of the coordinator. */
const PLAIN = 'tpch_plain';

/** Distribution columns; all other tables are reference tables. */
const DISTRIBUTED: ReadonlyMap<TableName, string> = new Map([
  ['orders', 'o_orderkey'],
  ['lineitem', 'l_orderkey'],
]);

/** Rows as sorted text, since ties may come in any order; `code` is the SQLSTATE of an error. */
interface Outcome {
  readonly code: string | null;
  readonly message: string;
  readonly rows: readonly string[];
}

/** Sessions that run a query of TPC-H under a policy. */
interface TpchOnCitus {
  /** A session of the gateway over Citus. */
  gateway(policy: PolicyName): Promise<(question: Question) => Promise<Outcome>>;
  /** The policy written by hand, over plain tables and over Citus, without the gateway. */
  plain(policy: PolicyName, question: Question): Promise<Outcome>;
  citus(policy: PolicyName, question: Question): Promise<Outcome>;
}

/** Creates and distributes the tables of TPC-H. @param scale 1 for 6,000,000 line items */
async function fillTpch({ coordinator }: Citus, scale: number): Promise<void> {
  for (const statement of [...dataScript(SCHEMA, scale), ...dataScript(PLAIN, scale)])
    await coordinator.query(statement);
  for (const table of TABLES) {
    const column = DISTRIBUTED.get(table);
    await coordinator.query(
      column === undefined
        ? `select create_reference_table('${SCHEMA}.${table}')`
        : `select create_distributed_table('${SCHEMA}.${table}', '${column}')`,
    );
  }
  // Each in a transaction of its own: together they would touch reference tables here and shards there.
  for (const table of TABLES) await coordinator.query(`analyze ${SCHEMA}.${table}`);
}

export async function tpchOnCitus(t: Test, cluster: Citus, scale: number): Promise<TpchOnCitus> {
  await fillTpch(cluster, scale);
  const dir = temporary();
  const where = { dataDir: join(dir, 'data'), manifest: join(dir, 'm.yaml'), policy: join(dir, 'p.yaml') };
  mkdirSync(where.dataDir);
  writeFileSync(where.manifest, manifestText());
  writeFileSync(where.policy, policyText());
  const server = await served(t, where, { BENCH_DATABASE_URL: cluster.readerUrl });
  const direct = async (schema: string): Promise<pg.Client> => {
    const { hostname: host, port } = new URL(cluster.coordinator.url);
    const client = await connectPg({ host, port: Number(port), user: 'postgres', database: 'postgres' });
    t.teardown(() => client.end());
    await client.query(`set search_path = ${schema}`);
    return client;
  };
  const [plain, citus] = [await direct(PLAIN), await direct(SCHEMA)];
  return {
    async gateway(policy) {
      const user = subjectOf(policy);
      const claims = { tenant: TENANT, chain: [user], aclRoles: [policy] };
      const password = await mintToken(claims, {
        algorithm: 'HS256',
        secret: tenantKeys(where.dataDir).signing,
      });
      const client = await connectPg({ port: server.record()['pgPort'], user, password });
      t.teardown(() => client.end());
      return (question) => outcomeOf(client, plainText(question));
    },
    plain: (policy, question) => outcomeOf(plain, textByHand(question, byHand(policy))),
    citus: (policy, question) => outcomeOf(citus, textByHand(question, byHand(policy))),
  };
}

async function outcomeOf(client: pg.Client, text: string): Promise<Outcome> {
  try {
    const { rows } = await client.query<unknown[]>({ text, rowMode: 'array' });
    return { code: null, message: '', rows: rows.map((row) => JSON.stringify(row)).toSorted() };
  } catch (error) {
    const { code = '', message } = error as pg.DatabaseError; // what `pg` rejects with
    return { code, message, rows: [] };
  }
}
