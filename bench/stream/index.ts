import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Findings, type Measure, measure, median, paired } from '../report.js';
import { cpuSeconds, peakResidentMib, resetPeak, residentMib } from '../support/child.js';
import { type Gateway, startGateway } from '../support/gateway.js';
import { accounts, withPostgres } from '../support/postgres.js';
import { MANIFEST, POLICY } from '../wire/contestants.js';

const LAYOUTS = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  arrow: 'application/vnd.apache.arrow.stream',
} as const;
export type Layout = keyof typeof LAYOUTS;
const NAMES: readonly Layout[] = ['json', 'ndjson', 'arrow'];

/** Time for which the stalling reader reads nothing. */
const STALL_MS = 3_000;

/**
 * `POST /osl/query` for a whole table in each of its layouts, under policy and with the durable log, to a reader that
 * discards the data: throughput, cost, and whether memory grows with the answer or with a reader that stalls.
 */
export async function streamBench(quick: boolean): Promise<Findings> {
  const most = quick ? 100_000 : 1_000_000;
  const rounds = quick ? 3 : 7;
  return withPostgres(accounts(most), async (postgres) => {
    const gateway = await startGateway({ manifestFile: MANIFEST, policyFile: POLICY, postgres });
    try {
      for (let round = 0; round < (quick ? 1 : 3); round++)
        for (const layout of NAMES) await take(gateway, layout, most, 'reads'); // until code is compiled
      const runs = new Map(NAMES.map((layout) => [layout, [] as Run[]]));
      const small = new Map(NAMES.map((layout) => [layout, [] as Run[]]));
      for (let round = 0; round < rounds; round++) {
        for (const layout of NAMES) {
          small.get(layout)?.push(await take(gateway, layout, most / 4, 'reads'));
          runs.get(layout)?.push(await take(gateway, layout, most, 'reads'));
        }
      }
      const measures = NAMES.flatMap((layout) => measuresOf(layout, most, runs, small));
      for (const layout of NAMES) {
        const { grownMib } = await take(gateway, layout, most, 'stalls');
        const about = `a reader that takes no byte for ${STALL_MS / 1_000} s`;
        measures.push(measure(`stream.${layout}.stalled_growth`, 'MiB', [grownMib], about));
      }
      return { measures, tables: [] };
    } finally {
      await gateway.stop();
    }
  });
}

type Runs = ReadonlyMap<Layout, readonly Run[]>;

function measuresOf(layout: Layout, rows: number, runs: Runs, small: Runs): Measure[] {
  const of = (from: Runs, name: Layout, pick: (run: Run) => number) => (from.get(name) ?? []).map(pick);
  const id = `stream.${layout}`;
  const speed = (run: Run): number => run.rowsPerSecond;
  const mine = of(runs, layout, speed);
  return [
    layout === 'json'
      ? measure(`${id}.rows`, 'rows/s', mine)
      : paired(`${id}.rows`, 'rows/s', 'more', mine, of(runs, 'json', speed), 'JSON'),
    measure(
      `${id}.cpu`,
      'µs/row',
      of(runs, layout, (run) => run.cpuUs),
    ),
    measure(
      `${id}.bytes`,
      'bytes/row',
      of(runs, layout, (run) => run.bytes / rows),
    ),
    measure(
      `${id}.growth`,
      'MiB',
      of(runs, layout, (run) => run.grownMib),
      `a quarter of the rows: ${Math.round(median(of(small, layout, (run) => run.grownMib)))}`,
    ),
  ];
}

interface Run {
  readonly rowsPerSecond: number;
  readonly bytes: number;
  /** Processor time of the gateway per row. */
  readonly cpuUs: number;
  /** Peak resident memory of the gateway during the answer, minus that before, in MiB. */
  readonly grownMib: number;
}

/** Reads one answer of `rows` rows. @throws Error if it is incomplete */
export async function take(
  { child, httpPort, token }: Gateway,
  layout: Layout,
  rows: number,
  how: 'reads' | 'stalls',
  more: Readonly<Record<string, string>> = {},
): Promise<Run> {
  const authorization = `Bearer ${await token()}`;
  const osql = `select id, region, owner, balance, opened from osl.entities.account limit ${rows}`;
  resetPeak(child.pid);
  const before = residentMib(child.pid);
  const cpu = cpuSeconds(child.pid);
  const started = performance.now();
  const bytes = await drop(httpPort, { accept: LAYOUTS[layout], authorization, ...more }, { osql }, how);
  const seconds = (performance.now() - started) / 1_000;
  return {
    rowsPerSecond: rows / seconds,
    bytes,
    cpuUs: (1e6 * (cpuSeconds(child.pid) - cpu)) / rows,
    grownMib: peakResidentMib(child.pid) - before,
  };
}

/** Sends `body` and discards the answer as it arrives; returns its size in bytes. */
function drop(
  port: number,
  headers: Readonly<Record<string, string>>,
  body: unknown,
  how: 'reads' | 'stalls',
): Promise<number> {
  return new Promise((resolve, reject) => {
    const content = { 'content-type': 'application/json', ...headers };
    const options = { host: '127.0.0.1', port, path: '/osl/query', method: 'POST', headers: content };
    const outgoing = request(options, (incoming) => {
      if (incoming.statusCode !== 200) reject(new Error(`the gateway answered ${incoming.statusCode}`));
      let bytes = 0;
      let stalled = how === 'reads';
      incoming.on('error', reject);
      incoming.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (stalled) return;
        stalled = true;
        incoming.pause();
        sleep(STALL_MS).then(() => incoming.resume());
      });
      incoming.on('end', () => {
        if (incoming.complete) resolve(bytes);
        else reject(new Error('the answer broke off'));
      });
    });
    outgoing.on('error', reject);
    outgoing.end(JSON.stringify(body));
  });
}
