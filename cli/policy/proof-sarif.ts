import type { PolicyFinding } from '../../policy/proof/index.js';
import {
  type Diagnostic,
  type DiagnosticSeverity,
  parseSource,
  pointer,
  readManifestText,
} from '../../src/model/manifest/index.js';
import type { ProvenClaim } from '../policy-proof/claims.js';
import { counterexampleLines } from '../policy-proof/counterexample-lines.js';

/** Claims that are not proved, at their places in the file of tests, and rules that do nothing, in the policy file. */
export async function proofDiagnostics(
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

interface Problem {
  readonly severity: DiagnosticSeverity;
  readonly code: string;
  readonly message: string;
}

/** Makes diagnostics at places of a YAML file. */
export async function placesIn(
  file: string,
): Promise<(path: PolicyFinding['path'], problem: Problem) => Diagnostic> {
  const source = parseSource(await readManifestText(file), file);
  return (path, problem) => ({
    ...problem,
    file,
    range: source.locate(path),
    path: pointer(path),
    hint: null,
  });
}

function problemOf({ name, verdict }: ProvenClaim): Problem | null {
  switch (verdict.kind) {
    case 'proved':
      return null;
    case 'unknown':
      return { severity: 'warning', code: 'claim_unknown', message: `${name}: ${verdict.because}` };
    case 'refuted': {
      const lines = [...counterexampleLines(verdict.counterexample)].map((line) => line.trim());
      return { severity: 'error', code: 'claim_refuted', message: `${name}: ${lines.join('; ')}` };
    }
    default: {
      const other: never = verdict;
      return other;
    }
  }
}
