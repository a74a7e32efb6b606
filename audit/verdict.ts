export type ProblemKind =
  | 'verifier_key' // missing or malformed
  | 'checkpoint' // missing, malformed, not signed by the key, or shrinking
  | 'segment_missing'
  | 'gap' // records before a segment are gone
  | 'header' // a segment that does not follow the one before
  | 'frame' // framing broken before the end
  | 'sequence' // a different record is at this position: removed, inserted or moved
  | 'chain' // wrong chain hash: altered or added
  | 'record' // correct chain hash, but not canonical JSON of this writer
  | 'root' // records differ from those that a checkpoint signed: the chain was recomputed
  | 'cut'; // fewer records than a checkpoint covers

export interface AuditProblem {
  readonly kind: ProblemKind;
  /** File name in the log's directory. */
  readonly segment: string;
  /** Byte offset in that file. */
  readonly offset: number;
  readonly seq: number;
  readonly message: string;
}

/**
 * Integrity, completeness and anchoring are separate: a log can be intact but lack its end, or be complete but not
 * anchored for days.
 */
export interface AuditVerdict {
  /** `damaged`: stored records differ from those written. */
  readonly integrity: 'intact' | 'damaged';
  /** `incomplete`: records or segments are missing; `unknown`: damage hides it. */
  readonly completeness: 'complete' | 'incomplete' | 'unknown';
  /** Newest checkpoint, and its age in ms; later records could be forged by the owner of the disk. */
  readonly anchor: {
    readonly size: number;
    readonly time: string | null;
    readonly ageMs: number | null;
  } | null;
  /** Number of valid records. */
  readonly records: number;
  /** Seq of the first retained record, and time of the retention note; null if nothing was deleted. */
  readonly kept: { readonly from: number; readonly since: string | null } | null;
  /** Valid records that no checkpoint covers. */
  readonly unanchored: number;
  /** Records that no checkpoint covered when a start recovered them, as recorded in the log. */
  readonly recovered: readonly Recovery[];
  /** Allowed decisions without an outcome: requests in progress, or a crash without a restart. */
  readonly openDecisions: number;
  /** Bytes of an unfinished last write, which was never acknowledged. */
  readonly tornBytes: number;
  readonly problem: AuditProblem | null;
}

/**
 * After an unclean stop, the records [from, to) were covered by no checkpoint and could have been cut or forged by
 * anyone with access to the disk. If `from` equals `to`, there are none, but some may have been cut.
 */
export interface Recovery {
  /** Epoch that recorded them. */
  readonly epoch: number;
  readonly from: number;
  readonly to: number;
}

export class LogProblemError extends Error {
  readonly problem: AuditProblem;

  constructor(kind: ProblemKind, segment: string, offset: number, seq: number, message: string) {
    super(message);
    this.problem = { kind, segment, offset, seq, message };
  }
}

export function reportProblem(
  kind: ProblemKind,
  segment: string,
  offset: number,
  seq: number,
  message: string,
): never {
  throw new LogProblemError(kind, segment, offset, seq, message);
}
