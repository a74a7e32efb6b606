import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { lint, type PolicyFinding } from '../../policy/proof/index.js';
import { EXIT, usage } from '../exit.js';
import { counted, note, print, printJson, visible } from '../output.js';
import { claimLines, type ProvenClaim, proveClaims } from '../policy-proof/claims.js';
import { areImpossible } from '../policy-proof/decide.js';
import { withInstalledSolver } from './solver.js';
import { TESTS_FILE, withTestsFile } from './tests-file.js';

export interface ProveFlags {
  readonly lint: boolean;
  readonly json?: true;
  readonly sarif?: true;
}

/** Proves the claims of a file of policy tests, and looks for rules that do nothing. */
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

/** Exit status of a claim that is neither proved nor refuted. */
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

/** A place in the policy as people write it: `roles.sales.grants[0]`. */
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
  const { proofDiagnostics } = await import('./proof-sarif.js');
  const { sarifLog } = await import('../sarif.js');
  printJson(sarifLog(await proofDiagnostics(file, policyFile, claims, findings)));
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
