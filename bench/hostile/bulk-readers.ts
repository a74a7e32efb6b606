import { type ChildProcess, spawn } from 'node:child_process';
import { setTimeout } from 'node:timers/promises';
import { Worker } from 'node:worker_threads';
import { Client } from 'pg';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import { type Measure, measure, paired, quantile } from '../report.js';
import { connected } from '../support/client.js';
import { type Gateway, SUBJECT } from '../support/gateway.js';
import { type PgBouncer, startPgBouncer } from '../support/pgbouncer.js';
import type { ReaderStart } from './json-reader.js';

/** Duration, number of rounds, and table size. */
export interface BulkPlan {
  readonly rows: number;
  readonly rounds: number;
  readonly seconds: number;
}

/** Interval between point queries of the honest client, ms. */
const PACE_MS = 10;
/** Time until the readers are streaming, ms. */
const SETTLE_MS = 500;
const READERS = 3;

/** One route to the same rows. */
interface Way {
  readonly name: string;
  client(): Promise<Client>;
  readonly table: string;
  /** Starts readers of the whole table, by kind of load. */
  readonly loads: ReadonlyMap<LoadName, () => Promise<Readers>>;
}

type LoadName = 'one COPY' | 'three COPY' | 'three JSON';

interface Readers {
  stop(): Promise<void>;
}

/** Latency of one client's point queries while bulk readers run: through the gateway, PgBouncer and directly. */
export async function bulkReaders(
  gateway: Gateway,
  postgres: NativePostgres,
  plan: BulkPlan,
): Promise<readonly Measure[]> {
  const bouncer = await startPgBouncer(postgres.readerUrl, 20);
  try {
    const ours = gatewayWay(gateway);
    const direct = upstreamWay('direct', postgres.readerUrl);
    const others = [
      direct,
      ...(bouncer === null ? [] : [upstreamWay(bouncer.version, bouncerUrl(bouncer, postgres))]),
    ];
    const found = new Map<Way, ReadonlyMap<LoadName | 'nobody', readonly (readonly number[])[]>>();
    for (const way of [ours, ...others]) found.set(way, await experience(way, plan));
    return [ours, ...others].flatMap((way) =>
      measuresOf(way, way === ours ? null : way.name, found.get(way)),
    );
  } finally {
    await bouncer?.stop();
  }
}

type Rounds = ReadonlyMap<LoadName | 'nobody', readonly (readonly number[])[]>;

/** Latencies of `way` alone and under each load, in ms, ascending, by round. */
async function experience(way: Way, plan: BulkPlan): Promise<Rounds> {
  const loads: (LoadName | 'nobody')[] = ['nobody', ...way.loads.keys()];
  const rounds = new Map(loads.map((load) => [load, [] as (readonly number[])[]]));
  const client = await way.client();
  try {
    await asked(client, way, plan.rows, 2); // until its code is compiled
    for (let round = 0; round < plan.rounds; round++) {
      for (const load of loads) {
        const readers = load === 'nobody' ? null : await way.loads.get(load)?.();
        await setTimeout(SETTLE_MS);
        rounds.get(load)?.push(await asked(client, way, plan.rows, plan.seconds));
        await readers?.stop();
      }
    }
  } finally {
    await client.end();
  }
  return rounds;
}

async function asked(
  client: Client,
  { table }: Way,
  rows: number,
  seconds: number,
): Promise<readonly number[]> {
  const took: number[] = [];
  for (const until = performance.now() + 1_000 * seconds; performance.now() < until; ) {
    const began = performance.now();
    await client.query(`select balance from ${table} where id = $1`, [1 + Math.floor(Math.random() * rows)]);
    took.push(performance.now() - began);
    await setTimeout(Math.max(0, PACE_MS - (performance.now() - began)));
  }
  return took.sort((a, b) => a - b);
}

function measuresOf({ loads }: Way, other: string | null, rounds: Rounds | undefined): Measure[] {
  const of = (load: LoadName | 'nobody', q: number): readonly number[] =>
    (rounds?.get(load) ?? []).map((took) => quantile(took, q));
  const id = (load: string, q: string): string =>
    `hostile.point.${load.replace(' ', '_').toLowerCase()}.${other === null ? '' : `${other.split(' ')[0]?.toLowerCase()}.`}${q}`;
  return [
    measure(id('nobody', 'p50'), 'ms', of('nobody', 0.5)),
    measure(id('nobody', 'p99'), 'ms', of('nobody', 0.99)),
    ...[...loads.keys()].flatMap((load) => [
      paired(id(load, 'p50'), 'ms', 'less', of(load, 0.5), of('nobody', 0.5), 'alone'),
      paired(id(load, 'p99'), 'ms', 'less', of(load, 0.99), of('nobody', 0.99), 'alone'),
    ]),
  ];
}

function gatewayWay(gateway: Gateway): Way {
  const table = 'osl.entities.account';
  const copy = (count: number) => async (): Promise<Readers> =>
    copyReaders(table, count, {
      PGHOST: '127.0.0.1',
      PGPORT: `${gateway.pgPort}`,
      PGUSER: SUBJECT,
      PGDATABASE: 'osl',
      PGPASSWORD: await gateway.token(),
    });
  return {
    name: 'gateway',
    table,
    client: () => connected(gateway),
    loads: new Map<LoadName, () => Promise<Readers>>([
      ['one COPY', copy(1)],
      ['three COPY', copy(READERS)],
      ['three JSON', async () => jsonReaders(gateway, await gateway.token())],
    ]),
  };
}

function upstreamWay(name: string, connectionString: string): Way {
  const table = 'bench.account';
  const { hostname, port, username, password, pathname } = new URL(connectionString);
  const environment = {
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: username,
    PGPASSWORD: password,
    PGDATABASE: pathname.slice(1),
  };
  return {
    name,
    table,
    client: async () => {
      const client = new Client({ connectionString });
      await client.connect();
      return client;
    },
    loads: new Map([
      ['one COPY', async () => copyReaders(table, 1, environment)],
      ['three COPY', async () => copyReaders(table, READERS, environment)],
    ]),
  };
}

function bouncerUrl({ port }: PgBouncer, { readerUrl }: NativePostgres): string {
  const url = new URL(readerUrl);
  url.port = `${port}`;
  url.pathname = '/bench';
  return url.href;
}

/** Starts `psql` processes that copy the whole table repeatedly. */
function copyReaders(table: string, count: number, environment: Readonly<Record<string, string>>): Readers {
  let stopping = false;
  const running = new Set<ChildProcess>();
  const sql = `copy (select id, region, owner, balance, opened from ${table}) to stdout`;
  const read = async (): Promise<void> => {
    while (!stopping) {
      const child = spawn('psql', ['-X', '-q', '-o', '/dev/null', '-c', sql], {
        env: { ...process.env, PGSSLMODE: 'disable', ...environment },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      let said = '';
      child.stderr.on('data', (text: Buffer) => {
        said += text.toString('utf8');
      });
      running.add(child);
      const status = await new Promise((resolve) => child.once('exit', resolve));
      running.delete(child);
      if (!stopping && status !== 0) throw new Error(`a reader failed: ${said}`);
    }
  };
  const reading = Promise.all(Array.from({ length: count }, read));
  reading.catch(() => undefined); // reported by `stop`
  return {
    async stop() {
      stopping = true;
      for (const child of running) child.kill('SIGTERM');
      await reading;
    },
  };
}

/** Starts REST clients, in their own thread, that read the whole table as JSON repeatedly. */
function jsonReaders({ httpPort }: Gateway, token: string): Readers {
  const workerData: ReaderStart = { port: httpPort, token, count: READERS };
  const worker = new Worker(new URL('./json-reader.js', import.meta.url), { workerData });
  const ended = new Promise<void>((resolve, reject) => {
    worker.once('error', reject);
    worker.once('exit', () => resolve());
  });
  ended.catch(() => undefined); // reported by `stop`
  return {
    async stop() {
      await worker.terminate();
      await ended;
    },
  };
}
