import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditLog } from '../../audit/index.js';
import { removeWhole, writeWhole } from '../base/files.js';
import { isObject } from '../base/is-object.js';
import type { ServiceLog } from '../base/log.js';

const NAME = 'restored.json';

/** A restored chain, which nobody continues. */
export interface RestoredChain {
  /** Relative to the audit log's directory. */
  readonly dir: string;
  /** `osl-audit/<writer>`. */
  readonly name: string;
  readonly records: number;
  /** Records covered by its newest checkpoint; null if there is none. */
  readonly signed: number | null;
}

/** Note of a restore, recorded at the first start. */
export interface RestoreNote {
  /** Times of backup and restore, RFC 3339. */
  readonly made: string;
  readonly at: string;
  /** True if the backup contained the keys. */
  readonly keys: boolean;
  readonly chains: readonly RestoredChain[];
}

export function noteRestored(dataDir: string, restored: RestoreNote): Promise<void> {
  return writeWhole(join(dataDir, NAME), Buffer.from(`${JSON.stringify(restored, null, 2)}\n`));
}

/**
 * Logs and records that a data directory was restored: its audit log is a new chain, and later records of the old ones
 * are lost or where the backup was made. Repeated if the start is killed meanwhile.
 */
export async function tellRestored(
  dataDir: string,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
): Promise<void> {
  const restored = restoredIn(dataDir);
  if (restored === null) return;
  log.warn('this data directory was restored from a backup: its audit log begins a new chain', {
    ...restored,
  });
  const { writer, epoch } = audit.stats();
  await audit.append({
    kind: 'event',
    request_id: `${writer}.${epoch}`,
    tenant,
    surface: 'system',
    action: 'service.restored',
    detail: JSON.stringify(restored),
  });
  await removeWhole(join(dataDir, NAME));
}

function restoredIn(dataDir: string): Readonly<Record<string, unknown>> | null {
  let text: string;
  try {
    text = readFileSync(join(dataDir, NAME), 'utf8');
  } catch {
    return null; // no such file
  }
  const value: unknown = JSON.parse(text);
  return isObject(value) ? value : null;
}
