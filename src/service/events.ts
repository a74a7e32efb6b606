import { randomUUID } from 'node:crypto';
import type { AuditEntry, AuditLog } from '../../audit/index.js';
import type { ServiceLog } from '../base/log.js';
import { messageOf } from '../base/thrown.js';
import type { ServedModel } from '../model/served-model.js';
import { PolicyFault } from './model.js';
import { type PreparedChange, prepareAll, type ReloadPart, type ReloadResult } from './reload/reload.js';
import type { PolicyState } from './serving.js';

/** Dependencies of recording service events. */
export interface EventParts {
  readonly audit: Pick<AuditLog, 'append'>;
  readonly tenant: string;
  readonly log: ServiceLog;
  model(): ServedModel;
}

/**
 * Records an event of the service. Never rejects: a failed log reports itself, counts what it refused in `audit.gap`,
 * and all requests are refused meanwhile.
 */
export async function recordEvent(
  { audit, tenant, model, log }: EventParts,
  action: string,
  detail: object,
): Promise<void> {
  const { manifest, snapshot } = model();
  const entry: AuditEntry = {
    kind: 'event',
    request_id: randomUUID(),
    tenant,
    surface: 'system',
    action,
    versions: { manifest: manifest.version, policy: snapshot?.version ?? null },
    detail: JSON.stringify(detail),
  };
  try {
    await audit.append(entry);
  } catch (error) {
    log.warn('an event was not recorded', { action, cause: messageOf(error) });
  }
}

/**
 * Prepares a reload; logs and records it once applied or refused.
 *
 * @param withoutPolicy handles a missing or invalid policy
 */
export async function preparedReload(
  service: EventParts,
  parts: readonly ReloadPart[],
  withoutPolicy: (fault: PolicyFault) => PolicyState,
): Promise<PreparedChange> {
  const { log } = service;
  const record = (detail: object): Promise<void> => recordEvent(service, 'service.reload', detail);
  const refused = (why: string): Promise<void> => {
    log.error('not reloaded: what was served before is still served', { why });
    return record({ reloaded: false, why });
  };
  let takeAll: () => ReloadResult;
  try {
    takeAll = await prepareAll(parts);
  } catch (error) {
    const why = error instanceof Error ? error.name : 'unknown';
    if (error instanceof PolicyFault) await record({ reloaded: false, why, policy: withoutPolicy(error) });
    else await refused(why);
    throw error;
  }
  return {
    take: async () => {
      const reloaded = takeAll();
      const { now, kept } = reloaded;
      log.info('reloaded', { now, kept });
      if (kept.length > 0) log.warn('not all was reloaded', { kept });
      await record({ reloaded: true, now, kept });
      return reloaded;
    },
    drop: () => refused('another worker'),
  };
}
