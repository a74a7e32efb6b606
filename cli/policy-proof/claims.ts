import { obligationsOf, type ProvenPolicy } from '../../policy/proof/index.js';
import type { PolicyTests } from '../policy-tests/document.js';
import { counterexampleLines, decide, openTrials, type ProofResult } from './decide.js';
import { type Solver, SolverFault, withSolver } from './solver.js';

export interface ProvenClaim {
  readonly name: string;
  readonly verdict: ProofResult;
}

/**
 * Tries to prove or refute the claims in a file of policy tests.
 *
 * @param starting the solver, which may still be starting
 * @throws UnclearClaim, SolverFault
 */
export async function proveClaims(
  { claims, ...files }: Pick<PolicyTests, 'claims' | 'manifestFile' | 'policyFile'>,
  policy: ProvenPolicy,
  starting: Promise<Solver>,
  progress: (done: number, of: number) => void = () => undefined,
): Promise<readonly ProvenClaim[]> {
  const stated = claims.map(({ name, claim }) => ({ name, obligations: obligationsOf(claim, policy) }));
  const solver = await starting;
  const trials = openTrials(files);
  let done = 0;
  try {
    return await Promise.all(
      stated.map(async ({ name, obligations }) => {
        const verdict = await decide(obligations, solver, trials.run);
        progress(++done, claims.length);
        return { name, verdict };
      }),
    );
  } finally {
    await trials.close();
  }
}

/** Formats a claim and its verdict as lines of text for users. */
export function* claimLines({ name, verdict }: ProvenClaim): Generator<string> {
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
  }
}

/** A claim, its verdict, and lines that explain it if it is not proved. */
interface ClaimReport {
  readonly name: string;
  readonly verdict: ProofResult['kind'];
  readonly shows: readonly string[];
}

/** Decides the claims with a new solver. Without a solver, all of them are unknown. */
export async function claimReports(
  tests: PolicyTests,
  policy: ProvenPolicy,
): Promise<readonly ClaimReport[]> {
  try {
    const proven = await withSolver((starting) => proveClaims(tests, policy, starting));
    return proven.map((claim) => {
      const [, ...shows] = [...claimLines(claim)].map((line) => line.trim());
      return { name: claim.name, verdict: claim.verdict.kind, shows };
    });
  } catch (error) {
    if (!(error instanceof SolverFault)) throw error;
    return tests.claims.map(({ name }) => ({ name, verdict: 'unknown', shows: [error.message] }));
  }
}
