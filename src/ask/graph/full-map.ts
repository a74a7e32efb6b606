import { candidatesIn } from '../../model/discovery/index.js';
import { discoveredIn, domainMapOf, fullView } from '../../model/graph/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import { type Reading, reading } from './readings.js';
import { type UpstreamParts, upstreamsOf } from './upstream.js';

/** How long what the databases declare is believed: a map is drawn more often than tables are made. */
const TRUST_MS = 10_000;

interface Drawn {
  readonly until: number;
  readonly manifest: Manifest;
  readonly map: Promise<Reading>;
}

/** By the engines that a map was drawn of. */
const drawn = new WeakMap<UpstreamParts['engines'], Drawn>();

/** The whole domain map with what is not adopted yet; some seconds old where tables have just changed. */
export function fullMap(parts: UpstreamParts, manifest: Manifest, requestId: string): Promise<Reading> {
  const known = drawn.get(parts.engines);
  if (known !== undefined && known.manifest === manifest && known.until > Date.now()) return known.map;
  const map = draw(parts, manifest, requestId);
  drawn.set(parts.engines, { until: Date.now() + TRUST_MS, manifest, map });
  map.catch(() => drawn.delete(parts.engines));
  return map;
}

async function draw(parts: UpstreamParts, manifest: Manifest, requestId: string): Promise<Reading> {
  const { read, unread, truncated } = await upstreamsOf(parts, requestId);
  const discovered = [...read].map(([connector, schema]) =>
    discoveredIn(candidatesIn(schema, connector, manifest), manifest),
  );
  const { nodes, edges, bridges } = domainMapOf(fullView(manifest));
  const map = {
    nodes: [...nodes, ...discovered.flatMap((p) => p.nodes)],
    edges: [...edges, ...discovered.flatMap((p) => p.edges)],
    bridges: [...bridges, ...discovered.flatMap((p) => p.bridges)],
    // Said only where something is missing: the map is of all that could be read.
    ...(unread.length === 0 ? {} : { unread }),
    ...(truncated ? { truncated } : {}),
  };
  return reading(JSON.stringify(map));
}
