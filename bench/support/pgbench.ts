import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Protocol that pgbench uses to send statements. */
export type Mode = 'simple' | 'extended' | 'prepared';

/** Address to which pgbench connects, and the script to run. */
export interface Target {
  readonly name: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  /** Returns a password for one run, because tokens may be short-lived. */
  password(): Promise<string>;
  readonly script: string;
}

export interface Load {
  readonly mode: Mode;
  readonly clients: number;
  /** Duration including connecting, or else a number of transactions per client. */
  readonly seconds?: number;
  readonly transactions?: number;
}

export interface Throughput {
  /** Transactions per second, excluding connection time. */
  readonly tps: number;
  readonly latencyMs: number;
  /** Total number of transactions. */
  readonly transactions: number;
}

/** Runs pgbench once. @throws Error if a statement fails */
export async function pgbench(target: Target, load: Load): Promise<Throughput> {
  const dir = mkdtempSync(join(tmpdir(), 'osl-pgbench-'));
  try {
    const script = join(dir, 'script.sql');
    writeFileSync(script, target.script);
    const duration =
      load.transactions === undefined ? ['-T', `${load.seconds ?? 1}`] : ['-t', `${load.transactions}`];
    const args = ['-n', '-M', load.mode, '-c', `${load.clients}`, '-j', load.clients === 1 ? '1' : '2'];
    const where = ['-h', '127.0.0.1', '-p', `${target.port}`, '-U', target.user, target.database];
    const env = { ...process.env, PGPASSWORD: await target.password(), PGSSLMODE: 'disable' };
    const { stdout } = await run('pgbench', [...args, ...duration, '-f', script, ...where], { env });
    return throughputOf(target, stdout);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function throughputOf({ name }: Target, report: string): Throughput {
  const tps = /^tps = ([\d.]+)/m.exec(report)?.[1];
  const latency = /^latency average = ([\d.]+) ms/m.exec(report)?.[1];
  const failed = /^number of failed transactions: (\d+)/m.exec(report)?.[1] ?? '0';
  const transactions = Number(/^number of transactions actually processed: (\d+)/m.exec(report)?.[1] ?? 0);
  if (tps === undefined || latency === undefined || failed !== '0' || transactions === 0) {
    throw new Error(`pgbench against ${name} did nothing that counts: ${report}`);
  }
  return { tps: Number(tps), latencyMs: Number(latency), transactions };
}
