import type { ErrorParameters } from 'osl-compiler';

/** A cap, and how the client can avoid or raise it. */
export type Clip = ErrorParameters<'stepCap'>;

/** Rows of one runtime relation, and notes for their reader. */
export interface RuntimeRows {
  /** A JSON array of objects. */
  readonly json: string;
  /** The values of the columns that a statement may join on, each in text format. */
  readonly keys: (column: string) => readonly (string | null)[];
  /** Rows that a cap held back; null if these are all. */
  readonly clip: Clip | null;
  /** Names of its columns in which something is redacted in some row. */
  readonly redacted: ReadonlySet<string>;
  /** Rows of a decoder operator that failed. */
  readonly errors: readonly { readonly chunkId: string; readonly reason: string }[];
}

export const NOTHING: RuntimeRows = Object.freeze({
  json: '[]',
  keys: () => [],
  clip: null,
  redacted: new Set<string>(),
  errors: [],
});
