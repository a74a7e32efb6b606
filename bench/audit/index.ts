import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type AuditLog, openAuditLog } from '../../audit/index.js';
import type { NativePostgres } from '../../test/support/native-postgres.js';
import { type Findings, type Measure, measure, paired } from '../report.js';
import { entryAbout } from '../support/audit-entry.js';
import { type Gateway, startGateway } from '../support/gateway.js';
import { pgbench } from '../support/pgbench.js';
import { accounts, withPostgres } from '../support/postgres.js';
import { gatewayContestant, MANIFEST, POLICY } from '../wire/contestants.js';
import { pointQuery } from '../wire/point.js';
import { questionsBench } from './questions.js';
import { requireWhole } from './whole.js';

/** Throughput of the durable log alone, and its cost on the wire. */
export async function auditBench(quick: boolean): Promise<Findings> {
  const rounds = quick ? 3 : 7;
  const own = await onDisk(async (root) => [
    ...(await durable(root, rounds, quick ? 1 : 4)),
    ...(await questionsBench(root, rounds, quick ? 1 : 2)),
  ]);
  const rows = 100_000;
  const wire = await withPostgres(accounts(rows), (postgres) => onVersusOff(postgres, rows, rounds, quick));
  return { measures: [...own, ...wire], tables: [] };
}

const CLIENTS = 64;

/** Runs `bench` on the disk of `dist`, because a memory file system would prove nothing. */
async function onDisk(bench: (root: string) => Promise<readonly Measure[]>): Promise<readonly Measure[]> {
  const root = mkdtempSync(join(process.cwd(), 'dist', 'audit-'));
  try {
    return await bench(root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

/**
 * Requests per second that 64 callers can record: each waits until its decision is durable, then records its outcome.
 */
async function durable(root: string, rounds: number, seconds: number): Promise<readonly Measure[]> {
  const rates: number[] = [];
  const waits: number[] = [];
  for (let round = 0; round < rounds; round++) {
    const dir = join(root, `${round}`);
    const log = await openAuditLog({ dir, tenant: 'bench' });
    const { requests, waitUs } = await record(log, seconds);
    await log.close();
    await requireWhole(dir, 2 * requests);
    rates.push(requests / seconds);
    waits.push(waitUs);
  }
  return [
    measure('audit.durable.rps', 'requests/s', rates),
    measure('audit.durable.wait_us', 'µs to durable', waits),
  ];
}

async function record(log: AuditLog, seconds: number): Promise<{ requests: number; waitUs: number }> {
  const until = performance.now() + 1_000 * seconds;
  let requests = 0;
  let waited = 0;
  const caller = async (): Promise<void> => {
    while (performance.now() < until) {
      const requestId = randomUUID();
      const asked = performance.now();
      await log.append({ ...entryAbout('account', 'decision', requestId), decision: 'allow' });
      waited += performance.now() - asked;
      requests += 1;
      log.append(
        { ...entryAbout('account', 'outcome', requestId), outcome: 'ok', rows: 1, duration_us: 250 },
        () => undefined,
      );
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, caller));
  return { requests, waitUs: (1_000 * waited) / requests };
}

/** Point queries on the wire through processes that differ in one thing: no log, the log, the log and lineage. */
async function onVersusOff(
  postgres: NativePostgres,
  rows: number,
  rounds: number,
  quick: boolean,
): Promise<readonly Measure[]> {
  const seconds = quick ? 2 : 4;
  const on = await host(postgres, 'on');
  try {
    const off = await host(postgres, 'off');
    const audit = await rounded(AUDIT, on, off, rows, rounds, seconds).finally(() => off.stop());
    const lineage = await host(postgres, 'lineage');
    const told = await rounded(LINEAGE, lineage, on, rows, rounds, seconds).finally(() => lineage.stop());
    return [...audit, ...told];
  } finally {
    await on.stop();
  }
}

interface Comparison {
  readonly id: string;
  readonly against: string;
}

const AUDIT: Comparison = { id: 'audit.on_vs_off', against: 'no log (prepared point query on the wire)' };
const LINEAGE: Comparison = {
  id: 'lineage.on_vs_off',
  against: 'no lineage (prepared point query on the wire)',
};

function host(postgres: NativePostgres, audit: 'on' | 'off' | 'lineage'): Promise<Gateway> {
  const file = fileURLToPath(new URL('./host.js', import.meta.url));
  return startGateway({
    manifestFile: MANIFEST,
    policyFile: POLICY,
    postgres,
    command: [process.execPath, file, audit],
  });
}

async function rounded(
  { id: name, against }: Comparison,
  on: Gateway,
  off: Gateway,
  rows: number,
  rounds: number,
  seconds: number,
): Promise<readonly Measure[]> {
  const tps = async (gateway: Gateway, clients: number): Promise<number> => {
    const target = gatewayContestant(gateway).target(pointQuery(rows));
    return (await pgbench(target, { mode: 'prepared', clients, seconds })).tps;
  };
  const measures: Measure[] = [];
  for (const clients of [CLIENTS, 16]) {
    const ours: number[] = [];
    const theirs: number[] = [];
    for (let round = 0; round < rounds; round++) {
      theirs.push(await tps(off, clients));
      ours.push(await tps(on, clients));
    }
    const id = clients === CLIENTS ? name : `${name}.c${clients}`;
    measures.push(paired(id, 'q/s', 'more', ours, theirs, against));
  }
  return measures;
}
