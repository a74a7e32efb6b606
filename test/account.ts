import { createReadStream } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { Parser, type Result } from 'tap-parser';
import { EXPECTED_SKIPS } from './expected-skips.js';

/**
 * Account of a run of the tests: the time of each file, each skip with its reason, and the sums.
 *
 * `node dist/test/account.js TAP…` reads what `run.ts` wrote. Ends with 1 if anything failed, nothing ran, or a skip
 * is not on the list of expected ones.
 */
interface Account {
  readonly files: { readonly file: string; readonly seconds: number }[];
  /** Failures, by file. */
  readonly faults: string[];
  readonly skips: { readonly file: string; readonly name: string; readonly reason: string }[];
  passed: number;
  failed: number;
}

const SLOWEST = 25;
const LONGEST_FAULT = 600;

/** Report of `run.ts` on a file that failed: an end with a status has no assertion that would say it. */
const why = ({ diag }: Result): string =>
  (typeof diag === 'object' && diag !== null ? `${diag['why']}` : '').replaceAll(/\s+/g, ' ');

async function read(path: string, account: Account): Promise<void> {
  const parser = new Parser();
  parser.on('child', (file: Parser) => watch(file, file.name, account));
  parser.on('assert', (result: Result) => {
    account.files.push({ file: result.name, seconds: (result.time ?? 0) / 1000 });
    if (!result.ok) {
      account.failed += 1;
      account.faults.push(`${result.name}: ${why(result)}`);
    }
  });
  await pipeline(createReadStream(path), parser);
}

/** Counts the assertions below `parser`; the point that closes a subtest is not one. */
function watch(parser: Parser, file: string, account: Account): void {
  parser.on('child', (child: Parser) => watch(child, file, account));
  parser.on('assert', (result: Result) => {
    if (result.skip !== false) {
      const reason = result.skip === true ? 'no reason given' : result.skip;
      account.skips.push({ file, name: result.name, reason });
    } else if (result.closingTestPoint) return;
    else if (result.ok) account.passed += 1;
    else {
      account.failed += 1;
      account.faults.push(`${file}: ${result.name}`);
    }
  });
}

function isExpected(skip: Account['skips'][number]): boolean {
  return EXPECTED_SKIPS.some((e) => skip.file.endsWith(`${e.file}.test.js`) && skip.name === e.name);
}

function told({ files, skips, faults, passed, failed }: Account): string {
  const slowest = files.toSorted((a, b) => b.seconds - a.seconds).slice(0, SLOWEST);
  const total = files.reduce((sum, f) => sum + f.seconds, 0);
  return [
    `seconds by file, the slowest ${slowest.length} of ${files.length} (${total.toFixed(0)} s in all):`,
    ...slowest.map((f) => `${f.seconds.toFixed(1).padStart(8)}  ${f.file}`),
    'failed:',
    ...faults.map((fault) => `  ${fault.slice(0, LONGEST_FAULT)}`),
    'skipped:',
    ...skips.map(
      (s) => `  ${isExpected(s) ? 'expected  ' : 'UNEXPECTED'}  ${s.file}: ${s.name}: ${s.reason}`,
    ),
    `${passed} passed, ${failed} failed, ${skips.length} skipped`,
    '',
  ].join('\n');
}

const account: Account = { files: [], faults: [], skips: [], passed: 0, failed: 0 };
for (const path of process.argv.slice(2)) await read(path, account);
process.stdout.write(told(account));
const asExpected = account.skips.every(isExpected);
process.exitCode = account.passed > 0 && account.failed === 0 && asExpected ? 0 : 1;
