import { ready } from 'osl-compiler';
import type { AuditLog } from '../../audit/index.js';
import type { ServiceLog } from '../base/log.js';
import { VersionStore } from '../model/versions/index.js';
import { openAudit } from './audit.js';
import { Control } from './control.js';
import { joined } from './follow-control.js';
import { tenantKeys } from './keys.js';
import type { Lineage } from './lineage/index.js';
import { endOf } from './lineage/outbox/state.js';
import { LINEAGE_CLOSE_MS, leftLineage } from './lineage.js';
import { type First, loadFirst, publishedDir } from './model.js';
import { aloneIn } from './seat.js';
import type { Settings } from './settings.js';
import { takeOver } from './take-over.js';

/** A data directory opened by the supervisor of several workers, which serves no requests itself. */
export interface DirectoryKeeper {
  /** Model found at start. */
  readonly first: First;
  /** The supervisor's own chain. */
  readonly audit: AuditLog;
  /** Resolves with the reason when that chain can take no more records; else never. */
  readonly over: Promise<string>;
  close(): Promise<void>;
}

/**
 * Locks the data directory, creates missing keys, and does what only one process may, before the first worker starts.
 * Throws as `openService`.
 */
export async function openKeeper(
  settings: Settings,
  first: First,
  workers: number,
  log: ServiceLog,
  control: Control | null = null,
): Promise<DirectoryKeeper> {
  const keys = tenantKeys(settings.dataDir, settings.keysDir);
  const { auditDir, lineageDir } = aloneIn(settings.dataDir);
  const { audit, over } = await openAudit(settings, auditDir, first.model.tenant, log);
  const left: Lineage[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(left.map((lineage) => lineage.close(LINEAGE_CLOSE_MS)));
    await audit.close();
  };
  try {
    const ended = await takeOver(settings, first.model.tenant, audit, log, workers);
    // The supervisor's chain may have been that of a single-process server.
    const own = { auditDir, lineageDir, end: endOf(audit) };
    left.push(...(await leftLineage(settings, first.model, [own, ...ended], log)));
    await joined(control, keys, log);
    await (await VersionStore.open(publishedDir(settings))).sweep();
  } catch (error) {
    await close();
    throw error;
  }
  return Object.freeze({ first, audit, over, close });
}

/** Loads the model without opening a service. Throws as `openService`. */
export async function lookFirst(settings: Settings, log: ServiceLog): Promise<First> {
  await ready();
  const control = await Control.open(settings, log);
  try {
    return await loadFirst(settings, null, control?.read);
  } finally {
    await control?.close();
  }
}
