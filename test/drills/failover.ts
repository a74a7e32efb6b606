import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { gatewayGrants, SCHEMA } from '../../audit/table/index.js';
import { osl, temporary } from '../tools/cli/support.js';
import { DrillGateway } from './gateway.js';
import { failures, Load, type Outcome, p99, post, type Target } from './load.js';
import { missing, type PatroniCluster, startPatroni, TIMES } from './patroni.js';
import { missingRecords, recordsInFiles, recordsInTable } from './records.js';
import { MANIFEST, policyText, TABLES } from './shop.js';
import { type DrillReport, markdownTable } from './table.js';

/*
 * The leader of three Postgres nodes under Patroni is killed again and again under load. The cluster has the data, the
 * control database, the counts of limits and the audit log of the second gateway; the first has its log in files.
 */

const CALM_MS = 5_000;
/** The goal: p99 is as before within this time of a promotion. */
const BACK_MS = 5_000;
const SECOND_MS = 1_000;

interface Round {
  readonly killed: string;
  /** ms from the kill until Patroni had another leader. */
  readonly promotedMs: number;
  readonly outcomes: readonly Outcome[];
  /** ms from the kill until the last failure; null if there was none. */
  readonly lastFailureMs: number | null;
  readonly before: number;
  readonly after: number;
  /** ms until a policy that was activated then was in force at both gateways. */
  readonly policyMs: number;
}

/** @param rounds how often the leader is killed */
export async function failoverDrill(rounds = 10): Promise<DrillReport> {
  const lacking = missing();
  if (lacking !== null) throw new Error(`this drill needs the Debian package ${lacking}`);
  const cluster = await startPatroni();
  try {
    return await underLoad(cluster, rounds);
  } finally {
    await cluster.stop();
  }
}

async function underLoad(cluster: PatroniCluster, rounds: number): Promise<DrillReport> {
  const { gateways, activate, control } = await startGateways(cluster);
  const pids = gateways.map(({ server }) => server.record()['pid']);
  const load = new Load(gateways.map(targetOf), { clients: 3, pauseMs: 40, sessionQueries: 500 });
  const found: Round[] = [];
  try {
    await sleep(CALM_MS);
    for (let round = 1; round <= rounds; round++) {
      found.push(await oneRound(cluster, load, () => activate(round % 2 === 0, gateways)));
      process.stderr.write(`${round} of ${rounds}\n`);
    }
  } finally {
    await load.stop();
  }
  const alive = gateways.filter(({ server }, i) => server.alive && server.record()['pid'] === pids[i]).length;
  const unhandled = gateways.filter(({ server }) =>
    /nothing handled|internal error/.test(server.stderr),
  ).length;
  for (const { server } of gateways) await server.signal('SIGTERM');
  const [files, table] = gateways;
  if (files === undefined || table === undefined) throw new Error('two gateways');
  const logs = [
    await recordsInFiles(join(files.dataDir, 'audit')),
    await recordsInTable(await leaderUrl(cluster)),
  ];
  const verified = await Promise.all([
    osl(['audit', 'verify', '--data-dir', files.dataDir]),
    osl(['audit', 'verify', '--data-dir', table.dataDir], {
      env: { OSL_AUDIT_SINK: 'postgres', OSL_AUDIT_URL: control },
    }),
  ]);
  return reportOf(load.outcomes, found, {
    alive,
    unhandled,
    missing: missingRecords(load.outcomes, logs),
    verified: verified.map(({ code }) => code),
  });
}

async function leaderUrl(cluster: PatroniCluster): Promise<string> {
  const leader = await cluster.leader();
  return `postgres://postgres:osl@127.0.0.1:${leader?.port}/control`;
}

function targetOf(gateway: DrillGateway): Target {
  return {
    name: `gateway ${gateway.number}`,
    httpPort: () => gateway.port('httpPort'),
    pgPort: () => gateway.port('pgPort'),
    token: (subject) => gateway.token(subject),
  };
}

async function startGateways(cluster: PatroniCluster) {
  await cluster.admin(
    'postgres',
    "create role osl_reader login password 'osl'; create role osl_gateway login password 'osl';",
  );
  await cluster.admin('postgres', 'create database shop');
  await cluster.admin('postgres', 'create database control owner osl_gateway');
  await cluster.admin('shop', TABLES);
  await cluster.admin('control', `${SCHEMA}${gatewayGrants('osl_gateway')}`);
  const dir = temporary();
  const manifest = join(dir, 'manifest.yaml');
  writeFileSync(manifest, MANIFEST);
  const control = cluster.url('osl_gateway', 'control');
  const keysDir = join(dir, 'keys');
  await succeeds(['keys', 'make', keysDir]);
  await succeeds(['control', 'migrate'], { OSL_CONTROL_URL: control });
  const push = async (columns: string): Promise<void> => {
    const file = join(dir, 'policy.yaml');
    writeFileSync(file, policyText(columns));
    await succeeds(['policy', 'push', file, '--manifest', manifest, '--activate'], {
      OSL_CONTROL_URL: control,
    });
  };
  await push('id');
  const env = {
    STORE_URL: cluster.url('osl_reader', 'shop'),
    OSL_CONTROL_URL: control,
    OSL_POLICY_SOURCE: 'control',
    // Longer than a failover takes.
    OSL_CONTROL_SILENCE_SECONDS: '30',
  };
  const gateways = [1, 2].map(
    (number) =>
      new DrillGateway({
        number,
        dataDir: join(dir, `gateway-${number}`),
        keysDir,
        manifest,
        env: number === 1 ? env : { ...env, OSL_AUDIT_SINK: 'postgres', OSL_AUDIT_URL: control },
      }),
  );
  await Promise.all(gateways.map((gateway) => gateway.listening()));
  /** Grants or revokes a column, and resolves with the time until each gateway does as the policy says. */
  const activate = async (revoke: boolean, all: readonly DrillGateway[]): Promise<number> => {
    await push(revoke ? 'id' : 'id, amount');
    const began = performance.now();
    await Promise.all(all.map((gateway) => untilSees(gateway, !revoke)));
    return performance.now() - began;
  };
  return { gateways, activate, control };
}

async function untilSees(gateway: DrillGateway, sees: boolean): Promise<void> {
  const status = sees ? 200 : 400;
  for (;;) {
    const token = await gateway.token('user:watch');
    const reply = await post(
      false,
      gateway.port('httpPort'),
      'select amount from osl.entities.account where id = 1',
      token,
    ).catch(() => null);
    if (reply?.status === status) return;
    await sleep(50);
  }
}

async function succeeds(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<void> {
  const { code, stderr } = await osl(args, { env });
  if (code !== 0) throw new Error(`osl ${args.join(' ')}: ${stderr}`);
}

async function oneRound(cluster: PatroniCluster, load: Load, policy: () => Promise<number>): Promise<Round> {
  await cluster.whole();
  await sleep(CALM_MS);
  const leader = await cluster.leader();
  if (leader === null) throw new Error('there is no leader');
  const killedAt = performance.now();
  leader.killNow();
  let promotedAt = killedAt;
  for (let next = null; next === null || next === leader; await sleep(20)) {
    next = await cluster.leader();
    promotedAt = performance.now();
  }
  await sleep(BACK_MS + CALM_MS);
  leader.start();
  const policyMs = await policy();
  const after = load.between(promotedAt + BACK_MS, promotedAt + BACK_MS + CALM_MS);
  const outcomes = load.between(killedAt, promotedAt + BACK_MS + CALM_MS);
  const last = outcomes.filter(({ result }) => result !== 'right').at(-1);
  return {
    killed: leader.name,
    promotedMs: promotedAt - killedAt,
    outcomes,
    lastFailureMs: last === undefined ? null : last.ended - killedAt,
    before: p99(load.between(killedAt - CALM_MS, killedAt)),
    after: p99(after),
    policyMs,
  };
}

interface End {
  readonly alive: number;
  readonly unhandled: number;
  readonly missing: number;
  readonly verified: readonly (number | null)[];
}

function reportOf(all: readonly Outcome[], rounds: readonly Round[], end: End): DrillReport {
  const seconds = (ms: number | null): string => (ms === null ? '-' : (ms / SECOND_MS).toFixed(1));
  const rows = rounds.map((round, i) => [
    `${i + 1}`,
    round.killed,
    seconds(round.promotedMs),
    `${round.outcomes.length}`,
    failures(round.outcomes),
    seconds(round.lastFailureMs),
    round.before.toFixed(0),
    round.after.toFixed(0),
    seconds(round.policyMs),
  ]);
  const headings = [
    'kill',
    'leader',
    'promoted after, s',
    'queries',
    'failed',
    'last failure after, s',
    'p99 before, ms',
    'p99 5 to 10 s after promotion, ms',
    'new policy in force after, s',
  ];
  const wrong = all.filter(({ result }) => result === 'wrong').length;
  // Failures beyond a failover: before the next kill, 5 s after the promotion.
  const inRounds = new Set(rounds.flatMap(({ outcomes }) => outcomes));
  const beyond = all.filter((outcome) => outcome.result !== 'right' && !inRounds.has(outcome)).length;
  const late = rounds.filter(
    (r) => r.lastFailureMs !== null && r.lastFailureMs > r.promotedMs + BACK_MS,
  ).length;
  const summary = [
    `answers ${all.filter(({ result }) => result === 'right').length}, wrong ${wrong}, failed ${all.filter(({ result }) => result !== 'right' && result !== 'wrong').length}`,
    `failed outside a failover ${beyond}; failovers with a failure later than 5 s after the promotion ${late}`,
    `acknowledged answers without a record ${end.missing}; osl audit verify: exit status ${end.verified.join(' and ')}`,
    `gateways that run in the process in which they began ${end.alive} of 2; with an unhandled error ${end.unhandled}`,
    `Patroni: ttl ${TIMES.ttl}, loop_wait ${TIMES.loop_wait}, retry_timeout ${TIMES.retry_timeout}, synchronous_mode`,
  ];
  const failed =
    wrong + beyond + late + end.missing + end.unhandled > 0 ||
    end.alive !== 2 ||
    end.verified.some((code) => code !== 0);
  return { text: `${markdownTable(headings, rows)}\n\n${summary.join('\n')}`, passed: !failed };
}
