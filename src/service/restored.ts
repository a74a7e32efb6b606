import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { AuditLog } from '../../audit/index.js';
import { removeWhole, writeWhole } from '../base/files.js';
import { isObject } from '../base/is-object.js';
import type { ServiceLog } from '../base/log.js';

const NAME = 'restored.json';

/** A chain as it was when the backup was made; nobody writes it any more. */
export interface RestoredChain {
  /** Below the audit log's directory. */
  readonly dir: string;
  /** Its name: `osl-audit/<writer>`. */
  readonly name: string;
  readonly records: number;
  /** Of its newest checkpoint: how many records it covers; null where there is none. */
  readonly signed: number | null;
}

/** What a restore left for the first start to record. */
export interface RestoreNote {
  /** When the backup was made, and when it was restored; RFC 3339. */
  readonly made: string;
  readonly at: string;
  /** Whether the keys were in it. */
  readonly keys: boolean;
  readonly chains: readonly RestoredChain[];
}

export function noteRestored(dataDir: string, restored: RestoreNote): Promise<void> {
  return writeWhole(join(dataDir, NAME), Buffer.from(`${JSON.stringify(restored, null, 2)}\n`));
}

/**
 * Says, in both logs, where a data directory came out of a backup: its audit log is a new chain, and what follows the
 * backup in the old ones was lost, or stands where the backup was made. A start that is killed meanwhile says it twice.
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
    return null; // there is none
  }
  const value: unknown = JSON.parse(text);
  return isObject(value) ? value : null;
}
