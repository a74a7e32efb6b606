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
  apply(): void;
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
    for (const step of steps) step.apply();
    const summaries = (member: 'now' | 'kept') => steps.flatMap((step) => step[member] ?? []);
    return Object.freeze({ now: summaries('now'), kept: summaries('kept') });
  };
}

/** A prepared change, which is applied by all processes of a server or by none. */
export interface PreparedChange {
  apply(): Promise<ReloadResult>;
  abandon(): Promise<void>;
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
export async function prepareReload(
  service: EventParts,
  parts: readonly ReloadPart[],
  withoutPolicy: (fault: PolicyFault) => PolicyState,
): Promise<PreparedChange> {
  const { log } = service;
  const record = (detail: object): Promise<void> => recordEvent(service, 'service.reload', detail);
  const recordRefusal = (reason: string): Promise<void> => {
    log.error('not reloaded: what was served before is still served', { why: reason });
    return record({ reloaded: false, why: reason });
  };
  let applyAll: () => ReloadResult;
  try {
    applyAll = await prepareAll(parts);
  } catch (error) {
    const errorName = error instanceof Error ? error.name : 'unknown';
    if (error instanceof PolicyFault)
      await record({ reloaded: false, why: errorName, policy: withoutPolicy(error) });
    else await recordRefusal(errorName);
    throw error;
  }
  return {
    apply: async () => {
      const result = applyAll();
      const { now, kept } = result;
      log.info('reloaded', { now, kept });
      if (kept.length > 0) log.warn('not all was reloaded', { kept });
      await record({ reloaded: true, now, kept });
      return result;
    },
    abandon: () => recordRefusal('another worker'),
  };
}
