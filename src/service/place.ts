import { readFileSync, statSync } from 'node:fs';
import { realpath } from 'node:fs/promises';
import { join } from 'node:path';
import type { AuditLog } from '../../audit/index.js';
import { writeWhole } from '../base/files.js';
import type { ServiceLog } from '../base/log.js';

const NAME = 'place.json';

/** Location of a data directory when a server last started in it. */
interface DirectoryOrigin {
  readonly path: string;
  readonly inode: string;
  /** Creation time, ms since the epoch; 0 if the file system has none. */
  readonly born: number;
  /** Null if an older version wrote it. */
  readonly tenant: string | null;
}

/**
 * Detects a copied data directory, and logs and records that: it has the original's keys, so tokens are valid at both,
 * and its audit log continues the original's under the same writer.
 */
export async function settle(
  dataDir: string,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
): Promise<void> {
  const here = await placeOf(dataDir, tenant);
  const before = readPlace(dataDir);
  if (before !== null && isCopy(before, here)) {
    log.warn('this data directory is a copy: it has the keys and the audit log of the original', {
      original: before.path,
      dataDir,
    });
    const { writer, epoch } = audit.stats();
    await audit.append({
      kind: 'event',
      request_id: `${writer}.${epoch}`,
      tenant,
      surface: 'system',
      action: 'service.copied',
      detail: JSON.stringify({ from: before.path, to: here.path }),
    });
  }
  if (before === null || JSON.stringify(before) !== JSON.stringify(here))
    await writeWhole(join(dataDir, NAME), Buffer.from(`${JSON.stringify(here)}\n`));
}

/** Writes the origin of a new directory that will be renamed to `path`. */
export async function placeAt(dataDir: string, path: string, tenant: string | null): Promise<void> {
  const { ino, birthtimeMs } = statSync(dataDir, { bigint: true });
  const here: DirectoryOrigin = { path, inode: String(ino), born: Number(birthtimeMs), tenant };
  await writeWhole(join(dataDir, NAME), Buffer.from(`${JSON.stringify(here)}\n`));
}

/** Tenant of a data directory; null before the first start. */
export function tenantIn(dataDir: string): string | null {
  return readPlace(dataDir)?.tenant ?? null;
}

/** A moved or remounted directory keeps its inode or its creation time. */
function isCopy(before: DirectoryOrigin, here: DirectoryOrigin): boolean {
  return before.inode !== here.inode && (before.born !== here.born || here.born === 0);
}

async function placeOf(dataDir: string, tenant: string): Promise<DirectoryOrigin> {
  const { ino, birthtimeMs } = statSync(dataDir, { bigint: true });
  return { path: await realpath(dataDir), inode: String(ino), born: Number(birthtimeMs), tenant };
}

function readPlace(dataDir: string): DirectoryOrigin | null {
  try {
    const value: Partial<Record<keyof DirectoryOrigin, unknown>> = JSON.parse(
      readFileSync(join(dataDir, NAME), 'utf8'),
    );
    const { path, inode, born, tenant } = value;
    const whole = typeof path === 'string' && typeof inode === 'string' && typeof born === 'number';
    return whole ? { path, inode, born, tenant: typeof tenant === 'string' ? tenant : null } : null;
  } catch {
    return null; // first start, or an invalid file, which is replaced
  }
}
