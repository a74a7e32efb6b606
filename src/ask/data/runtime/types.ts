import type { ErrorParameters } from 'osl-compiler';

/** A cap that was hit, with advice for the client. */
export type Clip = ErrorParameters<'stepCap'>;

/** Rows of a runtime relation, with notes for their reader. */
export interface RuntimeRows {
  /** A JSON array of objects. */
  readonly json: string;
  /** Values of a column that the statement joins on, in text format. */
  readonly keys: (column: string) => readonly (string | null)[];
  /** Cap that cut the rows; null if they are complete. */
  readonly clip: Clip | null;
  /** Columns with redacted values. */
  readonly redacted: ReadonlySet<string>;
  /** Rows for which a decoder operator failed. */
  readonly errors: readonly { readonly chunkId: string; readonly reason: string }[];
}

export const NOTHING: RuntimeRows = Object.freeze({
  json: '[]',
  keys: () => [],
  clip: null,
  redacted: new Set<string>(),
  errors: [],
});
