import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { type Findings, measure, paired, quantile } from '../report.js';
import { connected } from '../support/client.js';
import { type Gateway, startGateway } from '../support/gateway.js';
import { accounts, withPostgres } from '../support/postgres.js';
import { MANIFEST } from '../wire/contestants.js';

const ROWS = 200_000;
/** Point queries sent per second, regardless of whether earlier ones have been answered. */
const OFFERED = 100;
/** Number of connections that share this load. */
const ASKERS = 8;
const LONG = 64;
const SLOW = 200;
/** Interval at which a slow reader reads one chunk, ms. */
const SIP_MS = 1_000;

/**
 * Increase of the 99th percentile latency of one subject's point queries while another subject runs 64 long queries, or
 * slowly reads 200 answers of 200,000 rows. Rounds with and without this load alternate; a ratio of 0.83 means 20 %
 * slower.
 */
export async function fairnessBench(quick: boolean): Promise<Findings> {
  const rounds = quick ? 2 : 7;
  const seconds = quick ? 3 : 15;
  return withPostgres(accounts(ROWS), async (postgres) => {
    const policyFile = 'bench/fairness/policy.yaml';
    const environment = { OSL_SPOOL_MIB: '16384', OSL_STATEMENT_TIMEOUT_MS: '600000' };
    const gateway = await startGateway({ manifestFile: MANIFEST, policyFile, postgres, environment });
    try {
      const askers = await Promise.all(Array.from({ length: ASKERS }, () => connected(gateway)));
      await offered(askers, seconds); // until code is compiled and the query is known to be short
      const measures = [];
      for (const [id, about, begin] of LOADS) {
        const quiet: number[] = [];
        const beside: number[] = [];
        for (let round = 0; round < rounds; round++) {
          quiet.push(await offered(askers, seconds));
          const end = await begin(gateway);
          beside.push(await offered(askers, seconds));
          await end();
        }
        measures.push(paired(`fairness.${id}.p99`, 'ms', 'less', beside, quiet, about));
      }
      measures.push(measure('fairness.offered', 'q/s', [OFFERED], `over ${ASKERS} connections`));
      for (const asker of askers) await asker.end();
      return { measures, tables: [] };
    } finally {
      await gateway.stop();
    }
  });
}

type Load = (gateway: Gateway) => Promise<() => Promise<void>>;

const LOADS: readonly (readonly [id: string, about: string, begin: Load])[] = [
  ['long', 'alone', longQuestions],
  ['slow', 'alone', slowReaders],
];

/**
 * The 99th percentile latency in ms of queries sent at a steady rate, measured from their due time so that queueing
 * counts.
 */
async function offered(askers: readonly Client[], seconds: number): Promise<number> {
  const took: number[] = [];
  const began = performance.now();
  // Each connection runs its queries sequentially; the latency of a late one counts from its due time.
  const lines = askers.map((asker) => ({ asker, last: Promise.resolve() }));
  for (let n = 0; n < seconds * OFFERED; n++) {
    const due = began + (1_000 * n) / OFFERED;
    const wait = due - performance.now();
    if (wait > 0) await sleep(wait);
    const line = lines[n % lines.length];
    if (line === undefined) break;
    const id = 1 + ((n * 7_919) % ROWS);
    line.last = line.last.then(async () => {
      const { rows } = await line.asker.query(`select balance from account where id = ${id}`);
      if (rows.length !== 1) throw new Error(`${rows.length} rows for a key`);
      took.push(performance.now() - due);
    });
  }
  await Promise.all(lines.map(({ last }) => last));
  return quantile(
    took.sort((a, b) => a - b),
    0.99,
  );
}

/** Starts joins that take minutes, each on its own connection; those beyond the pool size queue or are refused. */
async function longQuestions(gateway: Gateway): Promise<() => Promise<void>> {
  const hogs = await Promise.all(Array.from({ length: LONG }, () => connected(gateway, 'user:hog')));
  let going = true;
  const ask = async (hog: Client, n: number): Promise<void> => {
    while (going) {
      const text = `select count(*) as n${n} from account a join account b on a.opened = b.opened join account c on b.opened = c.opened`;
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
async function slowReaders(gateway: Gateway): Promise<() => Promise<void>> {
  const hogs = await Promise.all(Array.from({ length: SLOW }, () => connected(gateway, 'user:hog')));
  const asked = hogs.map((hog, n) =>
    hog.query(`select id, owner, balance as b${n} from account`).catch(() => null),
  );
  for (const hog of hogs) socketOf(hog).pause();
  const sips = setInterval(() => {
    for (const hog of hogs) {
      const socket = socketOf(hog);
      socket.once('data', () => socket.pause());
      socket.resume();
    }
  }, SIP_MS);
  await sleep(2_000);
  return async () => {
    clearInterval(sips);
    for (const hog of hogs) socketOf(hog).destroy();
    await Promise.all(asked);
  };
}

function socketOf(client: Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream; // no other way to stop reading
}
