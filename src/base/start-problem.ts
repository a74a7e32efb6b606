/** A problem that the operator can fix: one line on standard error, exit status 2. */
export class StartProblem extends Error {
  override readonly name = 'StartProblem';
}

/** A resource is held by another process: one line on standard error, exit status 1. */
export class InUse extends Error {
  override readonly name = 'InUse';
}
