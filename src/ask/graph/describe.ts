import { queryError } from 'osl-compiler';
import { isEmpty } from '../../../policy/index.js';
import { type Resolution, resolve } from '../../model/graph/index.js';
import type { ContentPlane } from '../data/content-plane.js';
import type { Call } from '../request/call.js';
import type { Caller } from '../request/caller.js';
import type { RequestParts } from '../request/parts.js';
import { respond } from '../request/respond.js';
import { fullMap } from './full-map.js';
import { type Reading, type Readings, readingsOf } from './readings.js';
import type { UpstreamParts } from './upstream.js';

/** What a caller wants to be told of the graph. `governed`: of what its grants show; otherwise of all. */
export interface Description {
  readonly document: 'schema' | 'domain_map';
  readonly governed: boolean;
}

/** What tells of the graph beside what every request needs. */
export interface GraphParts extends RequestParts, UpstreamParts {
  readonly content: Pick<ContentPlane, 'hasDecoder' | 'indexedAt'>;
}

/** Describes the graph. @throws QueryError E2101 where all is asked for without an admin role, and as `respond` */
export function describe(
  parts: GraphParts,
  call: Call,
  { document, governed }: Description,
): Promise<Reading> {
  const extent = governed ? 'governed' : 'full';
  // The map of all has what is not adopted yet: the decision is on disk before a database is asked.
  const withCandidates = document === 'domain_map' && !governed;
  return respond<Readings | null, Reading>(parts, call, {
    action: document,
    // The contract limits the schema on its own.
    bucket: document === 'schema' ? 'schema' : 'query',
    permits: permittedTo(extent),
    decide: (caller, record) => {
      const readings = readingsOf(caller, extent, parts.content.hasDecoder);
      record.touches({ form: null, objects: readings.objects });
      return withCandidates ? null : readings;
    },
    answer: (readings, caller) => {
      if (readings === null) return fullMap(parts, caller.manifest, call.requestId);
      return document === 'schema' ? schemaNow(parts, readings) : readings.domainMap;
    },
  });
}

async function schemaNow({ content }: GraphParts, readings: Readings): Promise<Reading> {
  const facets = readings.view.facets.map((f) => f.name);
  return readings.schemaAt(facets.length === 0 ? new Map() : await content.indexedAt(facets));
}

/** What a business word may mean, of what the caller's grants show. @throws QueryError as `describe` */
export function resolveTerm(parts: GraphParts, call: Call, term: string): Promise<Resolution> {
  return respond<Resolution, Resolution>(parts, call, {
    action: 'resolve',
    asked: { kind: 'term', text: term },
    bucket: 'query',
    permits: permittedTo('governed'),
    decide: (caller, record) => {
      const resolution = resolve(term, readingsOf(caller, 'governed', parts.content.hasDecoder).view);
      record.touches({ form: null, objects: resolution.matches.map((m) => m.fqn).sort() });
      return resolution;
    },
    answer: (resolution) => resolution,
  });
}

/** All of the graph is for admins; of the rest a caller sees something, or is told that it has no access. */
function permittedTo(extent: 'full' | 'governed'): (caller: Caller) => void {
  return ({ access }) => {
    if (extent === 'full' && access.adminRoles.size === 0) throw queryError('adminOnly', {});
    if (extent === 'governed' && isEmpty(access)) throw queryError('noAccess', {});
  };
}
