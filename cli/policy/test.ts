import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { EXIT, usage } from '../exit.js';
import { counted, print, printJson, visible } from '../output.js';
import type { Coverage, PolicyTestRun } from '../policy-tests/run.js';
import { TESTS_FILE, withTestsFile } from './prove.js';

interface TestFlags {
  readonly minCoverage?: number;
  readonly coverage: boolean;
  readonly json?: true;
}

const NO_FILE = `there is no ${TESTS_FILE} in this folder
  hint: name a file of tests, or begin with these lines beside manifest.yaml and policy.yaml; docs/policy-tests.md has all keys

version: 1
tests:
  - name: who is not in the policy sees nothing
    as: user:nobody
    ask: select * from osl.entities.NAME
    expect: { decision: E2102 }`;

export async function runTest(files: readonly string[], flags: TestFlags): Promise<void> {
  if (!flags.coverage && flags.minCoverage !== undefined)
    throw usage('--min-coverage needs the coverage that --no-coverage leaves out');
  if (files.length === 0 && !existsSync(TESTS_FILE)) throw usage(NO_FILE);
  const named = files.length === 0 ? [TESTS_FILE] : files;
  const runs: (PolicyTestRun & { readonly file: string })[] = [];
  for (const file of named) {
    const run = { file, ...(await runFile(file, flags.coverage)) };
    runs.push(run);
    if (!flags.json) for (const line of linesOf(run)) print(line);
  }
  const ok = runs.every((run) => run.ok && isEnough(run.coverage, flags.minCoverage ?? 0));
  if (flags.json) printJson({ ok, files: runs });
  if (!ok) process.exitCode = EXIT.failed;
}

async function runFile(file: string, withCoverage: boolean): Promise<PolicyTestRun> {
  const { ready } = await import('osl-compiler');
  const { loadPolicyTests } = await import('../policy-tests/document.js');
  const { runPolicyTests } = await import('../policy-tests/run.js');
  await ready();
  return withTestsFile(file, async () => runPolicyTests(await loadPolicyTests(resolve(file)), withCoverage));
}

function isEnough(coverage: Coverage | null, least: number): boolean {
  return coverage === null || percentOf(coverage) >= least;
}

/** Percentage of the changes that a test noticed, rounded down so that 100 means all. */
function percentOf({ changes, held }: Coverage): number {
  return changes === 0 ? 100 : Math.floor((100 * held) / changes);
}

function* linesOf({ file, results, coverage }: PolicyTestRun & { readonly file: string }): Generator<string> {
  for (const { name, ok, faults } of results) {
    yield `${ok ? 'ok    ' : 'FAILED'} ${visible(name)}`;
    for (const fault of faults) yield `         ${visible(fault)}`;
  }
  const failed = results.filter((r) => !r.ok).length;
  yield `${file}: ${counted(results.length, 'test', 'tests')}, ${failed === 0 ? 'all pass' : `${failed} failed`}`;
  if (coverage === null) return;
  yield `${percentOf(coverage)} % of the policy's rules are held: of ${counted(coverage.changes, 'change', 'changes')} to one rule each, ${coverage.held} failed a test`;
  for (const { rule, change } of coverage.unheld) yield `  no test notices: ${rule}: ${change}`;
}
