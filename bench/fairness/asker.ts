import { setTimeout as sleep } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { Client, type ClientConfig } from 'pg';
import { quantile } from '../report.js';

/** Work for the thread: where to connect, how long to ask, and what. */
export interface AskerJob {
  readonly connection: ClientConfig;
  readonly seconds: number;
  /** Statements sent per second, regardless of whether earlier ones have been answered. */
  readonly offered: number;
  readonly connections: number;
  /** Largest key of the table. */
  readonly rows: number;
  readonly table: string;
}

/*
 * A thread of the bench that sends point queries at a steady rate and answers with the 99th percentile of their latency
 * in ms, measured from their due time so that queueing counts. It has a thread of its own, because the clients beside it
 * keep the main thread busy.
 */
const { connection, seconds, offered, connections, rows, table } = workerData as AskerJob; // given by the bench itself

const took: number[] = [];
// Each connection runs its queries sequentially; the latency of a late one counts from its due time.
const lines = await Promise.all(
  Array.from({ length: connections }, async () => {
    const client = new Client(connection);
    await client.connect();
    return { client, last: Promise.resolve() };
  }),
);
const began = performance.now();
for (let n = 0; n < seconds * offered; n++) {
  const due = began + (1_000 * n) / offered;
  const wait = due - performance.now();
  if (wait > 0) await sleep(wait);
  const line = lines[n % lines.length];
  if (line === undefined) break;
  const id = 1 + ((n * 7_919) % rows);
  line.last = line.last.then(async () => {
    const answer = await line.client.query(`select balance from ${table} where id = ${id}`);
    if (answer.rows.length !== 1) throw new Error(`${answer.rows.length} rows for a key`);
    took.push(performance.now() - due);
  });
}
await Promise.all(lines.map(({ last }) => last));
for (const { client } of lines) await client.end();
parentPort?.postMessage(
  quantile(
    took.sort((a, b) => a - b),
    0.99,
  ),
);
