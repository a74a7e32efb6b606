import type { AuditLog } from '../../audit/index.js';
import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import { openAudit } from './audit.js';
import { endOf, type LogPosition } from './lineage/outbox/state.js';
import { settle } from './place.js';
import { tellRestored } from './restored.js';
import { seatsIn, workerChain, workerLineage } from './seat.js';
import type { Settings } from './settings.js';

/** A chain that nobody writes any more; its lineage may not be told yet. */
export interface EndedChain {
  readonly auditDir: string;
  readonly lineageDir: string;
  readonly end: LogPosition;
}

/**
 * Looks after a data directory whose log is ours now: says where it is a copy, and ends the chains of workers that
 * nobody will serve on, so that what they left open has its outcome. A log that waits for its place has this done once it
 * takes records.
 *
 * @param workers how many of them are about to begin
 * @returns the chains that were ended
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
  return []; // only a log in tables waits, and lineage is told from files
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
