import { randomUUID } from 'node:crypto';
import { PolicyFault } from './model.js';
import type { PolicyState } from './policy-standing.js';
import { type Reloaded, type ReloadPart, reloadAll } from './reload.js';
import type { Service } from './service.js';

/** What became of the service itself, in the audit log. */
export async function recordEvent(
  { audit, tenant, model }: Service,
  action: string,
  detail: object,
): Promise<void> {
  const { manifest, snapshot } = model();
  await audit.append({
    kind: 'event',
    request_id: randomUUID(),
    tenant,
    surface: 'system',
    action,
    versions: { manifest: manifest.version, policy: snapshot?.version ?? null },
    detail: JSON.stringify(detail),
  });
}

/**
 * A reload, and a refused one, leave a line in the log and a record.
 *
 * @param withoutPolicy what follows of a policy that is missing or broken
 */
export async function recordedReload(
  service: Service,
  parts: readonly ReloadPart[],
  withoutPolicy: (fault: PolicyFault) => PolicyState,
): Promise<Reloaded> {
  const { log } = service;
  const record = (detail: object): Promise<void> => recordEvent(service, 'service.reload', detail);
  let reloaded: Reloaded;
  try {
    reloaded = await reloadAll(parts);
  } catch (error) {
    const why = error instanceof Error ? error.name : 'unknown';
    if (error instanceof PolicyFault) await record({ reloaded: false, why, policy: withoutPolicy(error) });
    else {
      log.error('not reloaded: what was served before is still served', { why });
      await record({ reloaded: false, why });
    }
    throw error;
  }
  const { now, kept } = reloaded;
  log.info('reloaded', { now, kept });
  if (kept.length > 0) log.warn('not all was reloaded', { kept });
  await record({ reloaded: true, now, kept });
  return reloaded;
}
