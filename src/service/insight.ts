import type { RequestMeans } from '../ask/request/parts.js';
import { messageOf } from '../base/thrown.js';
import { AuditReader } from './auditing/index.js';
import { rollupReports } from './rollups.js';
import type { Service } from './service.js';
import type { Settings } from './settings.js';

/** Log reader and freshness information of a service. */
export function insightOf(
  service: Service,
  { recording }: RequestMeans,
  settings: Pick<Settings, 'dataDir' | 'audit'>,
) {
  const reading = new AuditReader(settings, recording.audit, service.log);
  const freshness = async () => {
    const { manifest } = service.model();
    const facets = [...manifest.facets.values()].filter((f) => f.legOf === null).map((f) => f.name);
    const times = facets.length === 0 ? new Map<string, string>() : await service.content.indexedAt(facets);
    const { head } = service.publishing.versions;
    return {
      indexes: facets.map((facet) => ({ facet, indexed_at: times.get(facet) ?? null })),
      rollups: await rollupViews(service),
      published: head === null ? null : { number: head.number, id: head.id, at: head.at },
      activation: service.activation(),
    };
  };
  return Object.freeze({ reading, freshness, close: () => reading.close() });
}

async function rollupViews(service: Service) {
  const { manifest } = service.model();
  if (manifest.rollups.size === 0) return [];
  try {
    const reports = await rollupReports(manifest, service, []);
    return reports.map(({ builtAt, maxAgeSeconds, ...report }) => ({
      ...report,
      built_at: builtAt,
      max_age_seconds: maxAgeSeconds,
    }));
  } catch (error) {
    service.log.warn('rollups could not be looked at for who asked', { cause: messageOf(error) });
    return null;
  }
}
