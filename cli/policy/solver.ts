import { EXIT, Failure, usage } from '../exit.js';
import { type Solver, SolverFault, withSolver } from '../policy-proof/solver.js';

/** Like `withSolver`. @throws Failure, which says how to install the solver if it is missing */
export async function withInstalledSolver<T>(work: (starting: Promise<Solver>) => Promise<T>): Promise<T> {
  try {
    return await withSolver(work);
  } catch (error) {
    if (!(error instanceof SolverFault)) throw error;
    throw error.isMissing
      ? usage(`${error.message}\n  hint: npm install z3-solver`)
      : new Failure(EXIT.failed, `error: ${error.message}`);
  }
}
