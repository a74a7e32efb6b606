import type { AuditLog } from '../../policy/audit/index.js';
import type { ServiceLog } from '../base/log.js';
import { version } from '../base/package-root.js';
import type { Model } from '../model/model.js';
import { connectorUrl } from './connector-url.js';
import { loadLineageConfig } from './lineage/config/load.js';
import { type Lineage, openLineage } from './lineage/index.js';
import type { Settings } from './settings.js';

/**
 * Lineage as the settings have it; null where they name no receiver.
 *
 * @throws ManifestProblems, StartProblem
 */
export async function lineageOf(
  { lineageFile, dataDir }: Settings,
  { manifest, tenant }: Model & { readonly tenant: string },
  audit: AuditLog,
  log: ServiceLog,
): Promise<Lineage | null> {
  if (lineageFile === null) return null;
  const config = await loadLineageConfig(lineageFile);
  const urlOf = (name: string): string | null => {
    const connector = manifest.connectors.get(name);
    if (connector?.kind !== 'postgres') return null;
    return connectorUrl(process.env, connector.urlEnv ?? 'OSL_POSTGRES_URL');
  };
  return openLineage({ config, tenant, version: version(), dataDir, audit, log, urlOf });
}
