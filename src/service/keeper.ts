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

/** A data directory that a supervisor keeps for its workers. It answers nobody: that is for them. */
export interface DirectoryKeeper {
  /** What was found at the start. */
  readonly first: First;
  /** The supervisor's own chain, beside which those of the workers are. */
  readonly audit: AuditLog;
  /** Resolves, with why, when that chain can take nothing any more; else never. */
  readonly over: Promise<string>;
  close(): Promise<void>;
}

/**
 * Takes the data directory, makes its keys where there are none, and looks after what one process alone may: before the
 * first worker begins. Throws as `openService` does.
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
    // The supervisor's own chain was that of a server of one process, or will be.
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

/** What a server would serve, without opening anything. Throws as `openService` does. */
export async function lookFirst(settings: Settings, log: ServiceLog): Promise<First> {
  await ready();
  const control = await Control.open(settings, log);
  try {
    return await loadFirst(settings, null, control?.read);
  } finally {
    await control?.close();
  }
}
