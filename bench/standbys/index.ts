import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import { readRecords } from '../../audit/index.js';
import { type Group, startGroup } from '../../test/support/replicated-postgres.js';
import { type Findings, type Measure, measure, median, paired, type Table } from '../report.js';
import { connected } from '../support/client.js';
import { type Gateway, startGateway } from '../support/gateway.js';
import { pgbench } from '../support/pgbench.js';
import { accounts } from '../support/postgres.js';
import { inTurn } from '../support/rounds.js';
import { gatewayContestant, MANIFEST, POLICY } from '../wire/contestants.js';
import { pointQuery } from '../wire/point.js';

const ROWS = 100_000;
const COUNTS = [0, 1, 2] as const;
const CLIENTS = 16;

/** Queries of a load, by name: one row by its key, and a sum that occupies the database for some milliseconds. */
const LOADS = {
  point: pointQuery(ROWS),
  sum: (table: string): string =>
    `\\set id random(1, ${ROWS - 20_000})\nselect sum(balance) from ${table} where id between :id and :id + 20000;\n`,
} as const;
type LoadName = keyof typeof LOADS;

/** A gateway with so many standbys. */
interface Contestant {
  readonly count: (typeof COUNTS)[number];
  readonly gateway: Gateway;
  readonly dataDir: string;
}

/**
 * Rate of queries through gateways with no, one and two standbys, how the queries spread over the servers, and what one
 * query costs if a standby answers it and not the primary. All servers, gateways and clients share this machine.
 */
export async function standbysBench(quick: boolean): Promise<Findings> {
  const group = await startGroup(COUNTS.at(-1) ?? 0);
  if (group === null) throw new Error('no server binaries of Postgres to start a primary and standbys with');
  const dir = mkdtempSync(join(tmpdir(), 'osl-bench-'));
  const contestants: Contestant[] = [];
  try {
    await fill(group);
    for (const count of COUNTS) contestants.push(await contestantWith(count, group, dir));
    const plan = quick ? { rounds: 2, seconds: 1, asks: 100 } : { rounds: 5, seconds: 2, asks: 2_000 };
    const rates = await rateFindings(contestants, plan);
    return {
      measures: [...rates.measures, ...(await costMeasures(contestants, plan.asks))],
      tables: rates.tables,
    };
  } finally {
    for (const { gateway } of contestants) await gateway.stop();
    rmSync(dir, { recursive: true, force: true });
    await group.stop();
  }
}

async function fill({ primary, standbys }: Group): Promise<void> {
  for (const script of accounts(ROWS)) await primary.query(script);
  const sql = `select count(*)::int as n from pg_class where relname = 'account' and reltuples = ${ROWS}`;
  for (const standby of standbys) while ((await standby.query(sql))[0]?.['n'] !== 1) await sleep(50);
}

async function contestantWith(
  count: Contestant['count'],
  { primary, standbys }: Group,
  dir: string,
): Promise<Contestant> {
  const names = standbys.slice(0, count).map((_, i) => `BENCH_STANDBY_${i + 1}`);
  const urlOf = ({ port }: { readonly port: number }): string =>
    `postgres://osl_reader:osl@127.0.0.1:${port}/postgres`;
  const urls = Object.fromEntries(names.map((name, i) => [name, urlOf(standbys[i] ?? primary)]));
  const manifestFile = join(dir, `${count}.yaml`);
  const lines = count === 0 ? '' : `    standbys: { url_envs: [${names.join(', ')}] }\n`;
  writeFileSync(manifestFile, readFileSync(MANIFEST, 'utf8').replace(/(?<=url_env: .*\n)/, lines));
  let dataDir = '';
  const gateway = await startGateway({
    manifestFile,
    policyFile: POLICY,
    postgres: { url: primary.url, readerUrl: urlOf(primary), stop: async () => undefined },
    prepare: async (at) => {
      dataDir = at;
    },
    // Three gateways share the connections of the primary.
    environment: { ...urls, OSL_POOL_SIZE: '8' },
  });
  while (usableIn(await metricsOf(gateway)) < count) await sleep(50);
  return { count, gateway, dataDir };
}

async function metricsOf({ httpPort }: Gateway): Promise<string> {
  return (await fetch(`http://127.0.0.1:${httpPort}/metrics`)).text();
}

function usableIn(metrics: string): number {
  return [...metrics.matchAll(/^osl_standby_usable\{standby="\d"\} 1/gm)].length;
}

// ---------------------------------------------------------------- rate and spread

interface Plan {
  readonly rounds: number;
  readonly seconds: number;
}

async function rateFindings(contestants: readonly Contestant[], plan: Plan): Promise<Findings> {
  const measures: Measure[] = [];
  const rows: string[][] = [];
  for (const name of Object.keys(LOADS) as LoadName[]) {
    const rate = async ({ gateway }: Contestant, seconds: number): Promise<number> =>
      (
        await pgbench(gatewayContestant(gateway).target(LOADS[name]), {
          mode: 'simple',
          clients: CLIENTS,
          seconds,
        })
      ).tps;
    for (const contestant of contestants) await rate(contestant, 1); // their code and caches are cold
    const before = await Promise.all(contestants.map(answersBySource));
    const rates = await inTurn(contestants, plan.rounds, (contestant) => rate(contestant, plan.seconds));
    const [without = []] = rates;
    for (const [i, { count }] of contestants.entries()) {
      const id = `standbys.${name}.c${CLIENTS}.${count}`;
      measures.push(
        count === 0
          ? measure(id, 'q/s', rates[i] ?? [])
          : paired(id, 'q/s', 'more', rates[i] ?? [], without, 'no standby'),
      );
    }
    const after = await Promise.all(contestants.map(answersBySource));
    for (const [i, { count }] of contestants.entries()) {
      const shares = sharesOf(before[i] ?? new Map(), after[i] ?? new Map());
      rows.push([name, String(count), ...shares]);
    }
  }
  return { measures, tables: [{ ...SPREAD, rows }] };
}

const SERVERS = ['primary', 'BENCH_STANDBY_1', 'BENCH_STANDBY_2'] as const;

const SPREAD: Omit<Table, 'rows'> = {
  name: 'standbys: spread',
  about:
    'Answers by the server that gave them, as the outcome records of the audit log name it, in the runs of the rates above.',
  head: ['query', 'standbys', 'primary', 'first standby', 'second standby'],
};

/** Number of answers in a gateway's log, by the server that was read. */
async function answersBySource({ dataDir }: Contestant): Promise<ReadonlyMap<string, number>> {
  await sleep(200); // the last outcomes reach the log some milliseconds after their answers
  const counts = new Map<string, number>();
  for await (const { kind, action, standby } of readRecords(join(dataDir, 'audit'))) {
    if (kind !== 'outcome' || action !== 'query') continue;
    const source = standby?.name ?? 'primary';
    counts.set(source, (counts.get(source) ?? 0) + 1);
  }
  return counts;
}

function sharesOf(
  before: ReadonlyMap<string, number>,
  after: ReadonlyMap<string, number>,
): readonly string[] {
  const counts = SERVERS.map((name) => (after.get(name) ?? 0) - (before.get(name) ?? 0));
  const all = counts.reduce((sum, n) => sum + n, 0);
  return counts.map((n) => `${n} (${((100 * n) / all).toFixed(1)} %)`);
}

// ---------------------------------------------------------------- cost of one query

/** A session whose queries a standby answers, and one whose queries the primary answers, each query in turn. */
async function costMeasures(contestants: readonly Contestant[], asks: number): Promise<readonly Measure[]> {
  const gateway = contestants.find(({ count }) => count === 1)?.gateway;
  if (gateway === undefined) throw new Error('no gateway with one standby');
  const standby = await connected(gateway);
  const primary = await connected(gateway);
  try {
    await primary.query('set osl.cache = off');
    const times = { standby: [] as number[], primary: [] as number[] };
    for (let i = 0; i < asks; i += 1) {
      const id = 1 + ((i * 7_919) % ROWS);
      const pair = [
        [standby, times.standby],
        [primary, times.primary],
      ] as const;
      for (const [client, into] of i % 2 === 0 ? pair : pair.toReversed())
        into.push(await timeOf(client, id));
    }
    await requireSource(standby, 'standby');
    await requireSource(primary, 'live');
    const measures = [
      paired('standbys.one.latency', 'µs', 'less', times.standby, times.primary, 'the primary'),
      measure(
        'standbys.one.difference',
        'µs',
        blocksOf(
          times.standby.map((us, i) => us - (times.primary[i] ?? Number.NaN)),
          10,
        ).map(median),
      ),
    ];
    return measures;
  } finally {
    await standby.end();
    await primary.end();
  }
}

/** @returns µs */
async function timeOf(client: Client, id: number): Promise<number> {
  const began = performance.now();
  await client.query(`select balance from osl.entities.account where id = ${id}`);
  return 1_000 * (performance.now() - began);
}

async function requireSource(client: Client, source: 'live' | 'standby'): Promise<void> {
  const { rows } = await client.query('show osl.freshness');
  const said = String(rows[0]?.['osl.freshness']);
  if (!said.startsWith(source)) throw new Error(`the last answer was of ${said}, not of ${source}`);
}

/** Splits `values` into `count` runs of equal length. */
function blocksOf(values: readonly number[], count: number): readonly (readonly number[])[] {
  const size = Math.floor(values.length / count);
  return Array.from({ length: count }, (_, i) => values.slice(i * size, (i + 1) * size));
}
