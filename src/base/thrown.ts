/** Helpers for thrown values, which need not be Errors. */

/** Returns the code of a system or library error, such as `ENOENT`; null if it has none. */
export function codeOf(thrown: unknown): string | null {
  return thrown instanceof Error && 'code' in thrown ? String(thrown.code) : null;
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Returns the stack with the message, for the operator's log. */
export function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}

/**
 * Runs `work` and returns its result or throws its error. Also passes the result or error to `tell`, which must not
 * throw.
 */
export function tellOutcome<T>(work: () => T | Promise<T>, tell: (outcome: unknown) => void): T | Promise<T> {
  try {
    const result = work();
    if (result instanceof Promise) result.then(tell, tell);
    else tell(result);
    return result;
  } catch (error) {
    tell(error);
    throw error;
  }
}

/** Plain explanations of common connection failures, by system code or SQLSTATE. */
export const CONNECTION_FAULTS: readonly (readonly [code: string, words: string])[] = [
  ['ECONNREFUSED', 'nothing listens there'],
  ['ENOTFOUND', 'the host is not known'],
  ['EAI_AGAIN', 'the host is not known'],
  ['ETIMEDOUT', 'no answer in time'],
  ['ECONNRESET', 'the connection was cut'],
  ['28P01', 'the password is wrong, or the role does not exist'],
  ['3D000', 'there is no such database'],
];
