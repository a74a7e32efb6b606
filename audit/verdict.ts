/** Kinds of problems that the verifier reports. */

export type ProblemKind =
  | 'verifier_key' // missing or malformed
  | 'checkpoint' // missing, malformed, not signed by the key, or shrinking
  | 'segment_missing'
  | 'gap' // records before a segment are gone
  | 'header' // a segment that does not follow the one before
  | 'frame' // framing broken before the end
  | 'sequence' // another record stands where this one should: removed, inserted or moved
  | 'chain' // the hash does not follow: altered, or added without the chain
  | 'record' // well chained, but not canonical JSON of this writer
  | 'root' // records differ from those that a checkpoint signed: the chain was recomputed
  | 'cut'; // fewer records than a checkpoint covers

export interface AuditProblem {
  readonly kind: ProblemKind;
  /** Name of the file in the log's directory. */
  readonly segment: string;
  /** Byte offset in that file. */
  readonly offset: number;
  readonly seq: number;
  readonly message: string;
}

/** Separate verdicts: a log can be intact and still lack its end, or be whole and not anchored for days. */
export interface AuditVerdict {
  /** `damaged`: what is there is not what was written. */
  readonly integrity: 'intact' | 'damaged';
  /** `incomplete`: records or segments are missing; `unknown`: damage hides it. */
  readonly completeness: 'complete' | 'incomplete' | 'unknown';
  /** The newest checkpoint, and its age in ms; nothing later is proved against the owner of the disk. */
  readonly anchor: {
    readonly size: number;
    readonly time: string | null;
    readonly ageMs: number | null;
  } | null;
  /** Records read and found good. */
  readonly records: number;
  /** Seq of the first record that is kept, and when its predecessors' note was signed; null if all are kept. */
  readonly kept: { readonly from: number; readonly since: string | null } | null;
  /** Good records that no checkpoint covers. */
  readonly unanchored: number;
  /** Records that nothing vouched for when a start recovered them, as the log itself says for good. */
  readonly recovered: readonly Recovery[];
  /** Allowed decisions without an outcome: requests under way, or a crash not yet followed by a restart. */
  readonly openDecisions: number;
  /** Bytes of an unfinished last write; they were never acknowledged. */
  readonly tornBytes: number;
  readonly problem: AuditProblem | null;
}

/**
 * After a stop out of order: the records from `from` to before `to` were under no checkpoint, so they could have been
 * cut or made by whoever wrote to the disk in between. None where `to` is `from`; some may have been cut.
 */
export interface Recovery {
  /** The opening of the log that found them. */
  readonly epoch: number;
  readonly from: number;
  readonly to: number;
}

/** Ends the reading at the first problem. */
export class LogProblemError extends Error {
  readonly problem: AuditProblem;

  constructor(kind: ProblemKind, segment: string, offset: number, seq: number, message: string) {
    super(message);
    this.problem = { kind, segment, offset, seq, message };
  }
}

export function found(
  kind: ProblemKind,
  segment: string,
  offset: number,
  seq: number,
  message: string,
): never {
  throw new LogProblemError(kind, segment, offset, seq, message);
}
