import { existsSync } from 'node:fs';
import type { AuditLog } from '../../audit/index.js';
import type { ServiceLog } from '../base/log.js';
import { version } from '../base/package-root.js';
import { messageOf } from '../base/thrown.js';
import type { ServedModel } from '../model/served-model.js';
import { CommandFailed, connectorUrl } from './connector-url.js';
import type { Lineage, LineageOptions } from './lineage/lineage.js';
import { type AuditLogPosition, endOf, journalIn } from './lineage/outbox/state.js';
import type { ProcessFiles } from './process-files.js';
import type { Settings } from './settings.js';

/** An audit chain that is no longer continued; part of its lineage may not have been delivered. */
export interface EndedChain {
  readonly auditDir: string;
  readonly lineageDir: string;
  readonly end: AuditLogPosition;
}

/** Lineage of a serving process; `lineage` is null if no receiver is configured. */
interface StartedLineage {
  readonly lineage: Lineage | null;
  /** Announces the served manifest. Never rejects; a failed announcement is repeated at the next start. */
  announce(): Promise<void>;
  close(): Promise<void>;
}

/** Starts lineage here, and completes that of audit logs that have ended. @throws ManifestProblems, StartProblem */
export async function startLineage(
  settings: Settings,
  model: () => ServedModel,
  { auditDir, lineageDir, announcesDatasets }: ProcessFiles,
  audit: AuditLog,
  ended: readonly EndedChain[],
  log: ServiceLog,
): Promise<StartedLineage> {
  const chain = { auditDir, dir: lineageDir, end: endOf(audit), audit, announcesDatasets };
  const lineage = await openChainLineage(settings, model(), chain, log);
  const remaining = await openRemainingLineage(settings, model(), ended, log);
  await lineage?.announce(model().manifest);
  lineage?.follow(() => model().manifest);
  return {
    lineage,
    announce: () =>
      announceManifest(lineage, model()).catch((error: unknown) =>
        log.error('lineage was not told what is published', { error: messageOf(error) }),
      ),
    close: async () => {
      await lineage?.close(LINEAGE_CLOSE_MS);
      for (const remainingLineage of remaining) await remainingLineage.close(LINEAGE_CLOSE_MS);
    },
  };
}

async function announceManifest(lineage: Lineage | null, { manifest }: ServedModel): Promise<void> {
  await lineage?.announce(manifest);
}

/** Time in ms that closing waits for deliveries in progress; the outbox keeps undelivered events. */
export const LINEAGE_CLOSE_MS = 3_000;

/**
 * Starts to deliver the remaining lineage of ended chains, which belonged to former workers or a former single process.
 * Returns an empty list if no receiver is configured.
 *
 * @throws ManifestProblems, StartProblem
 */
export async function openRemainingLineage(
  settings: Settings,
  model: ServedModel,
  chains: readonly EndedChain[],
  log: ServiceLog,
): Promise<readonly Lineage[]> {
  const remaining: Lineage[] = [];
  for (const { auditDir, lineageDir, end } of chains) {
    if (!existsSync(journalIn(lineageDir))) continue;
    const chain = { auditDir, dir: lineageDir, end, audit: null, announcesDatasets: false };
    const lineage = await openChainLineage(settings, model, chain, log);
    if (lineage !== null) remaining.push(lineage);
  }
  return remaining;
}

async function openChainLineage(
  { lineageFile }: Settings,
  { manifest, tenant }: ServedModel,
  chain: Pick<LineageOptions, 'auditDir' | 'dir' | 'end' | 'audit' | 'announcesDatasets'>,
  log: ServiceLog,
): Promise<Lineage | null> {
  if (lineageFile === null) return null;
  const [{ loadLineageConfig }, { openLineage }] = await Promise.all([
    import('./lineage/config/load.js'),
    import('./lineage/lineage.js'),
  ]);
  const config = await loadLineageConfig(lineageFile);
  const urls = new Map<string, string | null>();
  for (const { name, kind, urlEnv } of manifest.connectors.values())
    if (kind === 'postgres') urls.set(name, await readUrl(urlEnv ?? 'OSL_POSTGRES_URL'));
  const urlOf = (name: string): string | null => urls.get(name) ?? null;
  return openLineage({ ...chain, config, tenant, version: version(), log, urlOf });
}

/** Returns the URL of a database. If a command fails temporarily, returns null: the connector's name is then used. */
function readUrl(name: string): Promise<string | null> {
  return connectorUrl(process.env, name).catch((error: unknown) => {
    if (error instanceof CommandFailed) return null;
    throw error;
  });
}
