import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Client, type ClientConfig } from 'pg';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import { type Findings, type Measure, measure, paired } from '../report.js';
import { type Gateway, SUBJECT, startGateway } from '../support/gateway.js';
import { accounts, withClient, withPostgres } from '../support/postgres.js';
import { MANIFEST } from '../wire/contestants.js';
import type { AskerJob } from './asker.js';

const ROWS = 200_000;
/** Point queries sent per second, regardless of whether earlier ones have been answered. */
const OFFERED = 100;
/** Number of connections that share this load. */
const ASKERS = 8;
const LONG = 64;
const SLOW = 200;
/**
 * Time in ms until what the slow readers will not read soon has been spooled, and those beyond the pool were refused.
 * The load of the first seconds is that of 50 answers being read at once, not of slow readers.
 */
const SETTLED_MS = 8_000;
/** Interval at which a slow reader reads one chunk, ms. */
const SIP_MS = 1_000;

/**
 * The 99th percentile latency of one subject's point queries while another subject runs 64 long queries, or slowly reads
 * 200 answers of 200,000 rows. Rounds with and without this load alternate; a ratio of 0.83 means 20 % slower.
 *
 * `floor` is the same without the gateway: point queries sent directly, beside as many long queries or readers as the
 * gateway lets one subject run at a time.
 */
export async function fairnessBench(quick: boolean): Promise<Findings> {
  const rounds = quick ? 2 : 5;
  const seconds = quick ? 3 : 8;
  return withPostgres(accounts(ROWS), async (postgres) => {
    const policyFile = 'bench/fairness/policy.yaml';
    const environment = { OSL_SPOOL_MIB: '16384', OSL_STATEMENT_TIMEOUT_MS: '600000' };
    const gateway = await startGateway({ manifestFile: MANIFEST, policyFile, postgres, environment });
    try {
      const ways: readonly Way[] = [
        {
          id: '',
          connection: async (subject) => connectionOf(gateway, await gateway.token(subject), subject),
          table: 'account',
          share: 1,
        },
        {
          id: '.floor',
          connection: async (subject) => ({
            connectionString: postgres.readerUrl,
            application_name: subject,
          }),
          table: 'bench.account',
          share: SHARE / LONG,
        },
      ];
      for (const way of ways) await pointP99(way, seconds); // until the query is known to be short
      const measures: Measure[] = [];
      for (const load of LOADS)
        for (const way of ways) {
          const quiet: number[] = [];
          const beside: number[] = [];
          for (let round = 0; round < rounds; round++) {
            quiet.push(await pointP99(way, seconds));
            const end = await load.begin(way);
            beside.push(await pointP99(way, seconds));
            await end();
            await terminate(postgres, HOG);
          }
          measures.push(paired(`fairness.${load.id}${way.id}.p99`, 'ms', 'less', beside, quiet, 'alone'));
        }
      measures.push(measure('fairness.offered', 'q/s', [OFFERED], `over ${ASKERS} connections`));
      return { measures, tables: [] };
    } finally {
      await gateway.stop();
    }
  });
}

/** A way to the database: through the gateway, or directly. */
interface Way {
  readonly id: string;
  /** Connection of a subject, with a new token, since a token lasts for 300 s. */
  readonly connection: (subject: string) => Promise<ClientConfig>;
  readonly table: string;
  /** Fraction of the load to start. */
  readonly share: number;
}

const HOG = 'user:hog';

/** Ends what a subject still runs by direct connections: Postgres does not notice that a client has left. */
async function terminate({ url }: NativePostgres, subject: string): Promise<void> {
  await withClient(url, (client) =>
    client.query('select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1', [
      subject,
    ]),
  );
}

/** Number of sessions of the pool that one subject may use: three quarters of ten, rounded up. */
const SHARE = 8;

function connectionOf({ pgPort }: Gateway, password: string, user: string): ClientConfig {
  return { host: '127.0.0.1', port: pgPort, user, database: 'osl', password };
}

async function pointP99({ connection, table }: Way, seconds: number): Promise<number> {
  const job: AskerJob = {
    connection: await connection(SUBJECT),
    seconds,
    offered: OFFERED,
    connections: ASKERS,
    rows: ROWS,
    table,
  };
  const [p99] = await once(
    new Worker(new URL('./asker.js', import.meta.url), { workerData: job }),
    'message',
  );
  return Number(p99);
}

/** Starts the load and returns a function that ends it. */
type Begin = (way: Way) => Promise<() => Promise<void>>;

const LOADS: readonly { readonly id: string; readonly begin: Begin }[] = [
  { id: 'long', begin: longQuestions },
  { id: 'slow', begin: slowReaders },
];

async function hogsOf(way: Way, count: number): Promise<readonly Client[]> {
  return Promise.all(
    Array.from({ length: Math.round(count * way.share) }, async () => {
      const client = new Client(await way.connection(HOG));
      client.on('error', () => undefined);
      await client.connect();
      return client;
    }),
  );
}

/** Starts joins that take minutes, each on its own connection; those beyond the pool size queue or are refused. */
async function longQuestions(way: Way): Promise<() => Promise<void>> {
  const hogs = await hogsOf(way, LONG);
  let going = true;
  const ask = async (hog: Client, n: number): Promise<void> => {
    while (going) {
      const text = `select count(*) as n${n} from ${way.table} a join ${way.table} b on a.opened = b.opened join ${way.table} c on b.opened = c.opened`;
      await hog.query(text).catch(() => sleep(100));
    }
  };
  const asked = hogs.map(ask);
  await sleep(1_000);
  return async () => {
    going = false;
    for (const hog of hogs) socketOf(hog).destroy();
    await Promise.all(asked);
  };
}

/** Starts readers that read one chunk from their socket per second. */
async function slowReaders(way: Way): Promise<() => Promise<void>> {
  const hogs = await hogsOf(way, SLOW);
  const asked = hogs.map((hog, n) =>
    hog.query(`select id, owner, balance as b${n} from ${way.table}`).catch(() => null),
  );
  for (const hog of hogs) socketOf(hog).pause();
  let next = 0;
  // One reader after another, so that each reads once in `SIP_MS`.
  const sips = setInterval(() => {
    const hog = hogs[next++ % hogs.length];
    if (hog === undefined) return;
    const socket = socketOf(hog);
    socket.once('data', () => socket.pause());
    socket.resume();
  }, SIP_MS / hogs.length);
  await sleep(SETTLED_MS);
  return async () => {
    clearInterval(sips);
    for (const hog of hogs) socketOf(hog).destroy();
    await Promise.all(asked);
  };
}

function socketOf(client: Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream; // no other way to stop reading
}
