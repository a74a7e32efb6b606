import { spawn } from 'node:child_process';
import { chmodSync, createWriteStream, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Parser, type Result } from 'tap-parser';
import { stringify } from 'yaml';

/**
 * Runs test files, each in a process of its own: `npm test [-- FILE…]`, all of them unless told.
 *
 * One more at once than there are processors, since some wait, the longest first; those that measure time come last and
 * one at a time. `OSL_TEST_JOBS` says how many at once, `TAP_OUTPUT_FILE` where what they said is written for
 * `account.ts`. Ends with 1 if anything failed. A file runs as `node FILE` runs it: tap's own runner loads hooks into
 * every process, which took two fifths of the processor.
 */
interface Outcome {
  readonly file: string;
  readonly seconds: number;
  readonly ok: boolean;
  /** What failed, and how. */
  readonly faults: readonly string[];
  readonly tap: string;
  readonly complaints: string;
}

/** They start first, so that none of them runs on alone at the end. Below `test/`, without their ending. */
const LONGEST = [
  'tools/cli/demo',
  'tools/init/init',
  'tools/cli/refusals',
  'proof/oracle/mutants',
  'tools/cli/publish',
  'language/forms/traverse',
  'tools/package/install',
  'policy/audit/recover',
  'proof/oracle/oracle',
  'service/operations/restart',
  'tools/cli/interchange',
  'surfaces/catalog/lifecycle',
];
/** They measure time, so nothing else runs beside them. */
const ALONE = /^proof\/budget\//;
/** The embedded engine is compiled anew in every process: by V8's quick compiler only, unless time is what is measured. */
const ONE_COMPILER = ['--liftoff-only'];

/** Seconds that one test may take unless it says more. */
const TEST_SECONDS = 240;
/** ms after which a file is ended, whatever it waits for. */
const FILE_MS = 15 * 60_000;
const GIB = 2 ** 30;
/** Room in memory below which temporary files stay on the disk. */
const ROOM = 4 * GIB;

const TESTS = fileURLToPath(new URL('.', import.meta.url));

function allFiles(): string[] {
  return readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.js'))
    .map((file) => relative('.', join(TESTS, file)))
    .toSorted();
}

const nameOf = (file: string): string => relative(TESTS, file).replace(/\.test\.js$/, '');

function longestFirst(files: readonly string[]): string[] {
  const rank = (file: string): number =>
    (LONGEST.indexOf(nameOf(file)) + LONGEST.length) % (LONGEST.length + 1);
  return files.toSorted((a, b) => rank(a) - rank(b));
}

/**
 * A folder for temporary files, in memory where there is room: embedded databases and logs are written by the
 * hundred, and what a killed process wrote outlives it there as it does on a disk.
 */
function temporaryFolder(): string {
  const memory = '/dev/shm';
  const folder = mkdtempSync(
    join(process.env['TMPDIR'] === undefined && hasRoom(memory) ? memory : tmpdir(), 'osl-tests-'),
  );
  chmodSync(folder, 0o711); // a cluster of Postgres below it belongs to another user
  return folder;
}

function hasRoom(folder: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize > ROOM;
  } catch {
    return false;
  }
}

async function run(file: string, folder: string): Promise<Outcome> {
  const started = performance.now();
  const env = { ...process.env, TMPDIR: folder, TAP_TIMEOUT: `${TEST_SECONDS}`, TAP_OMIT_VERSION: '1' };
  const child = spawn(process.execPath, [...(ALONE.test(nameOf(file)) ? [] : ONE_COMPILER), file], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const faults: string[] = [];
  const parser = new Parser({ name: file });
  watch(parser, faults);
  let tap = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    tap += text;
    parser.write(text);
  });
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  const limit = setTimeout(() => {
    faults.push(`it took longer than ${FILE_MS / 60_000} minutes`);
    child.kill('SIGKILL');
  }, FILE_MS);
  const [code, signal] = await new Promise<[number | null, string | null]>((done) =>
    child.once('close', (...ending) => done(ending)),
  );
  clearTimeout(limit);
  parser.end();
  if (code !== 0 && faults.length === 0) faults.push(`it ended with ${signal ?? `status ${code}`}`);
  if (parser.results?.ok !== true && faults.length === 0) faults.push('what it said is no whole TAP');
  const seconds = (performance.now() - started) / 1000;
  return { file, seconds, ok: faults.length === 0, faults, tap, complaints };
}

/** Notes what fails below `parser`; the point that closes a subtest says nothing new. */
function watch(parser: Parser, faults: string[]): void {
  parser.on('child', (child: Parser) => watch(child, faults));
  parser.on('assert', (result: Result) => {
    if (result.ok || result.closingTestPoint) return;
    faults.push(`${result.fullname}\n${result.diag === null ? '' : stringify(result.diag)}`.trimEnd());
  });
}

const indented = (text: string, by: number): string => text.replace(/^(?=.)/gm, ' '.repeat(by));

function told({ file, seconds, ok, faults, complaints }: Outcome): string {
  const line = `${ok ? 'ok    ' : 'FAILED'} ${seconds.toFixed(1).padStart(6)} s  ${file}`;
  const more = [...faults, complaints.trimEnd()].filter((text) => text !== '');
  return [line, ...more.map((text) => indented(text, 4)), ''].join('\n');
}

async function runAll(files: readonly string[], jobs: number, folder: string, each: (o: Outcome) => void) {
  const waiting = [...files];
  const work = async (): Promise<void> => {
    for (let file = waiting.shift(); file !== undefined; file = waiting.shift())
      each(await run(file, folder));
  };
  await Promise.all(Array.from({ length: jobs }, work));
}

async function main(named: readonly string[]): Promise<number> {
  const files = longestFirst(named.length === 0 ? allFiles() : named);
  const jobs = Number(process.env['OSL_TEST_JOBS'] ?? availableParallelism() + 1);
  const output = process.env['TAP_OUTPUT_FILE'];
  const report = output === undefined ? null : createWriteStream(output);
  const folder = temporaryFolder();
  const started = performance.now();
  let ended = 0;
  let failed = 0;
  const each = (outcome: Outcome): void => {
    const { file, seconds, ok, tap } = outcome;
    ended += 1;
    failed += ok ? 0 : 1;
    process.stdout.write(told(outcome));
    const point = `${ok ? 'ok' : 'not ok'} ${ended} - ${file} # time=${(seconds * 1000).toFixed(0)}ms`;
    report?.write(`# Subtest: ${file}\n${indented(tap, 4)}\n${point}\n\n`);
  };
  try {
    await runAll(
      files.filter((file) => !ALONE.test(nameOf(file))),
      jobs,
      folder,
      each,
    );
    await runAll(
      files.filter((file) => ALONE.test(nameOf(file))),
      1,
      folder,
      each,
    );
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  report?.end(`1..${ended}\n`);
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  process.stdout.write(`${ended} files in ${seconds} s, ${failed === 0 ? 'none' : failed} failed\n`);
  return failed === 0 && ended > 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
