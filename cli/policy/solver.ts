import { EXIT, Failure, usage } from '../exit.js';
import type { Solver } from '../policy-proof/solver.js';

/** Starts the solver. @throws Failure, which says how to install it if it is missing */
export async function startSolver(): Promise<Solver> {
  const { Solver, SolverFault } = await import('../policy-proof/solver.js');
  try {
    return await Solver.start();
  } catch (error) {
    if (!(error instanceof SolverFault)) throw error;
    throw error.isMissing
      ? usage(`${error.message}\n  hint: npm install z3-solver`)
      : new Failure(EXIT.failed, `error: ${error.message}`);
  }
}
