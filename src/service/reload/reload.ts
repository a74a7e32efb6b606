import { randomUUID } from 'node:crypto';
import type { AuditEntry, AuditLog } from '../../../audit/index.js';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';
import type { ServedModel } from '../../model/served-model.js';
import { PolicyFault } from '../model.js';
import type { PolicyState } from '../serving.js';

/** A part of a running server that can be reloaded. */
export interface ReloadPart {
  /** Reads and checks the part, without side effects. */
  prepare(): ReloadStep | Promise<ReloadStep>;
}

export interface ReloadStep {
  /** Summary of the new state, such as versions or accepted tokens; null if there is nothing to report. */
  readonly now: string | null;
  /** Changes that take effect only after a restart, with advice; null if there are none. */
  readonly kept: string | null;
  take(): void;
}

export interface ReloadResult {
  readonly now: readonly string[];
  readonly kept: readonly string[];
}

/** Prepares all parts before any of them is applied. Returns a function that applies all of them. */
async function prepareAll(parts: readonly ReloadPart[]): Promise<() => ReloadResult> {
  const steps: ReloadStep[] = [];
  for (const part of parts) steps.push(await part.prepare());
  return () => {
    for (const step of steps) step.take();
    const told = (of: 'now' | 'kept') => steps.flatMap((step) => step[of] ?? []);
    return Object.freeze({ now: told('now'), kept: told('kept') });
  };
}

/** A prepared change, which is applied by all processes of a server or by none. */
export interface PreparedChange {
  take(): Promise<ReloadResult>;
  drop(): Promise<void>;
}

/** Dependencies for recording service events. */
export interface EventParts {
  readonly audit: Pick<AuditLog, 'append'>;
  readonly tenant: string;
  readonly log: ServiceLog;
  model(): ServedModel;
}

/**
 * Records a service event. Never rejects: a failed log reports its failure, counts the refused records in `audit.gap`,
 * and causes all requests to be refused.
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
 * Prepares a reload, and logs and records it once it is applied or refused.
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
