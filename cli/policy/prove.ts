import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { lint, type Obligation, obligationsOf } from '../../policy/proof/index.js';
import { EXIT, Failure, usage } from '../exit.js';
import { counted, note, print, printJson, visible } from '../output.js';
import { counterexampleLines } from '../policy-proof/counterexample-lines.js';
import type { Verdict } from '../policy-proof/decide.js';
import type { Solver } from '../policy-proof/solver.js';
import { withSolver } from './solver.js';
import type { PolicyTests } from '../policy-tests/document.js';

export interface ProveFlags {
  readonly lint: boolean;
  readonly json?: true;
}

interface ProvenClaim {
  readonly name: string;
  readonly verdict: Verdict;
}

type Findings = Awaited<ReturnType<typeof lint>>;

/** Proves the claims of a file of policy tests, and looks for rules that do nothing. */
export async function runProve(file: string | undefined, flags: ProveFlags): Promise<void> {
  const named = file ?? 'policy.test.yaml';
  if (!existsSync(named))
    throw usage(`there is no ${named}\n  hint: name a file of policy tests with \`claims\``);
  await withSolver(async (starting) => {
    const { tests, policy, claims } = await provenFile(named);
    const { areImpossible } = await import('../policy-proof/decide.js');
    const solver = await starting;
    const [verdicts, findings] = await Promise.all([
      proved(claims, tests, solver),
      flags.lint ? lint(policy, (encoder, formulas) => areImpossible(encoder, formulas, solver)) : [],
    ]);
    report(named, verdicts, findings, flags);
  });
}

async function provenFile(file: string) {
  const { ready } = await import('osl-compiler');
  const { loadPolicyTests } = await import('../policy-tests/document.js');
  const { loadModel } = await import('../../src/service/model.js');
  await ready();
  const tests = await told(file, () => loadPolicyTests(resolve(file)));
  const { manifest, snapshot } = await loadModel(tests.manifestFile, tests.policyFile, null);
  if (snapshot === null) throw new Error('a policy that was loaded does not serve');
  const policy = { snapshot, catalog: manifest.catalog };
  const claims = await told(file, async () =>
    tests.claims.map(({ name, claim }) => ({ name, obligations: obligationsOf(claim, policy) })),
  );
  return { tests, policy, claims };
}

const FILE_FAULTS: ReadonlySet<string> = new Set(['UnclearTest', 'UnclearClaim', 'UnfitRows']);

async function told<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error) || !FILE_FAULTS.has(error.name)) throw error;
    throw new Failure(EXIT.usage, `error: ${file}: ${error.message}`);
  }
}

interface ClaimObligations {
  readonly name: string;
  readonly obligations: readonly Obligation[];
}

async function proved(
  claims: readonly ClaimObligations[],
  tests: PolicyTests,
  solver: Solver,
): Promise<readonly ProvenClaim[]> {
  const { decide } = await import('../policy-proof/decide.js');
  const { openTrials } = await import('../policy-proof/trials.js');
  const trials = openTrials(tests);
  let done = 0;
  try {
    return await Promise.all(
      claims.map(async ({ name, obligations }) => {
        const verdict = await decide(obligations, solver, trials.run);
        if (process.stderr.isTTY) note(`${++done} of ${claims.length} claims`);
        return { name, verdict };
      }),
    );
  } finally {
    await trials.close();
  }
}

/** Exit status of a claim that is neither proved nor refuted. */
const UNKNOWN = 3;

function report(file: string, claims: readonly ProvenClaim[], findings: Findings, flags: ProveFlags): void {
  const verdicts = new Set(claims.map(({ verdict }) => verdict.kind));
  const exit = verdicts.has('refuted') ? EXIT.failed : verdicts.has('unknown') ? UNKNOWN : EXIT.ok;
  if (flags.json) printJson({ claims: claims.map(claimJson), findings });
  else {
    for (const claim of claims) for (const line of claimLines(claim)) print(visible(line));
    for (const { rule, code, message } of findings) print(visible(`note     ${rule}: ${message} (${code})`));
    const of = (kind: string): number => claims.filter(({ verdict }) => verdict.kind === kind).length;
    print(
      `${file}: ${counted(claims.length, 'claim', 'claims')}: ${of('proved')} proved, ${of('refuted')} refuted, ${of('unknown')} unknown`,
    );
  }
  if (exit !== EXIT.ok) process.exitCode = exit;
}

function* claimLines({ name, verdict }: ProvenClaim): Generator<string> {
  switch (verdict.kind) {
    case 'proved':
      yield `proved   ${name}`;
      return;
    case 'unknown':
      yield `unknown  ${name}`;
      yield `           ${verdict.because}`;
      return;
    case 'refuted':
      yield `REFUTED  ${name}`;
      yield* counterexampleLines(verdict.counterexample);
      return;
    default: {
      const other: never = verdict;
      return other;
    }
  }
}

function claimJson({ name, verdict }: ProvenClaim) {
  if (verdict.kind !== 'refuted') return { name, ...verdict, verdict: verdict.kind };
  const { part, relation, row, callers, conditions } = verdict.counterexample;
  return {
    name,
    verdict: 'refuted',
    says: part.says,
    entity: relation.name,
    row: Object.fromEntries(row),
    callers: callers.map(({ roles, attributes }) => ({ roles, attributes: Object.fromEntries(attributes) })),
    conditions,
  };
}
