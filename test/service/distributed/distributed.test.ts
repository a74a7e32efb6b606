import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import t from 'tap';
import { diceFrom } from '../../proof/oracle/dice.js';
import { startDistributed } from '../../support/distributed-postgres.js';
import { NO_BINARIES } from '../../support/native-postgres.js';
import { connectPg } from '../../support/pg-client.js';
import { osl, type Server } from '../../tools/cli/support.js';
import { asked, fileArgs, logged } from '../operations/support.js';
import { type Answered, connected, files, filled, serve, token } from './served.js';
import { QUESTIONS } from './shop.js';
import { worlds } from './worlds.js';

/**
 * Tables whose partitions stand on three servers, read over a fourth by `postgres_fdw`: policy is the same, what can
 * travel as a figure does, and a server that is down is an error and nothing worse.
 *
 * `OSL_DISTRIBUTED_RUNS` random questions of each of four callers, from `OSL_DISTRIBUTED_SEED`.
 */
const RUNS = Number(process.env['OSL_DISTRIBUTED_RUNS'] ?? 40);
const SEED = Number(process.env['OSL_DISTRIBUTED_SEED'] ?? 3);
const ROLES = ['analyst', 'regional', 'mixed'];

t.setTimeout(600_000);

const cluster = await startDistributed(3, ['shared_buffers=16MB', 'autovacuum=off']);
if (cluster === null) t.test('partitions on other servers', { skip: NO_BINARIES }, async () => undefined);
else {
  t.teardown(() => cluster.stop());
  const { coordinator, nodes } = cluster;
  const made = worlds(4, diceFrom(SEED));
  await filled(cluster, made);
  const where = files(made);
  const server = await serve(t, where, cluster);
  const as = (role: string): Promise<(text: string) => Promise<Answered>> =>
    connected(t, server, where, [`user:${role}`], role);

  await t.test('a caller is answered as if the tables stood in one piece', async (t) => {
    for (const role of ROLES) {
      const ask = await as(role);
      for (const [what, text] of QUESTIONS) {
        const whole = await ask(text.replaceAll('{}', '_one'));
        t.equal(whole.code, null, `${role}, ${what}: ${whole.message}`);
        t.not(whole.rows.length, 0, `${role}, ${what}`);
        t.same(sorted(await ask(text.replaceAll('{}', ''))), sorted(whole), `${role}: ${what}`);
      }
    }
  });

  await t.test('so is the answer to random questions in random worlds', async (t) => {
    const dice = diceFrom(SEED + 1);
    const counts = { answered: 0, refused: 0, rows: 0 };
    for (const caller of made.callers) {
      const ask = await connected(t, server, where, caller.chain, caller.role);
      for (let i = 0; i < RUNS; i++) {
        const { parted, whole } = caller.question(dice);
        const [got, wanted] = [sorted(await ask(parted)), sorted(await ask(whole))];
        if (JSON.stringify(got) !== JSON.stringify(wanted)) t.same(got, wanted, parted);
        counts[wanted.code === null ? 'answered' : 'refused'] += 1;
        counts.rows += wanted.rows.length;
      }
    }
    t.comment(`seed ${SEED}: ${JSON.stringify(counts)}`);
    t.ok(counts.answered > 2 * counts.refused && counts.rows > counts.answered, JSON.stringify(counts));
  });

  await t.test('filters, joins and figures are worked out where the rows are', async (t) => {
    const remote = async (text: string, role: string): Promise<string> =>
      (await explained(server, await token(where, ['user:admin'], role, true), text, cluster.readerUrl)).join(
        '\n',
      );
    const regional = (text: string): Promise<string> => remote(text, 'regional');
    for (const [what, text] of QUESTIONS) {
      const plan = await regional(text.replaceAll('{}', ''));
      const statements = plan.match(/Remote SQL: .*/g) ?? [];
      t.ok(statements.length > 0 || plan.includes('Subplans Removed: 3'), what);
      for (const sql of statements)
        t.match(sql, /region = \$\d+::text/, `${what}: no row of another region leaves a server`);
    }
    const figures = await regional(QUESTIONS.get('by the key')?.replaceAll('{}', '') ?? '');
    t.match(figures, /Remote SQL: SELECT .*sum\(.*GROUP BY/, 'figures by the key that tables are cut by');
    const joined = await regional(QUESTIONS.get('a join, by the key')?.replaceAll('{}', '') ?? '');
    t.match(
      joined,
      /Remote SQL: SELECT .*sum\(.*INNER JOIN.*GROUP BY/,
      'a join by that key, and its figures',
    );
    const guarded = await regional(QUESTIONS.get('a guarded condition')?.replaceAll('{}', '') ?? '');
    t.match(guarded, /\n +Filter: CASE WHEN/, 'a guard is asked here, of rows that the filter let go');
    t.notMatch(guarded, /Remote SQL: .*lower/);
    const others = await regional(QUESTIONS.get('by something else')?.replaceAll('{}', '') ?? '');
    t.notMatch(
      others,
      /Remote SQL: .*GROUP BY/,
      'figures by anything else are summed up here, of rows that are visible',
    );
  });

  await t.test('what was sent there for a question is that, too', async (t) => {
    const ask = await as('regional');
    for (const node of nodes) node.asked();
    t.match(
      await ask("select customer_id, count(*) from orders where note like 'note 4%' group by customer_id"),
      { code: null },
    );
    for (const node of nodes) {
      const sent = node.asked().filter((sql) => /^DECLARE.*orders/.test(sql));
      t.equal(sent.length, 1);
      t.match(sent[0], /GROUP BY/);
      t.match(sent[0], /region = 'eu'/);
    }
  });

  await t.test('a server that is down', async (t) => {
    const [first] = nodes;
    if (first === undefined) return;
    const ask = await as('analyst');
    const all = 'select count(*) from orders';
    await first.down();
    const failed = await ask(all);
    t.match(failed, { code: '08006', rows: [], message: /does not respond/ }, 'no partial answer');
    t.notMatch(failed.message, /node_|127\.0|part\b/, 'and nothing of the servers');
    t.match(
      await ask('select count(*) from orders_one'),
      { code: null },
      'what stands elsewhere is answered',
    );
    const there = await partOf(coordinator, 1);
    t.match(await ask(`select count(*) from orders where customer_id = ${there}`), { code: '08006' });
    const elsewhere = await partOf(coordinator, 2);
    t.match(
      await ask(`select count(*) from orders where customer_id = ${elsewhere}`),
      { code: null },
      'what does not need it too',
    );
    await until(async () => Number((await ready(server)).data_nodes_unreachable) === 1);
    t.match(await ready(server), { status: 'ready' }, 'it can still serve');
    t.match(await metric(server, 'osl_data_nodes_unreachable'), '1');
    await until(async () => said(server, 'a server behind the database does not answer', 'node_1') === 1);
    await first.up();
    t.match(await ask(all), { code: null, rows: ['["6000"]'] }, 'back with the first question');
    await until(async () => (await ready(server)).data_nodes_unreachable === undefined);
    await until(async () => said(server, 'a server behind the database answers again', 'node_1') === 1);
  });

  await t.test('a server that takes connections and says nothing is given up', async (t) => {
    const [, second] = nodes;
    if (second === undefined) return;
    const ask = await as('analyst');
    await second.freeze();
    const started = performance.now();
    t.match(await ask('select count(*) from orders'), { code: '08006', rows: [] });
    t.ok(performance.now() - started < 20_000, 'long before the time of a statement is over');
    second.thaw();
    await until(async () => (await ask('select count(*) from orders')).code === null);
  });

  await t.test('what their owner should mend is told', async (t) => {
    await coordinator.query(
      'alter server node_1 options (drop connect_timeout); revoke select on parts.orders_2, parts.customer_2 from osl_reader',
    );
    await Promise.all(
      made.tables.map(({ name }) => coordinator.query(`revoke select on parts.${name}_2 from osl_reader`)),
    );
    const args = ['doctor', ...fileArgs(where)];
    const { stdout } = await osl(args, { env: { STORE_URL: cluster.readerUrl } });
    t.match(stdout, /foreign server "node_1" has no connect_timeout/);
    t.match(stdout, /foreign server "node_2" has no table that the role may read: it is not watched/);
    t.notMatch(stdout, /foreign server "node_3"/);
    const ask = await as('analyst');
    t.match(
      await ask('select count(*) from orders'),
      { code: null },
      'questions need the partitioned table alone',
    );
    await coordinator.query("alter server node_1 options (add connect_timeout '2')");
  });

  await t.test('a server that dies in the middle of an answer', async (t) => {
    const [, , third] = nodes;
    if (third === undefined) return;
    const client = await connectPg({
      port: server.record()['pgPort'],
      user: 'user:analyst',
      password: await token(where, ['user:analyst'], 'analyst'),
    });
    t.teardown(() => client.end());
    const query = new pg.Query('select id, note from drip');
    let rows = 0;
    const ended = new Promise<unknown>((resolve) => {
      query.on('row', () => {
        rows += 1;
        if (rows === 1)
          void third.query(
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'osl_reader'",
          );
      });
      query.on('error', resolve);
      query.on('end', () => resolve(null));
    });
    client.query(query);
    t.match(await ended, { code: '08006' }, 'the end of the answer is an error');
    t.ok(rows > 0 && rows <= 2_000, `${rows} rows of the first server had come`);
    const ask = await as('analyst');
    t.match(await ask('select count(*) from orders'), { code: null, rows: ['["6000"]'] });
  });
}

function sorted({ code, rows }: Answered): {
  readonly code: string | null;
  readonly rows: readonly string[];
} {
  return { code, rows: rows.toSorted() };
}

/** The plan of what the gateway sends for `text`, by a session set as its own are. */
async function explained(
  server: Server,
  bearer: string,
  osql: string,
  url: string,
): Promise<readonly string[]> {
  const body = { osql, explain: true, upstream: 'statement' };
  const { status, body: told } = await asked(server, '/osl/query', body, {
    authorization: `Bearer ${bearer}`,
  });
  if (status !== 200) throw new Error(`${status} ${told}`);
  const { upstream } = JSON.parse(told) as { upstream: { sql: string; parameters: { type: string }[] } }; // docs/rest.md
  const client = new pg.Client(url);
  await client.connect();
  try {
    await client.query(`set search_path to pg_catalog, pg_temp; set plan_cache_mode to force_generic_plan;
      set enable_partitionwise_join to on; set enable_partitionwise_aggregate to on`);
    const types = upstream.parameters.map(({ type }) => type).join(', ');
    await client.query(`prepare q${types === '' ? '' : ` (${types})`} as ${upstream.sql}`);
    const values = upstream.parameters.map(() => 'null').join(', ');
    const { rows } = await client.query<{ 'QUERY PLAN': string }>(
      `explain (verbose, costs off) execute q${values === '' ? '' : `(${values})`}`,
    );
    return rows.map((row) => row['QUERY PLAN']);
  } finally {
    await client.end();
  }
}

/** A customer whose rows are on the server of that number. */
async function partOf(
  coordinator: { query(sql: string): Promise<Record<string, unknown>[]> },
  node: number,
): Promise<number> {
  const [row] = await coordinator.query(
    `select i as id from generate_series(1, 100) i where satisfies_hash_partition('parts.orders'::regclass, 3, ${node - 1}, i) limit 1`,
  );
  return Number(row?.['id']);
}

async function ready(server: Server): Promise<Record<string, unknown>> {
  return JSON.parse((await asked(server, '/ready')).body) as Record<string, unknown>; // docs/rest.md
}

async function metric(server: Server, name: string): Promise<string> {
  const { body } = await asked(server, '/metrics');
  return new RegExp(`^${name} (\\S+)$`, 'm').exec(body)?.[1] ?? '';
}

function said(server: Server, message: string, node: string): number {
  return logged(server).filter((line) => line['msg'] === message && line['server'] === node).length;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  for (let i = 0; i < 600; i++) {
    if (await holds()) return;
    await sleep(100);
  }
  throw new Error('it did not come to pass within a minute');
}
