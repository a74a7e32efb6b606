import { EXIT, Failure, usage } from '../exit.js';
import { Solver, SolverFault } from '../policy-proof/solver.js';

/**
 * Starts the solver for some work, which may begin before it has started.
 *
 * @throws Failure, which says how to install the solver if it is missing
 */
export async function withSolver<T>(work: (starting: Promise<Solver>) => Promise<T>): Promise<T> {
  const starting = Solver.start().catch((error: unknown) => {
    throw failureOf(error);
  });
  starting.catch(() => undefined); // it may fail before `work` waits for it
  try {
    return await work(starting);
  } finally {
    await starting.then(
      (solver) => solver.stop(),
      () => undefined, // `work` has thrown it
    );
  }
}

function failureOf(error: unknown): unknown {
  if (!(error instanceof SolverFault)) return error;
  return error.isMissing
    ? usage(`${error.message}\n  hint: npm install z3-solver`)
    : new Failure(EXIT.failed, `error: ${error.message}`);
}
