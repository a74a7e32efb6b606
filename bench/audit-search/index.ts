import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startAuditTable } from '../../test/support/audit-table.js';
import { write } from '../audit-open/index.js';
import { type Findings, type Measure, measure } from '../report.js';

/** Positions in the log of the records to search for, as fractions of its length. */
const PARTS = [0, 0.33, 0.66, 0.97];

/** Time to search a large log and create proofs from it, in files and in a table; each in a separate process. */
export async function auditSearchBench(quick: boolean): Promise<Findings> {
  const records = quick ? 100_000 : 2_000_000;
  const root = mkdtempSync(join(process.cwd(), 'dist', 'audit-search-'));
  const table = await startAuditTable();
  try {
    await write(join(root, 'files'), records);
    const measures = asked('files', join(root, 'files'));
    if (table === null) return { measures, tables: [] };
    await write(join(root, 'table'), records, table.gatewayUrl);
    return { measures: [...measures, ...asked('table', table.readerUrl)], tables: [] };
  } finally {
    rmSync(root, { recursive: true, force: true });
    await table?.stop();
  }
}

interface Run {
  readonly seconds: number;
  /** Processor time of this process, s; excludes the database. */
  readonly cpu: number;
  readonly found: number;
}

function asked(kind: string, place: string): readonly Measure[] {
  const script = fileURLToPath(new URL('./searcher.js', import.meta.url));
  return ['subject', 'request', 'prove'].flatMap((what) => {
    const runs = PARTS.map((part): Run => {
      const args = [script, kind, place, what, String(part)];
      const run = JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' })) as Run; // our own output
      const expected = what === 'subject' ? 0 : 2;
      if (run.found !== expected) throw new Error(`${what}: ${run.found} records instead of ${expected}`);
      return run;
    });
    return [
      measure(
        `audit.search.${kind}.${what}.s`,
        's',
        runs.map(({ seconds }) => seconds),
      ),
      measure(
        `audit.search.${kind}.${what}.cpu_s`,
        's',
        runs.map(({ cpu }) => cpu),
      ),
    ];
  });
}
