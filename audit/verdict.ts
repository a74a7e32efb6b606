import type { AuditSync } from './checkpoint.js';

export type ProblemKind =
  | 'verifier_key' // missing or malformed
  | 'checkpoint' // missing, malformed, not signed by the key, or covering fewer records than an earlier one
  | 'segment_missing'
  | 'gap' // records before a segment are missing
  | 'header' // the segment does not follow the previous one
  | 'frame' // invalid framing before the end of the log
  | 'sequence' // a different record is at this position: removed, inserted or moved
  | 'chain' // wrong chain hash: the record was altered or added
  | 'record' // the chain hash is correct, but the record is not this writer's canonical JSON
  | 'root' // records differ from those a checkpoint covers: the chain was recomputed
  | 'cut'; // fewer records are present than a checkpoint covers

export interface AuditProblem {
  readonly kind: ProblemKind;
  /**
   * File name in the log's directory; `anchor` for a given anchor; empty if no segment was read; the place of the log for
   * a record that is in no segment.
   */
  readonly segment: string;
  /** Byte offset in that file. */
  readonly offset: number;
  readonly seq: number;
  readonly message: string;
}

/**
 * Integrity, completeness and anchoring are independent: a log can be intact but lack its end, or be complete although
 * its newest checkpoint is days old.
 */
export interface AuditVerdict {
  /** `damaged`: a problem other than missing records at the end (`cut`) was found. */
  readonly integrity: 'intact' | 'damaged';
  /** `incomplete`: records or segments are missing; `unknown`: verification stopped at another problem. */
  readonly completeness: 'complete' | 'incomplete' | 'unknown';
  /** Newest checkpoint and its age in ms; null if there is none. Later records could have been forged on the disk. */
  readonly anchor: {
    readonly size: number;
    readonly time: string | null;
    readonly ageMs: number | null;
  } | null;
  /** Number of retained records that are valid. */
  readonly records: number;
  /** Seq of the first retained record, and time of the retention note; null if nothing has been deleted. */
  readonly kept: { readonly from: number; readonly since: string | null } | null;
  /** Number of valid records that no checkpoint covers. */
  readonly unanchored: number;
  /** Ranges of records that no checkpoint covered when they were recovered, from `audit.recover` events. */
  readonly recovered: readonly Recovery[];
  /** Number of allowed decisions without an outcome: requests in progress, or cut off by a crash without a restart. */
  readonly openDecisions: number;
  /**
   * Number of bytes at the end that a power failure left incomplete. With `sync: 'disk'` they were never acknowledged;
   * with `kernel` they may include records acknowledged within the last 50 ms.
   */
  readonly tornBytes: number;
  /** Sync mode of the newest records, according to the newest checkpoint: acknowledged once synced, or once written. */
  readonly sync: AuditSync;
  readonly problem: AuditProblem | null;
}

/**
 * Records [from, to) that no checkpoint covered after an unclean stop or a disk failure, so anyone with access to the
 * disk could have removed or forged them. If `from` equals `to`, none are left, but some may have been removed.
 */
export interface Recovery {
  /** Epoch in which the recovery was recorded. */
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
