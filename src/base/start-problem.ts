/** A fault that the operator can mend: one line on standard error, and exit status 2. */
export class StartProblem extends Error {
  override readonly name = 'StartProblem';
}
