import { readFileSync, writeFileSync } from 'node:fs';
import { compileBench } from './compile/index.js';
import { type Measure, type Report, reportOf, tableOf } from './report.js';

type Bench = (quick: boolean) => Promise<readonly Measure[]>;

const BENCHES: ReadonlyMap<string, Bench> = new Map([['compile', compileBench]]);

const RESULTS = 'bench/RESULTS.md';

async function main(args: readonly string[]): Promise<number> {
  const [name] = args;
  const bench = BENCHES.get(name ?? '');
  if (name === undefined || bench === undefined) {
    process.stderr.write(`usage: npm run bench -- NAME [--quick] [--json FILE]   NAME: ${[...BENCHES.keys()].join(', ')}\n`);
    return 2;
  }
  const quick = args.includes('--quick');
  const report = reportOf(name, await bench(quick));
  process.stdout.write(`${tableOf(report)}\n`);
  const json = args.indexOf('--json');
  const file = json < 0 ? undefined : args[json + 1];
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(report, null, 2)}\n`);
  if (!quick) writeResults(report);
  return 0;
}

/** Puts the report into its section of RESULTS.md, in place of the older one. Quick runs are not written. */
function writeResults(report: Report): void {
  const { machine, versions } = report;
  const made = `${report.date}, ${machine.cores} cores of ${machine.cpu}, ${machine.memoryGiB} GiB, Node ${versions['node']}, commit ${versions['commit']}`;
  const section = `<!-- ${report.name} -->\n## ${report.name}\n\n${made}\n\n${tableOf(report)}\n<!-- /${report.name} -->`;
  const before = read(RESULTS) ?? '# Results\n\nWritten by `npm run bench -- NAME`. Ratios are ours over theirs for throughput and theirs over ours for time: above 1 is better for us.\n';
  const old = new RegExp(`<!-- ${report.name} -->[\\s\\S]*<!-- /${report.name} -->`);
  writeFileSync(RESULTS, old.test(before) ? before.replace(old, section) : `${before}\n${section}\n`);
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

process.exitCode = await main(process.argv.slice(2));
