import type { AuditLog } from '../../audit/index.js';
import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import { openAudit } from './audit.js';
import { endOf, type LogPosition } from './lineage/outbox/state.js';
import { settle } from './place.js';
import { tellRestored } from './restored.js';
import { seatsIn, workerChain, workerLineage } from './seat.js';
import type { Settings } from './settings.js';

/** A chain that nobody continues; its lineage may be incomplete. */
export interface EndedChain {
  readonly auditDir: string;
  readonly lineageDir: string;
  readonly end: LogPosition;
}

/**
 * Prepares a data directory once its log is locked: reports copies and restores, and closes the chains of former
 * workers, so that open requests get an outcome. Deferred if the log is not open yet.
 *
 * @param workers number of workers about to start
 * @returns the closed chains
 */
export async function takeOver(
  settings: Settings,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
  workers = 0,
): Promise<readonly EndedChain[]> {
  if (audit.stats().failure === null) return takenOver(settings, tenant, audit, log, workers);
  void audit.whenOpen
    .then(() => takenOver(settings, tenant, audit, log, workers))
    .catch((error: unknown) =>
      log.error('the data directory was not looked after', { cause: messageOf(error) }),
    );
  return []; // only a log in tables is deferred, and lineage needs files
}

async function takenOver(
  settings: Settings,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
  workers: number,
): Promise<readonly EndedChain[]> {
  await tellRestored(settings.dataDir, tenant, audit, log);
  await settle(settings.dataDir, tenant, audit, log);
  const ended: EndedChain[] = [];
  for (const number of seatsIn(settings.dataDir)) {
    if (number <= workers) continue;
    const chain = workerChain(settings.dataDir, number);
    const { audit: left } = await openAudit(settings, chain, tenant, log);
    await left.close();
    ended.push({
      auditDir: chain,
      lineageDir: workerLineage(settings.dataDir, number),
      end: endOf(left),
    });
  }
  return ended;
}
