import { readFileSync } from 'node:fs';
import type { AuditFilter, AuditReadEvent, AuditRecord, LogSource } from '../../audit/index.js';

export interface ReadLog {
  readonly place: string;
  readonly chains: readonly LogSource[];
  search(filter: AuditFilter, everything: boolean): AsyncGenerator<AuditRecord, void, void>;
  /**
   * Fingerprints of an undeclared name, as `objects` of records contain it, under the available keys. `missing`: chains
   * without any key.
   */
  fingerprints(
    name: string,
  ): Promise<{ readonly objects: readonly string[]; readonly missing: readonly string[] }>;
  newest(count: number): Promise<readonly AuditRecord[]>;
  /** The records after those, until the signal aborts. */
  follow(after: readonly AuditRecord[], signal: AbortSignal): AsyncIterable<AuditRecord>[];
  /** @throws if it cannot be noted */
  note(reading: AuditReadEvent): Promise<void>;
}

/** Verifier keys of a file, one per line. */
export function keysIn(file: string): readonly string[] {
  return readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '');
}

export function nameOfKey(key: string): string {
  return key.slice(0, key.indexOf('+'));
}

/** Name of a chain, which starts its key and its checkpoints; null if its key is missing. */
export async function chainName(chain: LogSource): Promise<string | null> {
  const key = await chain.verifierKey();
  return key === null ? null : nameOfKey(key);
}
