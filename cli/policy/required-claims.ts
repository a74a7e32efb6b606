import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { compiledPolicy } from '../../src/model/authoring/index.js';
import type { Model } from '../../src/model/served-model.js';
import { EXIT, Failure, usage } from '../exit.js';
import { note, visible } from '../output.js';
import { TESTS_FILE, withTestsFile } from './tests-file.js';

/**
 * Proves the claims about a policy that says `claims: required`, or replaces one that says so.
 *
 * @param file where the policy is; null if it is a version of the control database
 * @param claims the file of claims; by default `policy.test.yaml` beside the policy
 * @throws Failure unless all claims are proved
 */
export async function requireClaims(
  text: string,
  file: string | null,
  { manifest, snapshot: before }: Model,
  claims: string | undefined,
): Promise<void> {
  const snapshot = compiledPolicy(text, file ?? 'policy', manifest);
  if (![snapshot, before].some((policy) => policy?.document.claims === 'required')) return;
  const named = claims ?? join(file === null ? '.' : dirname(file), TESTS_FILE);
  if (!existsSync(named))
    throw usage(
      `the policy says \`claims: required\`, and there is no ${named}\n  hint: name it with --claims`,
    );
  const { loadPolicyTests } = await import('../policy-tests/document.js');
  const { claimLines, proveClaims } = await import('../policy-proof/claims.js');
  const { withInstalledSolver } = await import('./solver.js');
  const tests = await withTestsFile(named, () => loadPolicyTests(resolve(named)));
  if (tests.claims.length === 0)
    throw usage(`the policy says \`claims: required\`, and ${named} has no \`claims\``);
  const policy = { snapshot, catalog: manifest.catalog };
  const proven = await withInstalledSolver((starting) =>
    withTestsFile(named, () => proveClaims(tests, policy, starting)),
  );
  const open = proven.filter(({ verdict }) => verdict.kind !== 'proved');
  if (open.length === 0) {
    note(`${named}: all ${proven.length} claims are proved`);
    return;
  }
  const lines = open.flatMap((claim) => [...claimLines(claim)].map(visible));
  throw new Failure(
    EXIT.failed,
    [
      `error: ${named}: ${open.length} of ${proven.length} claims are not proved, and the policy requires them`,
      ...lines,
    ].join('\n'),
  );
}
