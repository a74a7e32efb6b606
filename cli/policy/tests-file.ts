import { EXIT, Failure } from '../exit.js';

/** Name of the file beside a policy that has its tests and claims. */
export const TESTS_FILE = 'policy.test.yaml';

/** Names of errors that a file of policy tests is to blame for. */
const FILE_FAULTS: ReadonlySet<string> = new Set(['UnclearTest', 'UnclearClaim', 'UnfitRows']);

/** Works with a file of policy tests. @throws Failure with the name of the file if it is to blame */
export async function withTestsFile<T>(file: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error) || !FILE_FAULTS.has(error.name)) throw error;
    const cause = error.cause instanceof Error ? `: ${error.cause.message}` : '';
    throw new Failure(EXIT.usage, `error: ${file}: ${error.message}${cause}`);
  }
}
