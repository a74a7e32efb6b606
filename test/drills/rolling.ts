import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { tokenIdIn } from '../../policy/index.js';
import { binariesWithCitus } from '../support/citus.js';
import { BIN, osl, ROOT, temporary } from '../tools/cli/support.js';
import { tokenOf } from './gateway.js';
import { failures, Load, type Outcome, post } from './load.js';
import { freePortRange } from './ports.js';
import { missingRecords, recordsInFiles } from './records.js';
import { MANIFEST, policyText, TABLES } from './shop.js';
import { type Surroundings, scraping, surroundingsOf } from './surroundings.js';
import { type DrillReport, markdownTable } from './table.js';

/*
 * Three gateways behind HAProxy, as deploy/cluster/cluster.sh starts them, with Citus for the data where there is one:
 * all are restarted under load, each part is killed, and what they stand on is taken away.
 */

/** Time after a fault that belongs to it. */
const HEAL_MS = 4_000;
const LEAST_CALM_MS = 4_000;
/** Time that the faults take themselves, with `HEAL_MS` each, on a machine with nothing beside. */
const FAULTS_MS = 200_000;
const MINUTES = 10;
/** Time for which a change of rights is looked at over the balancer. */
const CHANGE_MS = 4_000;
/** Duration of faults that end by themselves. */
const AWAY_MS = 10_000;
const GATEWAYS = [1, 2, 3];
const PORTS = 33;
/** Number of faults, about. */
const STEPS = 11;
/** Folder of the programs of a Postgres that has Citus; null if there is none. */
const CITUS = binariesWithCitus();

interface Row {
  readonly fault: string;
  readonly outcomes: readonly Outcome[];
  readonly lastFailureMs: number | null;
  readonly remark: string;
}

interface Cluster {
  readonly dir: string;
  readonly first: number;
  readonly surroundings: Surroundings;
  run(...args: readonly string[]): Promise<void>;
  token(subject: string): Promise<string>;
  /** Activates a policy in which `user:watch` sees these columns. */
  push(columns: string): Promise<void>;
}

/** @param minutes that the load lasts, about */
export async function rollingDrill(minutes = MINUTES): Promise<DrillReport> {
  const cluster = await prepared();
  try {
    await cluster.run('up', join(cluster.dir, 'm.yaml'), join(cluster.dir, 'p.yaml'));
    return await underLoad(cluster, minutes);
  } finally {
    await cluster.run('down').catch(() => undefined);
    await cluster.surroundings.close();
  }
}

async function prepared(): Promise<Cluster> {
  const dir = temporary();
  const first = await freePortRange(PORTS);
  const env = {
    CLUSTER_DIR: dir,
    CLUSTER_PORT: `${first}`,
    OSL: `${process.execPath} ${BIN}`,
    ...(CITUS !== null && { CLUSTER_CITUS: CITUS }),
  };
  const surroundings = await surroundingsOf(dir, [first + 2, first + 3]);
  const hosts = `127.0.0.1:${first + 2},127.0.0.1:${first + 3}`;
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'm.yaml'), MANIFEST);
  writeFileSync(join(dir, 'p.yaml'), policyText('id'));
  // Without Citus the data is beside the control database. It is only read, so a standby will do.
  const store = CITUS === null ? `${hosts}/shop` : `127.0.0.1:${first + 5}/postgres`;
  writeFileSync(
    join(dir, 'env'),
    `${[`STORE_URL='postgres://osl_reader@${store}'`, ...surroundings.env].join('\n')}\n`,
  );
  const data =
    CITUS === null
      ? `create database shop;\n\\connect shop\n${TABLES}\n`
      : `${TABLES}\nselect create_distributed_table('shop.account', 'id');\n`;
  writeFileSync(join(dir, 'data.sql'), data);
  const run = async (...args: readonly string[]): Promise<void> => {
    const script = join(ROOT, 'deploy', 'cluster', 'cluster.sh');
    // What it starts keeps its output open, so nothing of it is read.
    const child = spawn(script, args, {
      env: { ...process.env, ...env },
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    const [code] = await once(child, 'exit');
    if (code !== 0) throw new Error(`cluster.sh ${args.join(' ')} ended with status ${String(code)}`);
  };
  const token = (subject: string): Promise<string> =>
    tokenOf(join(dir, 'gateway-1'), join(dir, 'keys'), subject);
  const push = async (columns: string): Promise<void> => {
    const file = join(dir, 'policy.yaml');
    writeFileSync(file, policyText(columns));
    const args = ['policy', 'push', file, '--manifest', join(dir, 'm.yaml'), '--activate'];
    const { code, stderr } = await osl(args, {
      env: { OSL_CONTROL_URL: `postgres://osl_gateway@${hosts}/control` },
    });
    if (code !== 0) throw new Error(stderr);
  };
  return { dir, first, surroundings, run, token, push };
}

async function underLoad(cluster: Cluster, minutes: number): Promise<DrillReport> {
  const { first, run, token, surroundings } = cluster;
  const balancer = { name: 'balancer', httpPort: () => first, pgPort: () => first + 1, token };
  const load = new Load([balancer], { clients: 6, pauseMs: 40, sessionQueries: 100 });
  const monitor = scraping(GATEWAYS.map((n) => first + 10 * n));
  const rows: Row[] = [];
  const calmMs = Math.max(LEAST_CALM_MS, (minutes * 60_000 - FAULTS_MS) / STEPS);
  const step = async (fault: string, act: () => Promise<string>): Promise<void> => {
    await sleep(calmMs);
    const began = performance.now();
    const remark = await act();
    await sleep(HEAL_MS);
    const outcomes = load.between(began, performance.now());
    const last = outcomes.filter(({ result }) => result !== 'right').at(-1);
    rows.push({ fault, outcomes, lastFailureMs: last === undefined ? null : last.ended - began, remark });
    process.stderr.write(`${fault}\n`);
  };
  const killed =
    (name: string, away = 2_000) =>
    async (): Promise<string> => {
      await run('kill', name);
      await sleep(away);
      await run('start', name);
      return '';
    };
  const restarted = (grants: boolean): Promise<void> =>
    step(
      'all gateways restarted, one after another; a policy activated and a token revoked meanwhile',
      async () => {
        const rolled = run('roll');
        await sleep(3_000);
        const policy = await lastStale(cluster, grants);
        const revoked = await lastAccepted(cluster);
        await rolled;
        return `last answer under the old policy after ${policy} s, last use of the token after ${revoked} s`;
      },
    );
  try {
    await restarted(true);
    await step('gateway-2 killed', killed('gateway-2'));
    await step('HAProxy killed', killed('haproxy', 0));
    if (CITUS !== null) {
      await step('a worker of Citus killed', killed('worker-1'));
      await step('the coordinator of Citus killed', killed('coordinator'));
    }
    await step(`no answer of the control database for ${AWAY_MS / 1_000} s`, async () => {
      const healed = surroundings.partition(AWAY_MS);
      const stale = await lastStale(cluster, false, AWAY_MS + CHANGE_MS);
      await healed;
      return `a policy activated then: last answer under the old one after ${stale} s`;
    });
    await step(`disk of gateway-3 full for ${AWAY_MS / 1_000} s`, () => tried(surroundings.fillDisk));
    await step(`clock of gateway-2 an hour ahead for ${AWAY_MS / 1_000} s`, () =>
      tried(surroundings.stepClock),
    );
    await step('standby of the control database killed', killed('standby'));
    await step('primary of the control database killed, standby promoted', async () => {
      await run('kill', 'primary');
      await sleep(2_000);
      await run('promote');
      return `a policy activated then: last answer under the old one after ${await lastStale(cluster, true)} s`;
    });
    await restarted(false);
  } finally {
    await load.stop();
  }
  const { read, failed } = await monitor.stop();
  await run('down').catch(() => undefined); // of the primary nothing is left
  const audits = GATEWAYS.map((n) => join(cluster.dir, `gateway-${n}`));
  const logs = await Promise.all(audits.map((dir) => recordsInFiles(join(dir, 'audit'))));
  const verified = await Promise.all(audits.map((dir) => osl(['audit', 'verify', '--data-dir', dir])));
  return reportOf(
    load.outcomes,
    rows,
    `acknowledged answers without a record ${missingRecords(load.outcomes, logs)}; requests whose outcome was lost in a kill, and is recorded as unknown ${logs.reduce((sum, { unknown }) => sum + unknown, 0)}; metrics read ${read} times, not answered ${failed} times`,
    missingRecords(load.outcomes, logs),
    verified.map(({ code }) => code),
  );
}

/** Does `fault`; the reason if that is impossible here. */
async function tried(fault: ((ms: number) => Promise<void>) | string): Promise<string> {
  if (typeof fault === 'string') return `not tried: ${fault}`;
  await fault(AWAY_MS);
  return '';
}

const seconds = (ms: number): string => (ms / 1_000).toFixed(1);

/** Activates a policy; seconds after which the last answer over the balancer was that of the old one. */
async function lastStale(
  { first, token, push }: Cluster,
  grants: boolean,
  lookMs = CHANGE_MS,
): Promise<string> {
  await push(grants ? 'id, amount' : 'id');
  const began = performance.now();
  let last = began;
  const osql = 'select amount from osl.entities.account where id = 1';
  while (performance.now() - began < lookMs) {
    const asked = performance.now();
    const reply = await post(false, first, osql, await token('user:watch')).catch(() => null);
    if (reply?.status === (grants ? 400 : 200)) last = asked;
    await sleep(20);
  }
  return seconds(last - began);
}

/** Revokes a token at a gateway that is up; seconds after which it was last accepted over the balancer. */
async function lastAccepted({ first, token }: Cluster): Promise<string> {
  const used = await token('user:load');
  const osql = 'select name from osl.entities.account where id = 1';
  const ports = GATEWAYS.map((n) => first + 10 * n + 2);
  let done = false;
  while (!done)
    for (const port of ports) done ||= await revoke(port, tokenIdIn(used), await token('user:admin'));
  const began = performance.now();
  let last = began;
  while (performance.now() - began < CHANGE_MS) {
    const asked = performance.now();
    const reply = await post(false, first, osql, used).catch(() => null);
    if (reply?.status === 200) last = asked;
    await sleep(20);
  }
  return seconds(last - began);
}

/** False if this gateway does not listen now. */
function revoke(port: number, id: string | null, token: string): Promise<boolean> {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` };
  return new Promise((resolve) => {
    const sent = request(
      { host: '127.0.0.1', port, path: '/admin/tokens/revoke', method: 'POST', headers, agent: false },
      (reply) => reply.resume().once('end', () => resolve(reply.statusCode === 200)),
    );
    sent.once('error', () => resolve(false));
    sent.end(JSON.stringify({ token_id: id }));
  });
}

function reportOf(
  all: readonly Outcome[],
  rows: readonly Row[],
  recorded: string,
  missing: number,
  verified: readonly (number | null)[],
): DrillReport {
  const of = (row: Row, surface: string, what: string): readonly Outcome[] =>
    row.outcomes.filter((one) => one.surface === surface && one.what === what);
  const shown = rows.map((row) => [
    row.fault,
    `${row.outcomes.length}`,
    failures(of(row, 'rest', 'query')),
    failures(of(row, 'wire', 'connect')),
    failures(of(row, 'wire', 'query')),
    row.lastFailureMs === null ? '-' : seconds(row.lastFailureMs),
    row.remark,
  ]);
  const headings = [
    'fault',
    'queries and sessions',
    'failed over REST',
    'new sessions refused',
    'failed in open sessions',
    'last failure after, s',
    '',
  ];
  const wrong = all.filter(({ result }) => result === 'wrong').length;
  const inSteps = new Set(rows.flatMap(({ outcomes }) => outcomes));
  const beyond = all.filter((one) => one.result !== 'right' && !inSteps.has(one));
  const roll = rows.filter(({ fault }) => fault.startsWith('all gateways'));
  const rolled = roll.flatMap(({ outcomes }) => outcomes).filter(({ result }) => result !== 'right');
  // Sessions that are open end in order, after their statement.
  const unexpected = rolled.filter(
    ({ surface, what, result }) => !(surface === 'wire' && what === 'query' && result === '57P01'),
  );
  const summary = [
    `answers ${all.filter(({ result }) => result === 'right').length}, wrong ${wrong}, failed outside these: ${failures(beyond)}`,
    recorded,
    `osl audit verify: exit status ${verified.join(', ')}`,
  ];
  const passed =
    wrong + beyond.length + missing + unexpected.length === 0 && verified.every((code) => code === 0);
  return { text: `${markdownTable(headings, shown)}\n\n${summary.join('\n')}`, passed };
}
