/** Texts of the three editors, and the caller. */
export interface Playground {
  readonly question: string;
  readonly manifest: string;
  readonly policy: string;
  /** Delegation chain, root first; the last subject is the caller. */
  readonly chain: readonly string[];
  /** Roles that the token claims; null: all that the caller may have. */
  readonly roles: readonly string[] | null;
}

/** Maximum length of each text in UTF-16 code units; the gateway's own limits are far larger. */
export const MOST_CHARACTERS = 100_000;
