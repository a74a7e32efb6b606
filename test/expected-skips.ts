/** A test that does not run in CI, and why. Whatever else is skipped there fails it. */
interface ExpectedSkip {
  /** Below `test/`, without its ending. */
  readonly file: string;
  readonly name: string;
  readonly why: string;
}

export const EXPECTED_SKIPS: readonly ExpectedSkip[] = [];
