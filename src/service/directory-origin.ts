import { readFileSync, statSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditLog } from '../../audit/index.js';
import { removeWhole, writeWhole } from '../base/files.js';
import { isObject } from '../base/is-object.js';
import type { ServiceLog } from '../base/log.js';

const ORIGIN_FILE = 'place.json';

/** Location of a data directory when a server last started in it. */
interface DirectoryOrigin {
  readonly path: string;
  readonly inode: string;
  /** Creation time in ms since the epoch; 0 if the file system does not record it. */
  readonly born: number;
  /** The tenant; null if an older version wrote the file. */
  readonly tenant: string | null;
}

/**
 * Detects a copied data directory, and logs and records it: a copy has the original's keys, so tokens are valid for
 * both, and its audit log continues the original's under the same writer.
 */
export async function reportCopy(
  dataDir: string,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
): Promise<void> {
  const current = createOrigin(dataDir, await realpath(dataDir), tenant);
  const previous = readOrigin(dataDir);
  if (previous !== null && isCopy(previous, current)) {
    log.warn('this data directory is a copy: it has the keys and the audit log of the original', {
      original: previous.path,
      dataDir,
    });
    await recordStart(audit, tenant, 'service.copied', { from: previous.path, to: current.path });
  }
  if (previous === null || JSON.stringify(previous) !== JSON.stringify(current))
    await writeWhole(join(dataDir, ORIGIN_FILE), Buffer.from(`${JSON.stringify(current)}\n`));
}

/** Writes the origin of a new directory that will be renamed to `path`. */
export async function writeOrigin(dataDir: string, path: string, tenant: string | null): Promise<void> {
  await writeWhole(
    join(dataDir, ORIGIN_FILE),
    Buffer.from(`${JSON.stringify(createOrigin(dataDir, path, tenant))}\n`),
  );
}

/** Returns the tenant of a data directory; null before the first start, or if an older version wrote the file. */
export function recordedTenant(dataDir: string): string | null {
  return readOrigin(dataDir)?.tenant ?? null;
}

/** True if the directory is a copy; a moved or remounted one keeps its inode or its creation time. */
function isCopy(previous: DirectoryOrigin, current: DirectoryOrigin): boolean {
  return previous.inode !== current.inode && (previous.born !== current.born || current.born === 0);
}

function createOrigin(dataDir: string, path: string, tenant: string | null): DirectoryOrigin {
  const { ino, birthtimeMs } = statSync(dataDir, { bigint: true });
  return { path, inode: String(ino), born: Number(birthtimeMs), tenant };
}

function readOrigin(dataDir: string): DirectoryOrigin | null {
  try {
    const value: Partial<Record<keyof DirectoryOrigin, unknown>> = JSON.parse(
      readFileSync(join(dataDir, ORIGIN_FILE), 'utf8'),
    );
    const { path, inode, born, tenant } = value;
    const isValid = typeof path === 'string' && typeof inode === 'string' && typeof born === 'number';
    return isValid ? { path, inode, born, tenant: typeof tenant === 'string' ? tenant : null } : null;
  } catch {
    return null; // first start, or an invalid file, which is replaced
  }
}

const RESTORE_FILE = 'restored.json';

/** A restored chain, which is never continued. */
export interface RestoredChain {
  /** The directory of the chain, relative to the directory of the audit log. */
  readonly dir: string;
  /** The name of the log: `osl-audit/<writer>`. */
  readonly name: string;
  readonly records: number;
  /** Number of records covered by its newest checkpoint; null if the chain has no checkpoint. */
  readonly signed: number | null;
}

/** A note that a restore leaves in the data directory; it is recorded in the audit log at the first start. */
interface RestoreNote {
  /** The times of the backup and the restore, in RFC 3339. */
  readonly made: string;
  readonly at: string;
  /** True if the backup contained the keys. */
  readonly keys: boolean;
  readonly chains: readonly RestoredChain[];
}

export function writeRestoreNote(dataDir: string, restored: RestoreNote): Promise<void> {
  return writeWhole(join(dataDir, RESTORE_FILE), Buffer.from(`${JSON.stringify(restored, null, 2)}\n`));
}

/**
 * Logs and records a restore that is described by a note in the data directory. The note is removed last, so that the
 * report is repeated if the process is killed during the start. The audit log begins a new chain: records written after
 * the backup exist at most in the original directory.
 */
export async function reportRestore(
  dataDir: string,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
): Promise<void> {
  const restored = readRestoreNote(dataDir);
  if (restored === null) return;
  log.warn('this data directory was restored from a backup: its audit log begins a new chain', {
    ...restored,
  });
  await recordStart(audit, tenant, 'service.restored', restored);
  await removeWhole(join(dataDir, RESTORE_FILE));
}

function readRestoreNote(dataDir: string): Readonly<Record<string, unknown>> | null {
  let text: string;
  try {
    text = readFileSync(join(dataDir, RESTORE_FILE), 'utf8');
  } catch {
    return null; // no such file
  }
  const value: unknown = JSON.parse(text);
  return isObject(value) ? value : null;
}

/** Records an event during startup; `request_id` identifies the startup itself. */
async function recordStart(audit: AuditLog, tenant: string, action: string, detail: object): Promise<void> {
  const { writer, epoch } = audit.stats();
  const request_id = `${writer}.${epoch}`;
  await audit.append({
    kind: 'event',
    request_id,
    tenant,
    surface: 'system',
    action,
    detail: JSON.stringify(detail),
  });
}
