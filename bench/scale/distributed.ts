import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Catalog, compile, emit, type Slot } from 'osl-compiler';
import { Client } from 'pg';
import { stringify } from 'yaml';
import { compileSnapshot, effectiveAccess, type IdentityClaims } from '../../policy/index.js';
import { loadManifest, loadPolicyDocument } from '../../src/model/manifest/index.js';
import { filled } from '../../test/service/distributed/served.js';
import * as shop from '../../test/service/distributed/shop.js';
import { type Distributed, startDistributed } from '../../test/support/distributed-postgres.js';
import { literalOf, microseconds, type Prepared } from '../barrier/statements.js';
import { type Findings, type Measure, median, paired } from '../report.js';

/** Names of the queries in `QUESTIONS`, and their labels here. */
const ASKED: readonly (readonly [id: string, question: string])[] = [
  ['a_row', 'a row'],
  ['of_a_customer', 'rows of a customer'],
  ['a_page', 'rows'],
  ['guarded', 'a guarded condition'],
  ['by_the_cut', 'by the key'],
  ['by_another', 'by something else'],
  ['in_all', 'in all'],
  ['join_by_the_cut', 'a join, by the key'],
];

/**
 * Costs and savings of partitions on three servers, under policy. All run on one machine, so parallel speed-up is
 * excluded.
 */
export async function distributedBench(quick: boolean): Promise<Findings> {
  const size = quick ? { customers: 2_000, orders: 20_000 } : { customers: 100_000, orders: 1_000_000 };
  const cluster = await startDistributed(3, ['shared_buffers=128MB', 'log_statement=none']);
  if (cluster === null) throw new Error('no server binaries of Postgres');
  try {
    await prepared(cluster, size);
    const asking = await callers();
    const sessions = {
      tuned: await session(cluster.readerUrl, true),
      plain: await session(cluster.readerUrl, false),
    };
    const measures: Measure[] = [];
    const rows: string[][] = [];
    for (const [id, name] of ASKED) {
      const text = shop.QUESTIONS.get(name) ?? '';
      const of = (who: 'regional' | 'analyst', suffix: string): Prepared =>
        asking(who, id, text.replaceAll('{}', suffix));
      const turns: readonly (readonly [Client, Prepared])[] = [
        [sessions.tuned, of('regional', '')],
        [sessions.tuned, of('analyst', '')],
        [sessions.tuned, of('regional', '_one')],
        [sessions.plain, of('regional', '')],
      ];
      const [ours = [], open = [], whole = [], plain = []] = await timed(
        turns,
        quick ? 3 : 9,
        quick ? 20 : 400,
      );
      measures.push(
        paired(
          `scale.distributed.${id}.vs_no_policy`,
          'µs',
          'less',
          ours,
          open,
          'the same without a row filter',
        ),
        paired(
          `scale.distributed.${id}.vs_one_piece`,
          'µs',
          'less',
          ours,
          whole,
          'the same rows in one table',
        ),
        paired(
          `scale.distributed.${id}.vs_defaults`,
          'µs',
          'less',
          ours,
          plain,
          'partitionwise off, as Postgres has it',
        ),
      );
      rows.push([
        id,
        name,
        ...[median(ours), median(open), median(whole), median(plain)].map((us) => us.toFixed(0)),
        String(await travelled(sessions.tuned, of('regional', ''))),
        String(await travelled(sessions.plain, of('regional', ''))),
      ]);
    }
    await Promise.all(Object.values(sessions).map((client) => client.end()));
    const about =
      `${size.orders} orders of ${size.customers} customers, cut by customer over three servers of this machine; a third of the rows ` +
      'is visible. Medians in µs. The last two columns are rows that came from the servers, which no load changes.';
    return { measures, tables: [{ name: 'scale: tables over three servers', about, head: HEAD, rows }] };
  } finally {
    await cluster.stop();
  }
}

const HEAD = [
  'id',
  'question',
  'with policy',
  'without',
  'in one piece',
  'partitionwise off',
  'rows that travel',
  'partitionwise off',
];

async function prepared(cluster: Distributed, size: shop.Size): Promise<void> {
  const { coordinator, nodes } = cluster;
  for (let i = 1; i <= nodes.length; i++)
    await coordinator.query(`alter server node_${i} options (add batch_size '2000')`);
  await filled(cluster, { tables: [] }, size);
  const indexes = (schema: string): string =>
    `create unique index on ${schema}.orders (id); create index on ${schema}.orders (customer_id);
     create unique index on ${schema}.customer (id); analyze ${schema}.orders; analyze ${schema}.customer`;
  await Promise.all([coordinator.query(indexes('one')), ...nodes.map((node) => node.query(indexes('part')))]);
}

async function session(url: string, tuned: boolean): Promise<Client> {
  const client = new Client(url);
  await client.connect();
  const on = tuned ? 'on' : 'off';
  await client.query(
    `set search_path to pg_catalog, pg_temp; set enable_partitionwise_join to ${on}; set enable_partitionwise_aggregate to ${on}`,
  );
  return client;
}

type Asking = (who: 'regional' | 'analyst', id: string, text: string) => Prepared;

/** Compiles queries as the gateway does, for a caller with one region and one with all regions. */
async function callers(): Promise<Asking> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-distributed-'));
  try {
    const files = { manifest: join(dir, 'manifest.yaml'), policy: join(dir, 'policy.yaml') };
    const tables = shop.DECLARED;
    const connectors = { db: { kind: 'postgres', url_env: 'BENCH_DATABASE_URL', tables } };
    writeFileSync(
      files.manifest,
      stringify({ version: 1, tenant: 'demo', connectors, entities: shop.ENTITIES }),
    );
    const { ROLES: roles, SUBJECTS: subjects } = shop;
    writeFileSync(
      files.policy,
      stringify({ version: 1, tenant: 'demo', subjects, roles, masks: { mail: 'redact' } }),
    );
    const { catalog } = await loadManifest(files.manifest);
    const snapshot = compileSnapshot((await loadPolicyDocument(files.policy)).document, catalog);
    const access = (who: string) => effectiveAccess(identityOf(who), snapshot, catalog);
    const of = { regional: access('regional'), analyst: access('analyst') };
    return (who, id, text) => statement(`${id}.${who}`, text, catalog, of[who]);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function statement(
  name: string,
  text: string,
  catalog: Catalog,
  access: Parameters<typeof compile>[2],
): Prepared {
  const { sql, slots } = emit(compile(text, catalog, access));
  const value = (slot: Slot): string | null => (slot.kind === 'attribute' ? '{eu}' : literalOf(slot));
  return { name: `${name}.${text.includes('_one') ? 'one' : 'cut'}`, text: sql, values: [slots.map(value)] };
}

function identityOf(who: string): IdentityClaims {
  const now = Math.floor(Date.now() / 1_000);
  return Object.freeze({
    tenant: 'demo',
    subject: `user:${who}`,
    chain: [`user:${who}`],
    roles: [],
    aclRoles: [who],
    issuedAt: now,
    expiresAt: now + 300,
    tokenId: 'bench',
  });
}

/** Times of each round in µs, alternating; as many executions per round as fit into `millis`. */
async function timed(
  turns: readonly (readonly [Client, Prepared])[],
  rounds: number,
  millis: number,
): Promise<readonly (readonly number[])[]> {
  const often: number[] = [];
  // Postgres chooses between generic and custom plans in the first six executions of a prepared statement.
  for (const [client, one] of turns)
    often.push(1 + Math.floor((millis * 1_000) / (await repeated(client, one, 6))));
  const times: number[][] = turns.map(() => []);
  for (let round = 0; round < rounds; round++)
    for (const [i, [client, one]] of turns.entries())
      times[i]?.push(await repeated(client, one, often[i] ?? 1));
  return times;
}

function repeated(
  client: Client,
  { name, text, values: [value = []] }: Prepared,
  times: number,
): Promise<number> {
  return microseconds(client, { name, text, values: Array.from({ length: times }, () => value) });
}

/** Number of rows that one execution fetched from the servers. */
async function travelled(client: Client, { text, values: [value = []] }: Prepared): Promise<number> {
  const { rows } = await client.query<{ 'QUERY PLAN': string }>({
    text: `explain (analyze, timing off, costs off, summary off) ${text}`,
    values: [...value],
  });
  return rows.reduce((sum, row) => {
    const [, found, loops] = /Foreign Scan.*actual rows=(\d+) loops=(\d+)/.exec(row['QUERY PLAN']) ?? [];
    return sum + Number(found ?? 0) * Number(loops ?? 0);
  }, 0);
}
