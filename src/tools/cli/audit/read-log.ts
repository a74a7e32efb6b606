import type { AuditFilter, AuditRecord, LogSource, Reading } from '../../../../policy/audit/index.js';

/** A log that is read: the segments of a directory, or a table. */
export interface ReadLog {
  readonly place: string;
  /** One for each writer. */
  readonly chains: readonly LogSource[];
  search(filter: AuditFilter, everything: boolean): AsyncGenerator<AuditRecord, void, void>;
  /**
   * A name that was declared nowhere as the objects of records that it may stand among, by the keys that are there.
   * `missing`: chains of which no key is.
   */
  fingerprints(
    name: string,
  ): Promise<{ readonly objects: readonly string[]; readonly missing: readonly string[] }>;
  /** The newest records, the earliest of them first. */
  newest(count: number): Promise<readonly AuditRecord[]>;
  /** What comes after those, until the signal. */
  follow(after: readonly AuditRecord[], signal: AbortSignal): AsyncIterable<AuditRecord>[];
  /** @throws where a reading cannot be noted */
  note(reading: Reading): Promise<void>;
}
