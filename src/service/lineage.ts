import { existsSync } from 'node:fs';
import type { AuditLog } from '../../policy/audit/index.js';
import type { ServiceLog } from '../base/log.js';
import { version } from '../base/package-root.js';
import type { Model } from '../model/model.js';
import { CommandFailed, connectorUrl } from './connector-url.js';
import type { Lineage, LineageOptions } from './lineage/index.js';
import { endOf, journalIn } from './lineage/outbox/state.js';
import type { Seat } from './seat.js';
import type { Settings } from './settings.js';
import type { EndedChain } from './take-over.js';

type Tenanted = Model & { readonly tenant: string };

/**
 * Lineage as the settings have it; null where they name no receiver.
 *
 * @throws ManifestProblems, StartProblem
 */
export async function lineageOf(
  settings: Settings,
  model: Tenanted,
  { auditDir, lineageDir, announces }: Seat,
  audit: AuditLog,
  log: ServiceLog,
): Promise<Lineage | null> {
  const chain = { auditDir, dir: lineageDir, end: endOf(audit), audit, announces };
  return opened(settings, model, chain, log);
}

/**
 * What of `chains` is not told yet is told beside: they are those of workers that there are no more, or of one process
 * before there were several. Empty where the settings name no receiver.
 *
 * @throws ManifestProblems, StartProblem
 */
export async function leftLineage(
  settings: Settings,
  model: Tenanted,
  chains: readonly EndedChain[],
  log: ServiceLog,
): Promise<readonly Lineage[]> {
  const left: Lineage[] = [];
  for (const { auditDir, lineageDir, end } of chains) {
    if (!existsSync(journalIn(lineageDir))) continue;
    const chain = { auditDir, dir: lineageDir, end, audit: null, announces: false };
    const lineage = await opened(settings, model, chain, log);
    if (lineage !== null) left.push(lineage);
  }
  return left;
}

async function opened(
  { lineageFile }: Settings,
  { manifest, tenant }: Tenanted,
  chain: Pick<LineageOptions, 'auditDir' | 'dir' | 'end' | 'audit' | 'announces'>,
  log: ServiceLog,
): Promise<Lineage | null> {
  if (lineageFile === null) return null;
  const [{ loadLineageConfig }, { openLineage }] = await Promise.all([
    import('./lineage/config/load.js'),
    import('./lineage/index.js'),
  ]);
  const config = await loadLineageConfig(lineageFile);
  const urls = new Map<string, string | null>();
  for (const { name, kind, urlEnv } of manifest.connectors.values())
    if (kind === 'postgres') urls.set(name, await urlNow(urlEnv ?? 'OSL_POSTGRES_URL'));
  const urlOf = (name: string): string | null => urls.get(name) ?? null;
  return openLineage({ ...chain, config, tenant, version: version(), log, urlOf });
}

/** Null where a command fails for now: then the connector's own name stands for its database. */
function urlNow(name: string): Promise<string | null> {
  return connectorUrl(process.env, name).catch((error: unknown) => {
    if (error instanceof CommandFailed) return null;
    throw error;
  });
}
