import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { lint, type PolicyFinding } from '../../policy/proof/index.js';
import {
  type Diagnostic,
  type DiagnosticSeverity,
  parseSource,
  pointer,
  readManifestText,
} from '../../src/model/manifest/index.js';
import { EXIT, failure, usage } from '../exit.js';
import { counted, note, print, printJson, visible } from '../output.js';
import { claimLines, type ProvenClaim, proveClaims } from '../policy-proof/claims.js';
import { areImpossible, counterexampleLines } from '../policy-proof/decide.js';
import { type Solver, SolverFault, withSolver } from '../policy-proof/solver.js';

export interface ProveFlags {
  readonly lint: boolean;
  readonly json?: true;
  readonly sarif?: true;
}

/** Proves the claims in a file of policy tests and, with `lint`, looks for rules that have no effect. */
export async function runProve(file: string | undefined, flags: ProveFlags): Promise<void> {
  const named = file ?? TESTS_FILE;
  if (!existsSync(named))
    throw usage(`there is no ${named}\n  hint: name a file of policy tests with \`claims\``);
  await withInstalledSolver(async (starting) => {
    const { tests, policy } = await loadProven(named);
    const progress = (done: number, of: number): void => {
      if (process.stderr.isTTY) note(`${done} of ${of} claims`);
    };
    const [claims, findings] = await Promise.all([
      withTestsFile(named, () => proveClaims(tests, policy, starting, progress)),
      flags.lint
        ? lint(policy, async (encoder, formulas) => areImpossible(encoder, formulas, await starting))
        : [],
    ]);
    const exit = exitStatus(claims);
    if (flags.json) printJson({ claims: claims.map(claimJson), findings: findings.map(findingJson) });
    else if (flags.sarif) await printSarif(named, tests.policyFile, claims, findings);
    else printReport(named, claims, findings);
    if (exit !== EXIT.ok) process.exitCode = exit;
  });
}

async function loadProven(file: string) {
  const { ready } = await import('osl-compiler');
  const { loadPolicyTests } = await import('../policy-tests/document.js');
  const { loadModel } = await import('../../src/service/model.js');
  await ready();
  const tests = await withTestsFile(file, () => loadPolicyTests(resolve(file)));
  const { manifest, snapshot } = await loadModel(tests.manifestFile, tests.policyFile, null);
  if (snapshot === null) throw new Error('a policy that was loaded does not serve');
  return { tests, policy: { snapshot, catalog: manifest.catalog } };
}

/** Exit status if a claim could be neither proved nor refuted. */
const UNKNOWN = 3;

function exitStatus(claims: readonly ProvenClaim[]): number {
  const verdicts = new Set(claims.map(({ verdict }) => verdict.kind));
  return verdicts.has('refuted') ? EXIT.failed : verdicts.has('unknown') ? UNKNOWN : EXIT.ok;
}

function printReport(file: string, claims: readonly ProvenClaim[], findings: readonly PolicyFinding[]): void {
  for (const claim of claims) for (const line of claimLines(claim)) print(visible(line));
  for (const { path, code, message } of findings)
    print(visible(`note     ${ruleText(path)}: ${message} (${code})`));
  const of = (kind: string): number => claims.filter(({ verdict }) => verdict.kind === kind).length;
  print(
    `${file}: ${counted(claims.length, 'claim', 'claims')}: ${of('proved')} proved, ${of('refuted')} refuted, ${of('unknown')} unknown`,
  );
}

/** Formats a path in the policy, such as `roles.sales.grants[0]`. */
function ruleText(path: PolicyFinding['path']): string {
  return path
    .map((step) => (typeof step === 'number' ? `[${step}]` : `.${step}`))
    .join('')
    .slice(1);
}

function findingJson({ code, path, message }: PolicyFinding) {
  return { code, rule: ruleText(path), message };
}

async function printSarif(
  file: string,
  policyFile: string,
  claims: readonly ProvenClaim[],
  findings: readonly PolicyFinding[],
): Promise<void> {
  const { sarifLog } = await import('../sarif.js');
  printJson(sarifLog(await proofDiagnostics(file, policyFile, claims, findings)));
}

function claimJson({ name, verdict }: ProvenClaim) {
  if (verdict.kind !== 'refuted') return { name, ...verdict, verdict: verdict.kind };
  const { part, relation, row, callers, conditions } = verdict.counterexample;
  return {
    name,
    verdict: 'refuted',
    says: part.description,
    entity: relation.name,
    row: Object.fromEntries(row),
    callers: callers.map(({ roles, attributes }) => ({ roles, attributes: Object.fromEntries(attributes) })),
    conditions,
  };
}

/** Diagnostics for unproved claims (in the tests file) and for rules without effect (in the policy file). */
async function proofDiagnostics(
  testsFile: string,
  policyFile: string,
  claims: readonly ProvenClaim[],
  findings: readonly PolicyFinding[],
): Promise<readonly Diagnostic[]> {
  const [inTests, inPolicy] = [await placesIn(testsFile), await placesIn(policyFile)];
  const open = claims.flatMap((claim, i) => {
    const problem = problemOf(claim);
    return problem === null ? [] : [inTests(['claims', i], problem)];
  });
  const idle = findings.map(({ code, path, message }) =>
    inPolicy(path, { severity: 'warning', code, message }),
  );
  return [...open, ...idle];
}

interface ClaimProblem {
  readonly severity: DiagnosticSeverity;
  readonly code: string;
  readonly message: string;
}

/** Returns a function that makes diagnostics located in a YAML file. */
export async function placesIn(
  file: string,
): Promise<(path: PolicyFinding['path'], problem: ClaimProblem) => Diagnostic> {
  const source = parseSource(await readManifestText(file), file);
  return (path, problem) => ({
    ...problem,
    file,
    range: source.locate(path),
    path: pointer(path),
    hint: null,
  });
}

function problemOf({ name, verdict }: ProvenClaim): ClaimProblem | null {
  switch (verdict.kind) {
    case 'proved':
      return null;
    case 'unknown':
      return { severity: 'warning', code: 'claim_unknown', message: `${name}: ${verdict.because}` };
    case 'refuted': {
      const lines = [...counterexampleLines(verdict.counterexample)].map((line) => line.trim());
      return { severity: 'error', code: 'claim_refuted', message: `${name}: ${lines.join('; ')}` };
    }
  }
}

/** Like `withSolver`. @throws Failure, which explains how to install the solver if it is missing */
export async function withInstalledSolver<T>(work: (starting: Promise<Solver>) => Promise<T>): Promise<T> {
  try {
    return await withSolver(work);
  } catch (error) {
    if (!(error instanceof SolverFault)) throw error;
    throw error.isMissing
      ? usage(`${error.message}\n  hint: npm install z3-solver`)
      : failure(`${error.message}`);
  }
}

/** Name of the file with a policy's tests and claims, in the same directory as the policy. */
export const TESTS_FILE = 'policy.test.yaml';

/** Names of the errors caused by the content of a file of policy tests. */
const FILE_FAULTS: ReadonlySet<string> = new Set(['UnclearTest', 'UnclearClaim', 'UnfitRows']);

/** Runs `work` on a file of policy tests. @throws Failure with the file's name if its content is at fault */
export async function withTestsFile<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error) || !FILE_FAULTS.has(error.name)) throw error;
    const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
    throw usage(`${file}: ${error.message}${cause}`);
  }
}
