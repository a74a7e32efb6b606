import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chmodSync, createWriteStream, mkdtempSync, readdirSync, rmSync, statfsSync } from 'node:fs';
import { availableParallelism, cpus, tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { setTimeout as passed } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Parser, type Result } from 'tap-parser';
import { stringify } from 'yaml';
import { makeCommand, makeTests } from './support/make-script.js';
import { PART, partOf } from './support/part.js';
import { isLeftOut, ON_BOTH, TURNS } from './turns.js';

/**
 * Runs test files, each in a process of its own: `npm test [-- FILE…]`, all of them unless told.
 *
 * One more at once than there are processors, and more while a processor is idle, since half of a file's time is
 * waiting; the longest first; those that measure time come last and one at a time. `OSL_TEST_JOBS` says how many at once, `TAP_OUTPUT_FILE` where what they said is written for
 * `account.ts`. Ends with 1 if anything failed. A file runs as `node FILE` runs it: tap's own runner loads hooks into
 * every process, which took two fifths of the processor.
 */
interface Outcome {
  readonly file: string;
  readonly seconds: number;
  /** On a processor, with the processes it started and waited for; what a server beside it did is not in it. */
  readonly busy: number;
  readonly ok: boolean;
  /** What failed, and how. */
  readonly faults: readonly string[];
  readonly tap: string;
  readonly complaints: string;
}

/** They start first, so that none of them runs on alone at the end. Below `test/`, without their ending. */
const LONGEST = [
  'tools/cli/demo',
  'tools/package/install',
  'docs/site',
  'simulation/simulation',
  'tools/init/init',
  'console/map-large',
  'console/admin',
  'service/operations/gateways',
  'leakbench/leakbench',
  'service/operations/credentials',
  'service/operations/workers',
  'service/operations/resets',
  'proof/faults/outward',
  'service/operations/away',
  'language/forms/demo-questions',
  'language/forms/traverse',
  'proof/oracle/mutants',
  'service/operations/reload',
  'tools/cli/policy-test',
  'console/map',
  'surfaces/catalog/lifecycle',
  'language/forms/hybrid',
  'surfaces/pg/statement-timeout',
  'tools/cli/backup',
  'service/operations/shared-limits',
  'console/ask-large',
  'proof/records/failures',
  'tools/cli/login',
  'proof/oracle/oracle',
  'clients/bi/bi',
];
/** They measure time, so nothing else runs beside them; `linear` counts blocks of code. */
const ALONE = /^proof\/budget\/(?!linear$)/;
/** It limits the time of a turn too, but needs no machine of its own. */
const TIMED_TURNS = 'console/map-large';
/**
 * A test is over before code that is made fast has paid for itself, so V8 is told to make less of it, and to collect
 * garbage seldom, unless time is what is measured: WebAssembly by the quick compiler alone, JavaScript by the quick one
 * at once and by the thorough one late. It took a quarter to a third of the processor.
 */
const SHORT_LIVED = [
  '--liftoff-only',
  '--sparkplug',
  '--interrupt-budget=1000000',
  '--min-semi-space-size=16',
  '--single-threaded-gc',
];

/** Seconds that one test may take unless it says more. */
const TEST_SECONDS = 240;
/** ms from one look at how idle the processors are to the next. */
const LOOK_MS = 1_000;
/** Share of all processors' time; where more is idle, another file starts. */
const IDLE = 0.15;
/** ms after which a file is ended, whatever it waits for. */
const FILE_MS = 15 * 60_000;
/** Of why a file failed, in the report. */
const MOST_TOLD = 1_000;
const GIB = 2 ** 30;
/** Room in memory below which temporary files stay on the disk. */
const ROOM = 4 * GIB;

/** Runs a command and says on a fourth stream what processor time it took: Node says that of itself only. */
const TIMED = '"$@" 3>&-; status=$?; times >&3; exit $status';
const NUMBER = '([0-9]+)m([0-9.]+)s';
/** What `times` says last is of the shell's children: user, system. */
const TIMES = new RegExp(`${NUMBER} ${NUMBER}\\s*$`);

const TESTS = fileURLToPath(new URL('.', import.meta.url));

function allFiles(): string[] {
  return readdirSync(TESTS, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.js'))
    .map((file) => relative('.', join(TESTS, file)))
    .toSorted();
}

const fileOf = (name: string): string => relative('.', join(TESTS, `${name}.test.js`));
const nameOf = (file: string): string => relative(TESTS, file).replace(/\.test\.js$/, '');

const isItself = (file: string): boolean => AS_MODULES.test(nameOf(file));

interface Job {
  readonly file: string;
  readonly env: Readonly<Record<string, string>>;
  /** What it is called in the report; ends as the file does. */
  readonly name: string;
}

const jobOf = (file: string): Job => ({ file, env: {}, name: file });

/** The files whose turn it is; with a native server, on which services stand then, some of them on the embedded engine too. */
function allJobs(): Job[] {
  const files = allFiles().filter((file) => !isLeftOut(nameOf(file)));
  const native = (process.env['OSL_TEST_POSTGRES_URL'] ?? '') !== '';
  if (!native || process.env['OSL_TEST_ENGINE'] !== undefined) return files.map(jobOf);
  const again = files.filter((file) => ON_BOTH.includes(nameOf(file)));
  const embedded = partOf('embedded engine', again, TURNS).map((file) => ({
    file,
    env: { OSL_TEST_ENGINE: 'pglite' },
    name: `embedded engine: ${file}`,
  }));
  return [...files.map(jobOf), ...embedded];
}

function longestFirst(jobs: readonly Job[]): Job[] {
  const rank = ({ file }: Job): number => {
    const at = LONGEST.indexOf(nameOf(file));
    return at < 0 ? LONGEST.length : at;
  };
  return jobs.toSorted((a, b) => rank(a) - rank(b));
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

/**
 * The command that tests start is one script for all of a run, unless `OSL_TEST_BIN` names another: the checkout's own
 * loads some hundred modules at each start. Of these files `start` counts modules, `outlives` open files; `tls`
 * trusts the file of a certificate; the others have a gateway load the package of Redis, which the script does not find.
 */
const BY_MODULES =
  /^(tools\/cli\/start|service\/operations\/(away|outlives|shared-limits|tls)|proof\/faults\/outward)$/;

/**
 * Tests run in one script, but for those that run as their own modules: they measure time, load modules of the product
 * again, changed or counted, or look for a second time at one, which they share with it there.
 */
const AS_MODULES =
  /^(proof\/budget\/|simulation\/|proof\/oracle\/(mutants|rollup-mutants|faults|verifier)$|docs\/osl-sql$|proof\/retrieval\/mutants$|engine\/pglite$|language\/(compiler\/fields$|functions\/)|console\/map-large$)/;
/** Whose process makes the code cache for all. */
const TRIAL = ['surfaces/rest/query', 'language/forms/statements'];

/** The empty embedded database that tests copy: so that the first of them do not each make one. */
function makeTemplate(): void {
  const script = join(TESTS, 'support', 'make-template.js');
  spawnSync(process.execPath, [...SHORT_LIVED, script], { stdio: ['ignore', 'ignore', 'inherit'] });
}

/** Those that run now: each leads a group of processes. */
const running = new Set<ChildProcess>();

/** Ends what a file started, unless all of it is gone; nothing that outlives it can keep the run by what it has open. */
function end(child: ChildProcess, signal: NodeJS.Signals): void {
  try {
    if (child.pid !== undefined) process.kill(-child.pid, signal);
  } catch {
    // The group has ended by itself.
  }
  for (const stream of child.stdio) stream?.destroy();
}

function busySeconds(times: string): number {
  const [, ...found] = TIMES.exec(times) ?? [];
  const [userMinutes = 0, user = 0, systemMinutes = 0, system = 0] = found.map(Number);
  return (userMinutes + systemMinutes) * 60 + user + system;
}

/** What the files of a run share. */
interface Surroundings {
  /** For temporary files. */
  readonly folder: string;
  /** The script that stands for `bin/osl.js`; null: that itself. */
  readonly command: string | null;
  /** The script that runs a test; null: each runs as its own modules. */
  readonly tests: string | null;
}

async function run(
  { file, env: more, name }: Job,
  { folder, command, tests }: Surroundings,
): Promise<Outcome> {
  const started = performance.now();
  const bin = command === null || BY_MODULES.test(nameOf(file)) ? {} : { OSL_TEST_BIN: command };
  const own = { ...bin, TMPDIR: folder, TAP_TIMEOUT: `${TEST_SECONDS}`, TAP_OMIT_VERSION: '1' };
  const isTimed = ALONE.test(nameOf(file)) || nameOf(file) === TIMED_TURNS;
  const flags = isTimed ? [] : SHORT_LIVED;
  const script = tests === null || isItself(file) ? [] : [tests];
  const node = [process.execPath, ...flags, ...script, resolve(file)];
  const child = spawn('/bin/sh', ['-c', TIMED, 'sh', ...node], {
    env: { ...process.env, OSL_TEST_PART: PART, ...own, ...more },
    detached: true, // a group of its own, which ends as one
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  });
  running.add(child);
  const faults: string[] = [];
  const parser = new Parser({ name });
  watch(parser, faults);
  let tap = '';
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    tap += text;
    parser.write(text);
  });
  let complaints = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  let times = '';
  child.stdio[3]?.on('data', (bytes: Buffer) => {
    times += bytes.toString();
  });
  const limit = setTimeout(() => {
    faults.push(`it took longer than ${FILE_MS / 60_000} minutes`);
    end(child, 'SIGKILL');
  }, FILE_MS);
  const [code, signal] = await new Promise<[number | null, string | null]>((done) =>
    child.once('close', (...ending) => done(ending)),
  );
  clearTimeout(limit);
  running.delete(child);
  parser.end();
  if (code !== 0 && faults.length === 0) faults.push(`it ended with ${signal ?? `status ${code}`}`);
  if (parser.results?.ok !== true && faults.length === 0) faults.push('what it said is no whole TAP');
  const seconds = (performance.now() - started) / 1000;
  return { file: name, seconds, busy: busySeconds(times), ok: faults.length === 0, faults, tap, complaints };
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

function told({ file, seconds, busy, ok, faults, complaints }: Outcome): string {
  const line = `${ok ? 'ok    ' : 'FAILED'} ${seconds.toFixed(1).padStart(6)} s  ${busy.toFixed(1).padStart(6)} busy  ${file}`;
  const more = [...faults, complaints.trimEnd()].filter((text) => text !== '');
  return [line, ...more.map((text) => indented(text, 4)), ''].join('\n');
}

/** Of all processor time since the last call, the share that nothing used. */
function idleSince(): () => number {
  const totals = (): [idle: number, all: number] => {
    const times = cpus().map((cpu) => cpu.times);
    const idle = times.reduce((sum, time) => sum + time.idle, 0);
    return [idle, times.reduce((sum, time) => sum + time.user + time.nice + time.sys + time.irq, idle)];
  };
  let last = totals();
  return () => {
    const [idle, all] = totals();
    const share = (idle - last[0]) / Math.max(all - last[1], 1);
    last = [idle, all];
    return share;
  };
}

interface Lanes {
  /** Files that run at once whatever else does. */
  readonly fixed: number;
  /** Files more, one a second, while a processor is idle: some only wait. */
  readonly spare: number;
}

async function runAll(
  jobs: readonly Job[],
  { fixed, spare }: Lanes,
  surroundings: Surroundings,
  each: (o: Outcome) => void,
): Promise<void> {
  const waiting = [...jobs];
  const next = async (): Promise<boolean> => {
    const job = waiting.shift();
    if (job !== undefined) each(await run(job, surroundings));
    return job !== undefined;
  };
  const work = async (): Promise<void> => {
    while (await next());
  };
  const more: Promise<boolean>[] = [];
  const fill = async (): Promise<void> => {
    const idle = idleSince();
    while (waiting.length > 0) {
      await passed(LOOK_MS);
      if (idle() > IDLE && running.size < fixed + spare) more.push(next());
    }
  };
  await Promise.all([...Array.from({ length: fixed }, work), ...(spare > 0 ? [fill()] : [])]);
  await Promise.all(more);
}

/** The files that the script of tests holds. */
const inScript = (jobs: readonly Job[]): string[] => [
  ...new Set([...jobs.map(({ file }) => file).filter((file) => !isItself(file)), ...TRIAL.map(fileOf)]),
];

/** Whoever stops the run stops what it started too. */
function onStop(tidy: () => void): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      for (const child of running) end(child, 'SIGKILL');
      tidy();
      process.kill(process.pid, signal);
    });
  }
}

async function main(named: readonly string[]): Promise<number> {
  const jobs = longestFirst(named.length === 0 ? allJobs() : named.map(jobOf));
  const chosen = process.env['OSL_TEST_JOBS'];
  const processors = availableParallelism();
  const fixed = Number(chosen ?? processors + 1);
  const lanes = { fixed, spare: chosen === undefined ? 2 * processors + 1 : 0 };
  const output = process.env['TAP_OUTPUT_FILE'];
  const report = output === undefined ? null : createWriteStream(output);
  const waiting = named.length === 0 ? allFiles().map(nameOf).filter(isLeftOut) : [];
  process.stdout.write(
    `OSL_TEST_PART=${PART}${waiting.length === 0 ? '' : `, without ${waiting.join(', ')}`}\n`,
  );
  const folder = temporaryFolder();
  const tidy = (): void => rmSync(folder, { recursive: true, force: true });
  onStop(tidy);
  const started = performance.now();
  let ended = 0;
  let failed = 0;
  const each = (outcome: Outcome): void => {
    const { file, seconds, ok, tap, faults, complaints } = outcome;
    ended += 1;
    failed += ok ? 0 : 1;
    process.stdout.write(told(outcome));
    const point = `${ok ? 'ok' : 'not ok'} ${ended} - ${file} # time=${(seconds * 1000).toFixed(0)}ms`;
    const why = ok
      ? ''
      : `  ---\n  why: ${JSON.stringify([...faults, complaints].join(' ').slice(0, MOST_TOLD))}\n  ...\n`;
    report?.write(`# Subtest: ${file}\n${indented(tap, 4)}\n${point}\n${why}\n`);
  };
  const isAlone = ({ file }: Job): boolean => ALONE.test(nameOf(file));
  try {
    const many = jobs.length > fixed;
    if (many) makeTemplate();
    const command =
      many && process.env['OSL_TEST_BIN'] === undefined ? await makeCommand(folder, SHORT_LIVED) : null;
    const tests = many ? await makeTests(folder, SHORT_LIVED, inScript(jobs), TRIAL.map(fileOf)) : null;
    const surroundings = { folder, command, tests };
    await runAll(
      jobs.filter((job) => !isAlone(job)),
      lanes,
      surroundings,
      each,
    );
    await runAll(jobs.filter(isAlone), { fixed: 1, spare: 0 }, surroundings, each);
  } finally {
    tidy();
  }
  report?.end(`1..${ended}\n`);
  const seconds = ((performance.now() - started) / 1000).toFixed(0);
  process.stdout.write(`${ended} files in ${seconds} s, ${failed === 0 ? 'none' : failed} failed\n`);
  return failed === 0 && ended > 0 ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
