import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Findings, type Measure, measure } from '../report.js';

/** Time to open a large log after kill -9, and to verify it completely; each in a separate process. */
export async function auditOpenBench(quick: boolean): Promise<Findings> {
  const root = mkdtempSync(join(process.cwd(), 'dist', 'audit-open-'));
  try {
    const small = await ofSize(join(root, 'small'), quick ? 100_000 : 1_000_000, 'small', 1);
    const large = await ofSize(join(root, 'large'), quick ? 400_000 : 10_000_000, 'large', quick ? 1 : 3);
    return { measures: [...small, ...large], tables: [] };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function ofSize(
  dir: string,
  records: number,
  name: string,
  rounds: number,
): Promise<readonly Measure[]> {
  const writing = performance.now();
  const written = await write(dir, records);
  const rate = written / ((performance.now() - writing) / 1_000);
  const opened: Run[] = [];
  const verified: Run[] = [];
  for (let round = 0; round < rounds; round += 1) {
    opened.push(run('opener', dir));
    verified.push(run('verifier', dir));
  }
  if (verified.some((verdict) => verdict.records < written))
    throw new Error('the log does not hold all records');
  if (verified.some(({ openDecisions }) => openDecisions !== 0)) throw new Error('a decision was left open');
  return [
    measure(`audit.write.${name}.records`, 'records', [written]),
    measure(`audit.write.${name}.per_s`, 'records/s', [rate]),
    measure(
      `audit.open.${name}.s`,
      's',
      opened.map(({ seconds }) => seconds),
    ),
    measure(
      `audit.open.${name}.rss_mib`,
      'MiB',
      opened.map(({ mib }) => mib),
    ),
    measure(
      `audit.verify.${name}.per_s`,
      'records/s',
      verified.map((v) => v.records / v.seconds),
    ),
    measure(
      `audit.verify.${name}.rss_mib`,
      'MiB',
      verified.map(({ mib }) => mib),
    ),
  ];
}

interface Run {
  readonly seconds: number;
  readonly records: number;
  readonly openDecisions: number;
  readonly mib: number;
}

function script(name: string): string {
  return fileURLToPath(new URL(`./${name}.js`, import.meta.url));
}

function run(name: string, dir: string): Run {
  const printed = execFileSync(process.execPath, [script(name), dir], { encoding: 'utf8' });
  return JSON.parse(printed) as Run; // printed by our own script
}

/**
 * Runs the writer and kills it (SIGKILL) once it has written the records.
 *
 * @param url database whose tables store the records instead of files
 */
export function write(dir: string, records: number, url: string | null = null): Promise<number> {
  const args = [script('writer'), dir, String(records), ...(url === null ? [] : [url])];
  const writer = spawn(process.execPath, args, {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    let written = Number.NaN;
    writer.stdout.once('data', (text: Buffer) => {
      written = Number(text.toString());
      writer.kill('SIGKILL');
    });
    writer.once('close', () =>
      Number.isNaN(written) ? reject(new Error('the writer ended by itself')) : resolve(written),
    );
  });
}
