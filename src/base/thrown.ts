/** Helpers for thrown values, which need not be Errors. */

/** Code of a system or library error, such as `ENOENT`; null if it has none. */
export function codeOf(thrown: unknown): string | null {
  return thrown instanceof Error && 'code' in thrown ? String(thrown.code) : null;
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Message with stack, for the operator's log. */
export function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}
