import { spawn, spawnSync } from 'node:child_process';
import { appendFileSync, createWriteStream, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { IN_TURNS, ON_BOTH } from './turns.js';

/**
 * The long versions of the tests, one after another: `npm run nightly -- [--scale F] [--minutes N] [--only NAME,…]`.
 *
 * The seed is the day's date, or `OSL_NIGHTLY_SEED`; it is printed, and what fails under it fails again under it.
 * `--scale 0.01` asks a hundredth of the questions. Long steps are in parts of some minutes. `--minutes` starts no
 * part after that time; a later run with the same seed goes on with the parts that have not passed. Ends with 1 if
 * anything failed.
 */
interface Step {
  readonly name: string;
  /** The test file, below `test/`; with an ending of its own where it is no part of `npm test`. */
  readonly file: string;
  /** Size: its unit, and the variable that sets it. Null where the test has one size only. */
  readonly size: Size | null;
  /** True if services stand on the embedded engine, whatever server is named. */
  readonly embedded?: boolean;
}

interface Size {
  readonly of: string;
  readonly variable: string;
  readonly count: number;
  /** Number in one part. */
  readonly part: number;
}

const sized = (of: string, variable: string, count: number, part = count): Size => ({
  of,
  variable,
  count,
  part,
});
const questions = (variable: string, count: number, part = count): Size =>
  sized('questions', variable, count, part);

const SIZED: readonly Step[] = [
  { name: 'oracle', file: 'proof/oracle/oracle', size: questions('OSL_ORACLE_RUNS', 120_000, 10_000) },
  {
    name: 'non-interference',
    file: 'proof/oracle/non-interference',
    size: questions('OSL_ORACLE_RUNS', 100_000, 20_000),
  },
  { name: 'surfaces', file: 'proof/attacks/random-twin', size: questions('OSL_TWIN_RUNS', 100_000, 20_000) },
  { name: 'join rule', file: 'proof/joins/joins', size: questions('OSL_JOIN_RUNS', 20_000, 5_000) },
  { name: 'raw joins', file: 'proof/oracle/raw', size: sized('joins', 'OSL_RAW_RUNS', 20_000, 2_500) },
  {
    name: 'plans read again',
    file: 'proof/oracle/recompile',
    size: questions('OSL_RECOMPILE_RUNS', 20_000, 5_000),
  },
  { name: 'walks', file: 'language/forms/traverse', size: sized('graphs', 'OSL_TRAVERSE_RUNS', 1_000, 250) },
  { name: 'YAML', file: 'model/manifest/simple-yaml', size: sized('texts', 'OSL_YAML_RUNS', 1_000_000) },
  { name: 'rls', file: 'proof/oracle/rls', size: questions('OSL_RLS_RUNS', 10_000, 2_500) },
  {
    name: 'folded grants',
    file: 'proof/oracle/folded-grants',
    size: sized('sets of grants', 'OSL_FOLDED_WORLDS', 3_000, 1_000),
  },
  {
    name: 'golden cases in every place',
    file: 'proof/golden/positions',
    size: sized('places of each', 'OSL_GOLDEN_PLACES', 20),
  },
  { name: 'Citus', file: 'proof/citus/citus', size: sized('worlds', 'OSL_CITUS_WORLDS', 200, 50) },
  { name: 'groups', file: 'proof/oracle/groups', size: questions('OSL_GROUPS_RUNS', 20_000, 5_000) },
  {
    name: 'differences',
    file: 'proof/attacks/differences',
    size: sized('attacks', 'OSL_DIFFERENCE_ATTACKS', 10_000),
  },
  { name: 'rollups', file: 'proof/oracle/rollups', size: questions('OSL_ORACLE_ROLLUPS', 20_000, 5_000) },
  { name: 'formal proof', file: 'formal/formal', size: null },
  { name: 'formal model', file: 'formal/binding', size: questions('OSL_FORMAL_RUNS', 100_000, 25_000) },
  { name: 'faults', file: 'proof/oracle/faults', size: null },
  { name: 'barrier', file: 'proof/oracle/barrier', size: null },
  {
    name: 'overloads',
    file: 'language/functions/resolution',
    size: sized('calls', 'OSL_TEST_CALLS', 40_000),
  },
  {
    name: 'shared plans',
    file: 'language/compiler/shape-plan',
    size: sized('worlds', 'OSL_SHAPE_WORLDS', 1_000, 200),
  },
  { name: 'shapes', file: 'language/compiler/shape-scan', size: sized('texts', 'OSL_SHAPE_RUNS', 1_000_000) },
  { name: 'held', file: 'proof/budget/held', size: sized('ways of each text', 'OSL_BUDGET_WAYS', 5) },
  {
    name: 'ways',
    file: 'proof/budget/ways',
    size: sized('sizes of each draft and message', 'OSL_BUDGET_WAYS', 5),
  },
  {
    name: 'comments',
    file: 'language/compiler/comments',
    size: sized('texts', 'OSL_COMMENT_RUNS', 1_000_000),
  },
  { name: 'linear', file: 'proof/budget/linear', size: sized('worlds', 'OSL_BUDGET_WAYS', 2) },
  { name: 'growth', file: 'proof/budget/growth', size: sized('shapes', 'OSL_GROWTH_SHAPES', 1_000) },
  { name: 'monotone', file: 'policy/monotone', size: sized('chains', 'OSL_MONOTONE_RUNS', 20_000, 5_000) },
  {
    name: 'imports',
    file: 'tools/interchange/fuzz',
    size: sized('changes to each file', 'OSL_IMPORT_RUNS', 10_000, 2_500),
  },
  { name: 'lineage', file: 'service/lineage/untouched', size: questions('OSL_LINEAGE_RUNS', 20_000, 5_000) },
  {
    name: 'lineage after crashes',
    file: 'service/lineage/crash',
    size: sized('crashes', 'OSL_LINEAGE_CRASHES', 100, 25),
  },
  { name: 'first answers', file: 'tools/init/init', size: null },
  {
    name: 'gateways that are killed',
    file: 'service/operations/fleet',
    size: sized('seconds', 'OSL_FLEET_SECONDS', 60),
  },
  {
    name: 'large catalogs',
    file: 'surfaces/catalog/large',
    size: sized('entities', 'OSL_CATALOG_ENTITIES', 10_000),
  },
  { name: 'large values in 512 MiB', file: 'service/operations/crowd.js', size: null },
  { name: 'parity', file: 'proof/parity/parity', size: null },
  { name: 'attacks', file: 'proof/attacks/attacks', size: null },
  { name: 'attacks on the protocol', file: 'proof/attacks/protocol', size: null },
  { name: 'attacks on twins', file: 'proof/attacks/twin', size: null },
  { name: 'attacks on every surface', file: 'proof/attacks/surfaces', size: null },
  { name: 'attacks on a native server', file: 'proof/attacks/native', size: null },
  { name: 'attacks by hidden text', file: 'proof/attacks/corpora', size: null },
  { name: 'twin corpora', file: 'language/forms/twin', size: null },
  {
    name: 'retrieval',
    file: 'proof/retrieval/retrieval',
    size: questions('OSL_RETRIEVAL_RUNS', 20_000, 5_000),
  },
  {
    name: 'redaction',
    file: 'language/forms/redaction',
    size: sized('worlds', 'OSL_REDACTION_RUNS', 1_000, 250),
  },
  {
    name: 'shared sessions',
    file: 'proof/sharing/sharing',
    size: sized('acts', 'OSL_SHARING_ACTS', 200_000, 20_000),
  },
  { name: 'two lanes', file: 'proof/lanes/lanes', size: questions('OSL_LANES_RUNS', 2_000) },
  { name: 'broken clients', file: 'proof/faults/client', size: sized('places', 'OSL_FAULT_OFFSETS', 2_000) },
  {
    name: 'broken upstreams',
    file: 'proof/faults/upstream',
    size: sized('places', 'OSL_FAULT_OFFSETS', 2_000),
  },
  { name: 'deaths', file: 'proof/faults/deaths', size: sized('places', 'OSL_FAULT_OFFSETS', 20) },
  { name: 'stalls', file: 'proof/faults/stalls', size: null },
  { name: 'outward', file: 'proof/faults/outward', size: sized('rounds', 'OSL_FAULT_ROUNDS', 20) },
  { name: 'recut bytes', file: 'wire/framing', size: null },
  { name: 'recut sessions', file: 'surfaces/pg/fuzz-recut', size: null },
  {
    name: 'changed bytes',
    file: 'surfaces/pg/fuzz',
    size: sized('changes', 'OSL_FUZZ_RUNS', 1_000_000, 200_000),
  },
  { name: "drivers' own tests", file: 'clients/drivers/suites.js', size: null },
  { name: 'killed gateways', file: 'service/operations/killed', size: sized('kills', 'OSL_KILL_ROUNDS', 50) },
  { name: 'crash', file: 'audit/crash', size: sized('rounds', 'OSL_CRASH_ROUNDS', 1_000, 250) },
  {
    name: 'crash over a table',
    file: 'audit/table/crash',
    size: sized('rounds', 'OSL_TABLE_CRASH_ROUNDS', 1_000, 100),
  },
  {
    name: 'simulation',
    file: 'simulation/simulation',
    size: sized('sessions', 'OSL_SIMULATION_SESSIONS', 1_000_000, 10_000),
  },
  {
    name: 'planted bugs of the simulation',
    file: 'simulation/simulation',
    size: sized('sessions for each', 'OSL_SIMULATION_BUG_SESSIONS', 100_000),
  },
  {
    name: 'leakbench without alarm',
    file: 'leakbench/copies',
    size: sized('attacks', 'OSL_LEAKBENCH_RUNS', 10_000, 2_500),
  },
  { name: 'planted holes', file: 'leakbench/holes', size: sized('holes', 'OSL_HOLES', 99) },
  { name: 'release and executable', file: 'tools/package/made.js', size: null },
  { name: 'image', file: 'tools/package/drills/image.js', size: null },
  { name: 'unit', file: 'tools/package/drills/unit.js', size: null },
];

/** Files of which a run in CI has some only. */
const IN_TURN: readonly Step[] = IN_TURNS.filter((file) => !SIZED.some((s) => s.file === file)).map(
  (file) => ({ name: file, file, size: null }),
);

/** Tests that CI runs once more with the embedded engine, in part. */
const EMBEDDED: readonly Step[] = ON_BOTH.map((file) => ({
  name: `embedded engine: ${file}`,
  file,
  size: null,
  embedded: true,
}));

const STEPS: readonly Step[] = [...SIZED, ...IN_TURN, ...EMBEDDED];

/** After so many seconds a part is ended. */
const PART_SECONDS = 4 * 3_600;

/** A piece of the night that runs at once, and again if it was stopped or failed. */
interface Part {
  readonly step: Step;
  /** `oracle 3/24`; a step of one part has its own name. */
  readonly name: string;
  readonly count: number | null;
  /** Parts of a step start from different seeds, so that they ask different questions. */
  readonly seed: number;
}

/** A part that has ended, as in the night's `results.jsonl`, one a line. */
interface Result {
  readonly name: string;
  readonly count: number | null;
  readonly seed: number;
  /** The commit that ran, with `+` behind it if the checkout had changes. */
  readonly commit: string;
  readonly at: string;
  readonly seconds: number;
  readonly passed: boolean;
  /** Report of the test on itself: seed, counts, coverage. */
  readonly notes: readonly string[];
}

function partsOf(step: Step, scale: number, seed: number): readonly Part[] {
  if (step.size === null) return [{ step, name: step.name, count: null, seed }];
  const total = Math.max(1, Math.round(step.size.count * scale));
  const each = Math.min(total, step.size.part);
  const parts = Math.ceil(total / each);
  return Array.from({ length: parts }, (_, i) => ({
    step,
    name: parts === 1 ? step.name : `${step.name} ${i + 1}/${parts}`,
    count: Math.min(each, total - i * each),
    seed: seed + i * each,
  }));
}

async function run(part: Part, commit: string, dir: string): Promise<Result> {
  const { step, count, seed } = part;
  const env = {
    ...process.env,
    OSL_ORACLE_SEED: String(seed),
    OSL_TEST_SEED: String(seed),
    OSL_TEST_PART: 'all',
    TAP_TIMEOUT: String(PART_SECONDS),
    ...(step.embedded === true && { OSL_TEST_ENGINE: 'pglite' }),
    ...(step.size === null ? {} : { [step.size.variable]: String(count) }),
  };
  const started = Date.now();
  const file = fileURLToPath(
    new URL(`./${/\.js$/.test(step.file) ? step.file : `${step.file}.test.js`}`, import.meta.url),
  );
  const child = spawn(process.execPath, [file], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const log = createWriteStream(join(dir, `${part.name.replaceAll(/[ ':/]/g, '-')}.log`));
  let told = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      log.write(text);
      told += text;
    });
  }
  const code = await new Promise<number | null>((done) => child.once('close', done));
  log.end();
  return {
    name: part.name,
    count,
    seed,
    commit,
    at: new Date(started).toISOString(),
    seconds: Math.round((Date.now() - started) / 1000),
    passed: code === 0 && /^# \{ total: \d+, pass: \d+/m.test(told),
    notes: notesIn(told),
  };
}

/** Comments of tests, skips and what is not ok; TAP's own comments are not. */
function notesIn(told: string): readonly string[] {
  const lines = told.split('\n').map((line) => line.trim());
  return lines.filter(
    (line) =>
      /^not ok /.test(line) || / # SKIP/i.test(line) || /^# (?!Subtest|\{ total|time=|bailout)/.test(line),
  );
}

/** The last result of each part that has run, by the part's name. */
function resultsIn(file: string): ReadonlyMap<string, Result> {
  if (!existsSync(file)) return new Map();
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line !== '');
  return new Map(
    lines.map((line) => {
      const result = JSON.parse(line) as Result;
      return [result.name, result];
    }),
  );
}

/** One row a step: how much of it has run, how long that took, and whether all of it passed. */
function summary(parts: readonly Part[], results: ReadonlyMap<string, Result>): string {
  const steps = [...new Set(parts.map((part) => part.step))];
  const rows = steps.map((step) => {
    const all = parts.filter((part) => part.step === step);
    const ended = all.map((part) => results.get(part.name)).filter((result) => result !== undefined);
    const count = ended.reduce((sum, result) => sum + (result.count ?? 0), 0);
    const failed = ended.filter((result) => !result.passed).length;
    return [
      step.name,
      step.size === null ? '' : `${count} ${step.size.of}`,
      `${ended.length}/${all.length}`,
      String(ended.reduce((sum, result) => sum + result.seconds, 0)),
      failed > 0 ? `FAILED ${failed}` : ended.length === 0 ? 'not run' : 'passed',
    ];
  });
  const head = ['what', 'how many', 'parts', 'seconds', 'result'];
  const widths = head.map((h, i) => Math.max(h.length, ...rows.map((row) => row[i]?.length ?? 0)));
  return [head, ...rows]
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

function optionOf(name: string, args: readonly string[]): string | null {
  const at = args.indexOf(name);
  return at < 0 ? null : (args[at + 1] ?? null);
}

function commitOfCheckout(): string {
  const git = (...args: string[]): string =>
    spawnSync('git', ['-c', 'safe.directory=*', ...args], { encoding: 'utf8' }).stdout.trim();
  return `${git('rev-parse', '--short', 'HEAD')}${git('status', '--porcelain', '-uno') === '' ? '' : '+'}`;
}

async function main(args: readonly string[]): Promise<number> {
  const scale = Number(optionOf('--scale', args) ?? 1);
  const minutes = Number(optionOf('--minutes', args) ?? Number.POSITIVE_INFINITY);
  const only = optionOf('--only', args)?.split(',') ?? STEPS.map((s) => s.name);
  const unknown = only.filter((name) => !STEPS.some((s) => s.name === name));
  if (!(scale > 0) || !(minutes > 0) || unknown.length > 0) {
    const names = STEPS.map((s) => s.name).join(', ');
    process.stderr.write(
      `usage: npm run nightly -- [--scale F] [--minutes N] [--only NAME,…]   NAME: ${names}\n`,
    );
    return 2;
  }
  const today = Number(new Date().toISOString().slice(0, 10).replaceAll('-', ''));
  const seed = Number(process.env['OSL_NIGHTLY_SEED'] ?? today);
  const dir = process.env['OSL_NIGHTLY_DIR'] ?? join(tmpdir(), `osl-nightly-${seed}`);
  mkdirSync(dir, { recursive: true });
  const file = join(dir, `results-${seed}-${scale}.jsonl`);
  const results = new Map(resultsIn(file));
  const parts = STEPS.filter((s) => only.includes(s.name)).flatMap((s) => partsOf(s, scale, seed));
  const left = parts.filter((part) => results.get(part.name)?.passed !== true);
  process.stdout.write(`seed ${seed}; ${left.length} of ${parts.length} parts left; results in ${file}\n`);
  const commit = commitOfCheckout();
  const end = Date.now() + minutes * 60_000;
  for (const part of left) {
    if (Date.now() >= end) break;
    const result = await run(part, commit, dir);
    results.set(part.name, result);
    appendFileSync(file, `${JSON.stringify(result)}\n`);
    const notes = result.notes.map((n) => `\n    ${n}`).join('');
    process.stdout.write(
      `${result.passed ? 'passed' : 'FAILED'} ${part.name} in ${result.seconds} s${notes}\n`,
    );
  }
  process.stdout.write(`\n${summary(parts, results)}\n`);
  const unfinished = parts.filter((part) => !results.has(part.name)).length;
  if (unfinished > 0)
    process.stdout.write(`\n${unfinished} parts have not run; OSL_NIGHTLY_SEED=${seed} goes on with them\n`);
  return parts.every((part) => results.get(part.name)?.passed !== false) ? 0 : 1;
}

process.exitCode = await main(process.argv.slice(2));
