import { candidatesIn } from '../../model/discovery/index.js';
import { discoveredIn, domainMapOf, fullView } from '../../model/graph/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { Service } from '../../service/service.js';
import { type Reading, reading } from './readings.js';
import { upstreamsOf } from './upstream.js';

/** How long what the databases declare is believed: a map is drawn more often than tables are made. */
const TRUST_MS = 10_000;

interface Drawn {
  readonly until: number;
  readonly manifest: Manifest;
  readonly map: Promise<Reading>;
}

const drawn = new WeakMap<Service, Drawn>();

/** The whole domain map with what is not adopted yet; some seconds old where tables have just changed. */
export function fullMap(service: Service, manifest: Manifest, requestId: string): Promise<Reading> {
  const known = drawn.get(service);
  if (known !== undefined && known.manifest === manifest && known.until > Date.now()) return known.map;
  const map = draw(service, manifest, requestId);
  drawn.set(service, { until: Date.now() + TRUST_MS, manifest, map });
  map.catch(() => drawn.delete(service));
  return map;
}

async function draw(service: Service, manifest: Manifest, requestId: string): Promise<Reading> {
  const { read, unread, truncated } = await upstreamsOf(service, requestId);
  const parts = [...read].map(([connector, schema]) =>
    discoveredIn(candidatesIn(schema, connector, manifest), manifest),
  );
  const { nodes, edges, bridges } = domainMapOf(fullView(manifest));
  const map = {
    nodes: [...nodes, ...parts.flatMap((p) => p.nodes)],
    edges: [...edges, ...parts.flatMap((p) => p.edges)],
    bridges: [...bridges, ...parts.flatMap((p) => p.bridges)],
    // Said only where something is missing: the map is of all that could be read.
    ...(unread.length === 0 ? {} : { unread }),
    ...(truncated ? { truncated } : {}),
  };
  return reading(JSON.stringify(map));
}
