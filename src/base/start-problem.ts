/** A fault that the operator can mend: one line on standard error, and exit status 2. */
export class StartProblem extends Error {
  override readonly name = 'StartProblem';
}

/** Another process has what this one needs, and may end: one line on standard error, and exit status 1. */
export class InUse extends Error {
  override readonly name = 'InUse';
}
