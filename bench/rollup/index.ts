import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { ready } from 'osl-compiler';
import type { Client } from 'pg';
import { parseManifest, readManifestText } from '../../src/model/manifest/index.js';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import { type Findings, type Measure, measure, paired } from '../report.js';
import { type Gateway, startGateway } from '../support/gateway.js';
import { withClient, withPostgres } from '../support/postgres.js';

const MANIFEST = 'bench/rollup/manifest.yaml';
const POLICY = 'bench/rollup/policy.yaml';
const run = promisify(execFile);

/**
 * The same two queries under a row filter: from a rollup and from the entity, through the gateway over REST; as a
 * hand-written query on the rollup's table; and as Cube's own SQL on the pre-aggregation that Cube creates, without
 * Cube's server. Also a cached answer compared with one that is computed.
 */
export async function rollupBench(quick: boolean): Promise<Findings> {
  await ready();
  const [rows, rounds] = quick ? [20_000, 5] : [1_000_000, 15];
  return withPostgres(tables(rows), async (postgres) => {
    const gateway = await startGateway({ manifestFile: MANIFEST, policyFile: POLICY, postgres });
    try {
      await buildRollup(postgres);
      return { measures: await compared(gateway, postgres, rounds), tables: [] };
    } finally {
      await gateway.stop();
    }
  });
}

function tables(rows: number): readonly string[] {
  const table = `
    create schema bench;
    create table bench.sale (
      id int8 primary key, region text not null, kind text not null, at timestamptz not null, qty int4 not null,
      amount numeric not null);
    insert into bench.sale
      select i, case when i % 4 = 0 then 'us' else 'eu' end, 'kind ' || i % 20,
        timestamptz '2026-01-01 00:00:00+00' + (i % 365) * interval '1 day' + (i % 86399) * interval '1 second', i % 10,
        (i % 1000) / 4.0
      from generate_series(1, ${rows}) as i;
    grant usage on schema bench to osl_reader;
    grant select on bench.sale to osl_reader;
    create schema cube_pre;
    grant usage on schema cube_pre to osl_reader;
    alter default privileges in schema cube_pre grant select on tables to osl_reader`;
  return [table, 'vacuum analyze bench.sale'];
}

/** Builds the rollup with the command that an operator uses. */
async function buildRollup(postgres: NativePostgres): Promise<void> {
  const dataDir = mkdtempSync(join(tmpdir(), 'osl-bench-'));
  const files = ['--manifest', resolve(MANIFEST), '--policy', resolve(POLICY), '--data-dir', dataDir];
  const { readerUrl: BENCH_DATABASE_URL, url: BENCH_DATABASE_URL_SYSTEM } = postgres;
  const env = { ...process.env, BENCH_DATABASE_URL, BENCH_DATABASE_URL_SYSTEM };
  await run(process.execPath, [resolve('bin/osl.js'), 'rollup', 'build', ...files], { env });
  rmSync(dataDir, { recursive: true, force: true });
}

/** SQL that Cube would send for one query. */
interface OfCube {
  readonly sql: string;
  readonly params: readonly string[];
  readonly tables: readonly { readonly load: readonly [string, readonly string[]] }[];
}

const BY_MONTH = `select date_trunc('month', "#t") as month, sum("#s2") as total from ROLLUP where region = 'eu'
  and "#t" >= '2026-01-01' and "#t" < '2027-01-01' group by 1`;
const BY_KIND = `select kind, sum("#n") as n, sum("#s2") as total from ROLLUP where region = 'eu' group by 1`;

const QUESTIONS = {
  by_kind: {
    body: { osql: 'select kind, count(*) as n, sum(amount) as total from sale group by kind' },
    written: BY_KIND,
  },
  by_month: {
    body: {
      metrics: ['total'],
      group_by: ['metric_time__month'],
      time_constraint: { start: '2026-01-01', end: '2026-12-31' },
    },
    written: BY_MONTH,
  },
} as const;

async function compared(
  gateway: Gateway,
  postgres: NativePostgres,
  rounds: number,
): Promise<readonly Measure[]> {
  const manifest = parseManifest(await readManifestText(MANIFEST), MANIFEST);
  const { schema = '', table = '' } = manifest.rollups.get('main')?.rollup ?? {};
  const cube = await sqlOfCube();
  const measures: Measure[] = [];
  await withClient(postgres.url, async (owner) => {
    if (cube !== null) await owner.query(cube['by_kind']?.tables[0]?.load[0] ?? '');
  });
  return withClient(postgres.readerUrl, async (client) => {
    const token = await gateway.token();
    await untilUsed(gateway, token);
    for (const [name, { body, written }] of Object.entries(QUESTIONS)) {
      const byHand = written.replace('ROLLUP', `${schema}."${table}"`);
      const times: Record<'over' | 'live' | 'hand' | 'cube', number[]> = {
        over: [],
        live: [],
        hand: [],
        cube: [],
      };
      const theirs = cube?.[name] ?? null;
      for (let i = -1; i < rounds; i++) {
        const over = await timed(() => ask(gateway, token, body));
        const live = await timed(() => ask(gateway, token, body, { 'cache-control': 'no-cache' }));
        const hand = await timed(() => totalOf(client, byHand, []));
        const others = theirs === null ? null : await timed(() => totalOf(client, theirs.sql, theirs.params));
        for (const found of [live, hand, ...(others === null ? [] : [others])])
          if (Math.abs(found.value - over.value) > 1e-6)
            throw new Error(`${name}: ${found.value} is not ${over.value}`);
        if (i < 0) continue; // the first of each is warm-up
        times.over.push(over.ms);
        times.live.push(live.ms);
        times.hand.push(hand.ms);
        if (others !== null) times.cube.push(others.ms);
      }
      const id = `rollup.${name}`;
      measures.push(paired(`${id}.vs_entity`, 'ms', 'less', times.over, times.live, 'the entity itself'));
      measures.push(
        paired(`${id}.vs_hand`, 'ms', 'less', times.over, times.hand, 'by hand on the rollup, no gateway'),
      );
      if (times.cube.length > 0)
        measures.push(
          paired(
            `${id}.vs_cube_sql`,
            'ms',
            'less',
            times.over,
            times.cube,
            "Cube's SQL on its own, no server",
          ),
        );
    }
    measures.push(await givenAgain(gateway, token, rounds));
    return measures;
  });
}

/** Times of a query that no rollup answers, computed and then served from the answer cache. */
async function givenAgain(gateway: Gateway, token: string, rounds: number): Promise<Measure> {
  const [read, again]: [number[], number[]] = [[], []];
  for (let i = 0; i < rounds; i++) {
    const body = {
      osql: `select kind, count(*) as n, sum(amount) as total from sale where qty <> ${100 + i} group by kind`,
    };
    read.push((await timed(() => ask(gateway, token, body))).ms);
    again.push((await timed(() => ask(gateway, token, body))).ms);
  }
  return again.length > 0
    ? paired('rollup.given_again', 'ms', 'less', again, read, 'the same, read')
    : measure('rollup.given_again', 'ms', again);
}

async function timed(work: () => Promise<number>): Promise<{ readonly ms: number; readonly value: number }> {
  const started = performance.now();
  const value = await work();
  return { ms: performance.now() - started, value };
}

type Answered = {
  readonly rows: readonly Record<string, unknown>[];
  readonly freshness?: { readonly from: string };
};

async function answered(gateway: Gateway, token: string, body: object, more: object = {}): Promise<Answered> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}`, ...more };
  const url = `http://127.0.0.1:${gateway.httpPort}/osl/query`;
  const reply = await fetch(url, { method: 'POST', headers, body: JSON.stringify(body) });
  if (reply.status !== 200) throw new Error(await reply.text());
  return (await reply.json()) as Answered; // the product's own answer format
}

/** Runs a query and returns the sum of its totals, which must be the same for all contestants. */
async function ask(gateway: Gateway, token: string, body: object, more: object = {}): Promise<number> {
  const { rows } = await answered(gateway, token, body, more);
  return rows.reduce((sum, row) => sum + Number(row['total']), 0);
}

async function totalOf(client: Client, sql: string, params: readonly string[]): Promise<number> {
  const { rows } = await client.query<Record<string, unknown>>(sql, [...params]);
  return rows.reduce((sum, row) => sum + Number(row['total'] ?? row['sales__total']), 0);
}

async function untilUsed(gateway: Gateway, token: string): Promise<void> {
  for (let i = 0; i < 200; i++) {
    const { freshness } = await answered(gateway, token, QUESTIONS.by_kind.body);
    if (freshness?.from === 'rollup') return;
    await new Promise((done) => setTimeout(done, 100));
  }
  throw new Error('the rollup is not used');
}

/** SQL generated by Cube; null if Cube is not installed (`npm ci --prefix bench/peers`). */
async function sqlOfCube(): Promise<Readonly<Record<string, OfCube>> | null> {
  try {
    const { stdout } = await run(process.execPath, [resolve('bench/peers/rollup-cube.mjs')]);
    return JSON.parse(stdout) as Readonly<Record<string, OfCube>>; // what that file prints
  } catch {
    return null;
  }
}
