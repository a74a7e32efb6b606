import { readFileSync } from 'node:fs';
import type { AuditFilter, AuditReadEvent, AuditRecord, LogSource } from '../../audit/index.js';

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
  note(reading: AuditReadEvent): Promise<void>;
}

/** Verifier keys of a file, one a line. */
export function keysIn(file: string): readonly string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
}

export function nameOfKey(key: string): string {
  return key.slice(0, key.indexOf('+'));
}

/** The name of a chain, with which its key and its checkpoints begin; null where it has lost its key. */
export async function chainName(chain: LogSource): Promise<string | null> {
  const key = await chain.verifierKey();
  return key === null ? null : nameOfKey(key);
}
