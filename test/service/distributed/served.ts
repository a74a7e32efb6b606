import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';
import type { Test } from 'tap';
import { stringify } from 'yaml';
import { mintToken } from '../../../policy/index.js';
import { tenantKeys } from '../../../src/service/keys.js';
import type { Distributed } from '../../support/distributed-postgres.js';
import { connectPg } from '../../support/pg-client.js';
import { type Server, temporary } from '../../tools/cli/support.js';
import { type Place, served } from '../operations/support.js';
import * as shop from './shop.js';
import type { Worlds } from './worlds.js';

/** Makes the tables of the shop, and of `worlds`, in pieces and in one. */
export async function filled(
  { coordinator, nodes, table }: Distributed,
  worlds: Pick<Worlds, 'tables'>,
  size: shop.Size = shop.SMALL,
): Promise<void> {
  await coordinator.query('create schema parts; create schema one');
  const shopTables = [
    {
      name: 'customer',
      columns: shop.CUSTOMER_COLUMNS,
      key: 'id',
      one: `create table one.customer (${shop.CUSTOMER_COLUMNS})`,
    },
    {
      name: 'orders',
      columns: shop.ORDER_COLUMNS,
      key: 'customer_id',
      one: `create table one.orders (${shop.ORDER_COLUMNS})`,
    },
  ];
  const tables = [...shopTables, ...worlds.tables];
  for (const { name, columns, key } of tables) await table('parts', name, columns, key);
  const fill = tables.map(({ name }) => `insert into parts.${name} select * from one.${name}`);
  await coordinator.query(
    [
      ...tables.map(({ one }) => one),
      shop.fill(size),
      ...fill,
      'analyze parts.customer',
      'analyze parts.orders',
    ].join('; '),
  );
  await nodes[0]?.query(shop.DRIP.first);
  await nodes[2]?.query(shop.DRIP.third);
  await coordinator.query(shop.DRIP.coordinator);
  await Promise.all(nodes.map((node) => node.query('analyze')));
  for (const schema of ['parts', 'one'])
    await coordinator.query(
      `grant usage on schema ${schema} to osl_reader; grant select on all tables in schema ${schema} to osl_reader`,
    );
}

/** Manifest and policy of the shop and of `worlds`. */
export function files(worlds: Worlds): Place {
  const dir = temporary();
  const manifest = join(dir, 'manifest.yaml');
  const policy = join(dir, 'policy.yaml');
  writeFileSync(
    manifest,
    stringify({
      version: 1,
      tenant: 'demo',
      features: { joins: 'any' },
      connectors: {
        db: { kind: 'postgres', url_env: 'STORE_URL', tables: { ...shop.DECLARED, ...worlds.declared } },
      },
      entities: { ...shop.ENTITIES, ...worlds.entities },
    }),
  );
  writeFileSync(
    policy,
    stringify({
      version: 1,
      tenant: 'demo',
      subjects: { ...shop.SUBJECTS, ...worlds.subjects },
      roles: { ...shop.ROLES, ...worlds.roles },
      masks: { mail: 'redact', ...worlds.masks },
      limits: { query: 1_000_000, catalog: 1_000_000 },
    }),
  );
  const dataDir = join(dir, 'data');
  mkdirSync(dataDir);
  return { dataDir, manifest, policy };
}

/** `osl serve` over the coordinator. */
export function serve(t: Test, where: Place, { readerUrl }: Pick<Distributed, 'readerUrl'>): Promise<Server> {
  return served(t, where, { STORE_URL: readerUrl, OSL_POOL_SIZE: '4' });
}

export function token(
  { dataDir }: Place,
  chain: readonly string[],
  role: string,
  admin = false,
): Promise<string> {
  const claims = {
    tenant: 'demo',
    chain: [...chain],
    aclRoles: [role],
    roles: admin ? ['TENANT_ADMIN'] : [],
  };
  return mintToken(claims, { algorithm: 'HS256', secret: tenantKeys(dataDir).signing });
}

/** Every value as the server wrote it. */
const TEXT = { getTypeParser: () => (value: string | Buffer) => value.toString() };

/** A client of the wire. */
export async function connected(
  t: Test,
  server: Server,
  where: Place,
  chain: readonly string[],
  role: string,
): Promise<(text: string) => Promise<Answered>> {
  const client = await connectPg({
    port: server.record()['pgPort'],
    user: chain.at(-1) ?? '',
    password: await token(where, chain, role),
    types: TEXT,
  });
  client.on('error', () => undefined);
  t.teardown(() => client.end());
  return async (text) => {
    try {
      const { rows, fields } = await client.query<unknown[]>({ text, rowMode: 'array' });
      const types = fields.map((field) => field.dataTypeID);
      return {
        code: null,
        rows: rows.map((row) => JSON.stringify(row.map((v, i) => plain(v, types[i])))),
        message: '',
      };
    } catch (error) {
      const { code = '', message } = error as pg.DatabaseError; // what `pg` rejects with
      return { code, rows: [], message };
    }
  };
}

export interface Answered {
  /** SQLSTATE; null where there was an answer. */
  readonly code: string | null;
  readonly rows: readonly string[];
  readonly message: string;
}

const NUMERIC = 1700;

/** Of two equal numerics that differ in scale, which one GROUP BY keeps is the engine's choice. */
function plain(value: unknown, type: number | undefined): unknown {
  return type === NUMERIC && typeof value === 'string' && value.includes('.')
    ? value.replace(/\.?0+$/, '')
    : value;
}
