import { readFileSync, writeFileSync } from 'node:fs';
import { auditBench } from './audit/index.js';
import { auditOpenBench } from './audit-open/index.js';
import { auditSearchBench } from './audit-search/index.js';
import { barrierBench } from './barrier/index.js';
import { citusBench } from './citus/index.js';
import { compileBench } from './compile/index.js';
import { fairnessBench } from './fairness/index.js';
import { hostileBench } from './hostile/index.js';
import { largeCatalogBench } from './large-catalog/index.js';
import { receiptsBench } from './receipts/index.js';
import { type Findings, markdown, type Report, reportOf, type Table, tableOf } from './report.js';
import { restBench } from './rest/index.js';
import { qualityBench } from './retrieval-quality/index.js';
import { retrieveBench } from './retrieve/index.js';
import { rlsSpeedBench } from './rls-speed/index.js';
import { rollupBench } from './rollup/index.js';
import { rowSecurityBench } from './row-security/index.js';
import { scaleBench } from './scale/index.js';
import { standbysBench } from './standbys/index.js';
import { startBench } from './start/index.js';
import { streamBench } from './stream/index.js';
import { syncBench } from './sync/index.js';
import { tpchBench } from './tpch/index.js';
import { wireBench } from './wire/index.js';

type Bench = (quick: boolean, workers: number) => Promise<Findings>;

const BENCHES: ReadonlyMap<string, Bench> = new Map([
  ['barrier', barrierBench],
  ['citus', citusBench],
  ['compile', compileBench],
  ['wire', wireBench],
  ['row-security', rowSecurityBench],
  ['rls-speed', rlsSpeedBench],
  ['rollup', rollupBench],
  ['hostile', hostileBench],
  ['fairness', fairnessBench],
  ['rest', restBench],
  ['stream', streamBench],
  ['receipts', receiptsBench],
  ['retrieve', retrieveBench],
  ['quality', qualityBench],
  ['audit', auditBench],
  ['audit-open', auditOpenBench],
  ['audit-search', auditSearchBench],
  ['scale', scaleBench],
  ['standbys', standbysBench],
  ['large-catalog', largeCatalogBench],
  ['start', startBench],
  ['sync', syncBench],
  ['tpch', tpchBench],
]);

const RESULTS = 'bench/RESULTS.md';

async function main(args: readonly string[]): Promise<number> {
  const [name] = args;
  const bench = BENCHES.get(name ?? '');
  if (name === undefined || bench === undefined) {
    process.stderr.write(
      `usage: npm run bench -- NAME [--quick] [--json FILE] [--workers N]   NAME: ${[...BENCHES.keys()].join(', ')}\n`,
    );
    return 2;
  }
  const quick = args.includes('--quick');
  const workers = Number(flagOf(args, '--workers') ?? 1);
  const { measures, tables } = await bench(quick, workers);
  if (measures.length === 0) {
    process.stderr.write(`${name}: nothing was measured\n`);
    return 1;
  }
  const report = reportOf(workers === 1 ? name : `${name}-workers-${workers}`, measures);
  process.stdout.write(`${tableOf(report)}\n`);
  for (const table of tables) process.stdout.write(`\n${textOf(table)}\n`);
  const file = flagOf(args, '--json');
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
  if (!quick) writeResults(report, tables);
  return 0;
}

function flagOf(args: readonly string[], flag: string): string | undefined {
  const at = args.indexOf(flag);
  return at < 0 ? undefined : args[at + 1];
}

/** Replaces the sections of RESULTS.md with the report and its tables; never called for a quick run. */
function writeResults(report: Report, tables: readonly Table[]): void {
  const { machine, versions } = report;
  const made = `${report.date}, ${machine.cores} cores of ${machine.cpu}, ${machine.memoryGiB} GiB, Node ${versions['node']}, commit ${versions['commit']}`;
  let text = read(RESULTS) ?? INTRODUCTION;
  text = withSection(text, report.name, `${made}\n\n${tableOf(report)}`);
  for (const table of tables) text = withSection(text, table.name, `${made}\n\n${textOf(table)}`);
  writeFileSync(RESULTS, text);
}

const INTRODUCTION =
  '# Results\n\nWritten by `npm run bench -- NAME`. Ratios are ours over theirs for throughput and theirs over ours for time: above 1 is better for us.\n';

function withSection(text: string, name: string, content: string): string {
  const section = `<!-- ${name} -->\n## ${name}\n\n${content}\n<!-- /${name} -->`;
  const old = new RegExp(`<!-- ${name} -->[\\s\\S]*<!-- /${name} -->`);
  return old.test(text) ? text.replace(old, () => section) : `${text}\n${section}\n`;
}

function textOf({ about, head, rows }: Table): string {
  return `${about}\n\n${markdown(head, rows)}`;
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

process.exitCode = await main(process.argv.slice(2));
