import { ready } from 'osl-compiler';
import type { AuditLog } from '../../audit/index.js';
import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import { VersionStore } from '../model/versions/versions.js';
import { openAudit } from './audit.js';
import { Control } from './control.js';
import { reportCopy, reportRestore } from './directory-origin.js';
import { joinGateways } from './follow-control.js';
import { tenantKeys } from './keys.js';
import type { Lineage } from './lineage/lineage.js';
import { endOf } from './lineage/outbox/state.js';
import { type EndedChain, LINEAGE_CLOSE_MS, openRemainingLineage } from './lineage.js';
import { loadStartupModel, publishedDir, type StartupModel } from './model.js';
import { singleProcessFiles, workerChain, workerLineage, workerNumbers } from './process-files.js';
import type { Settings } from './settings.js';

/**
 * Prepares a data directory once its log is locked: reports that the directory was copied or restored, and closes the
 * chains of former workers, so that open requests get an outcome. Deferred if the log is not open yet.
 *
 * @param workers number of workers about to start
 * @returns the closed chains; empty if deferred
 */
export async function takeOver(
  settings: Settings,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
  workers = 0,
): Promise<readonly EndedChain[]> {
  if (audit.stats().failure === null) return takeOverNow(settings, tenant, audit, log, workers);
  void audit.whenOpen
    .then(() => takeOverNow(settings, tenant, audit, log, workers))
    .catch((error: unknown) =>
      log.error('the data directory was not looked after', { cause: messageOf(error) }),
    );
  return []; // only a log in tables can be deferred, and lineage reads only logs in files
}

async function takeOverNow(
  settings: Settings,
  tenant: string,
  audit: AuditLog,
  log: ServiceLog,
  workers: number,
): Promise<readonly EndedChain[]> {
  await reportRestore(settings.dataDir, tenant, audit, log);
  await reportCopy(settings.dataDir, tenant, audit, log);
  const ended: EndedChain[] = [];
  for (const number of workerNumbers(settings.dataDir)) {
    if (number <= workers) continue;
    const chain = workerChain(settings.dataDir, number);
    const { audit: remaining } = await openAudit(settings, chain, tenant, log);
    await remaining.close();
    ended.push({
      auditDir: chain,
      lineageDir: workerLineage(settings.dataDir, number),
      end: endOf(remaining),
    });
  }
  return ended;
}

/** The data directory of several workers, opened by their supervisor, which serves no requests itself. */
export interface SupervisorDirectory {
  readonly first: StartupModel;
  readonly audit: AuditLog;
  /** Resolves, with the reason, only when the supervisor's audit chain cannot take any more records. */
  readonly fatalFailure: Promise<string>;
  close(): Promise<void>;
}

/**
 * Locks the data directory, creates the keys if there are none yet, and does any other work that only one process may
 * do, before the first worker starts. Throws the same errors as `openService`.
 */
export async function openSupervisorDirectory(
  settings: Settings,
  first: StartupModel,
  workers: number,
  log: ServiceLog,
  control: Control | null = null,
): Promise<SupervisorDirectory> {
  const keys = tenantKeys(settings.dataDir, settings.keysDir);
  const { auditDir, lineageDir } = singleProcessFiles(settings.dataDir);
  const { audit, fatalFailure } = await openAudit(settings, auditDir, first.model.tenant, log);
  const remaining: Lineage[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(remaining.map((lineage) => lineage.close(LINEAGE_CLOSE_MS)));
    await audit.close();
  };
  try {
    const ended = await takeOver(settings, first.model.tenant, audit, log, workers);
    // A single-process server may have used the supervisor's chain before, and may have left lineage to deliver.
    const supervisorChain = { auditDir, lineageDir, end: endOf(audit) };
    remaining.push(...(await openRemainingLineage(settings, first.model, [supervisorChain, ...ended], log)));
    await joinGateways(control, keys, log);
    await (await VersionStore.open(publishedDir(settings))).sweep();
  } catch (error) {
    await close();
    throw error;
  }
  return Object.freeze({ first, audit, fatalFailure, close });
}

/** Loads the model without opening a service. @throws the errors of `openService` */
export async function loadWithoutService(settings: Settings, log: ServiceLog): Promise<StartupModel> {
  await ready();
  const control = await Control.open(settings, log);
  try {
    return await loadStartupModel(settings, null, control?.read);
  } finally {
    await control?.close();
  }
}
