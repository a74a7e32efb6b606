/** Facts about a thrown value, which need not be an Error. */

/** The code of the system's or a library's error, such as `ENOENT`; null for anything without one. */
export function codeOf(thrown: unknown): string | null {
  return thrown instanceof Error && 'code' in thrown ? String(thrown.code) : null;
}

export function messageOf(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** For the operator's log: with where it was thrown. */
export function stackOf(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown);
}
