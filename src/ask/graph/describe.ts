import { queryError } from 'osl-compiler';
import { isEmpty } from '../../../policy/index.js';
import { inTurns } from '../../base/in-turns.js';
import { messageOf } from '../../base/thrown.js';
import { NoSystemCredentials, UpstreamFailure } from '../../engine/index.js';
import { candidatesInAll, type UpstreamSchema } from '../../model/discovery/index.js';
import {
  discoveredIn,
  domainMapSteps,
  fullViewSteps,
  objectsIn,
  type Resolution,
  resolveSteps,
  type SchemaChoice,
  type SchemaSelection,
} from '../../model/graph/index.js';
import { type Manifest, systemUrlVariable } from '../../model/manifest/index.js';
import type { ContentPlane } from '../data/content-plane.js';
import type { RunningParts } from '../data/parts.js';
import type { RequestCall } from '../request/call.js';
import type { Caller } from '../request/caller.js';
import type { DecidingParts, RecordingParts, RequestParts } from '../request/parts.js';
import { respond } from '../request/respond.js';
import {
  type GraphDocument,
  type GraphDocuments,
  graphDocumentsFor,
  serializeSteps,
} from './graph-documents.js';

/** Dependencies for reading the catalogs of the databases. */
export interface UpstreamParts
  extends Pick<RunningParts, 'engines'>,
    Pick<DecidingParts, 'model'>,
    Pick<RecordingParts, 'log'> {
  /** Returns the tables and columns of a database; null if the connector is not open. */
  readCatalog(connector: string): Promise<UpstreamSchema | null>;
}

/** Returns the catalog of a database, or the reason why it could not be read. Details go to the log. */
export async function upstreamOf(
  parts: UpstreamParts,
  requestId: string,
  connector: string,
): Promise<UpstreamSchema | string> {
  try {
    return (await parts.readCatalog(connector)) ?? 'it is not open';
  } catch (error) {
    parts.log.warn('catalog not read', {
      connector,
      request_id: requestId,
      error: messageOf(error),
    });
    const declared = parts.model().manifest.connectors.get(connector);
    // Callers are admins, so the error may name the variable.
    if (error instanceof NoSystemCredentials && declared !== undefined)
      return `it has no system credentials: ${systemUrlVariable(declared)} is not set`;
    return error instanceof UpstreamFailure
      ? `its database refused to be read (SQLSTATE ${error.sqlstate})`
      : 'its database cannot be reached with system credentials';
  }
}

/** A connector whose catalog could not be read. */
export interface Unread {
  readonly connector: string;
  readonly reason: string;
}

/** The catalogs of all databases that could be read, and the connectors of the others. */
interface Upstreams {
  readonly read: ReadonlyMap<string, UpstreamSchema>;
  readonly unread: readonly Unread[];
  /** True if a database has more relations than the limit for one read. */
  readonly truncated: boolean;
}

export async function upstreamsOf(parts: UpstreamParts, requestId: string): Promise<Upstreams> {
  const read = new Map<string, UpstreamSchema>();
  const unread: Unread[] = [];
  for (const connector of parts.engines.keys()) {
    const found = await upstreamOf(parts, requestId, connector);
    if (typeof found === 'string') unread.push({ connector, reason: found });
    else read.set(connector, found);
  }
  return { read, unread, truncated: [...read.values()].some((schema) => schema.truncated) };
}

/** A request for the schema or the domain map; `governed` restricts it to objects that the caller has grants on. */
export interface Description {
  readonly document: 'schema' | 'domain_map';
  readonly governed: boolean;
  /** The part of the schema to return; if absent or null, all of it. */
  readonly wish?: SchemaSelection | null;
}

/** Dependencies of metadata requests, in addition to `RequestParts`. */
export interface GraphParts extends RequestParts, UpstreamParts {
  readonly content: Pick<ContentPlane, 'hasDecoder' | 'indexedAt'>;
}

/**
 * Returns the schema or the domain map.
 *
 * @throws QueryError E2101 for a full description without an admin role, E0512 if none of the names is known, and the
 *   errors of `respond`
 */
export function describe(
  parts: GraphParts,
  call: RequestCall,
  { document, governed, wish = null }: Description,
): Promise<GraphDocument> {
  const extent = governed ? 'governed' : 'full';
  // The full map includes relations not adopted yet, so databases are queried once the decision is durable.
  const withCandidates = document === 'domain_map' && !governed;
  return respond<SchemaDecision, GraphDocument>(parts, call, {
    action: document,
    // The contract defines a separate rate limit for the schema.
    bucket: document === 'schema' ? 'schema' : 'query',
    requireAllowed: permittedTo(extent),
    decide: async (caller, record) => {
      const readings = await graphDocumentsFor(caller, extent, parts.content.hasDecoder);
      const chosen = wish?.kind === 'part' ? chosenIn(readings, wish) : null;
      record.setObjects({ form: null, objects: chosen === null ? readings.objects : objectsIn(chosen.view) });
      return { readings, chosen };
    },
    answer: ({ readings, chosen }, caller) => {
      if (withCandidates) return fullMap(parts, caller.manifest, call.requestId);
      if (document === 'domain_map') return readings.domainMap;
      if (wish?.kind === 'index') return readings.index(wish.from);
      return schemaNow(parts, readings, chosen);
    },
  });
}

interface SchemaDecision {
  readonly readings: GraphDocuments;
  /** The requested part of the schema; null for all of it. */
  readonly chosen: SchemaChoice | null;
}

/** @throws QueryError E0512 if none of the names is visible */
function chosenIn(readings: GraphDocuments, wish: Extract<SchemaSelection, { kind: 'part' }>): SchemaChoice {
  const chosen = readings.chosen(wish);
  const [lost] = chosen.notFound;
  if (lost !== undefined && chosen.notFound.length === wish.names?.length)
    throw queryError('unknownRelation', { relation: lost.name.slice(0, LONGEST_SHOWN), near: lost.near });
  return chosen;
}

const LONGEST_SHOWN = 64;

async function schemaNow(
  { content }: GraphParts,
  readings: GraphDocuments,
  chosen: SchemaChoice | null,
): Promise<GraphDocument> {
  const facets = (chosen ?? readings).view.facets.map((f) => f.name);
  const indexed = facets.length === 0 ? new Map<string, string>() : await content.indexedAt(facets);
  return chosen === null ? readings.schemaAt(indexed) : readings.partAt(chosen, indexed);
}

/** Resolves a business term among visible objects. @throws the errors of `describe` */
export function resolveTerm(parts: GraphParts, call: RequestCall, term: string): Promise<Resolution> {
  return respond<Resolution, Resolution>(parts, call, {
    action: 'resolve',
    target: { kind: 'term', text: term },
    bucket: 'query',
    requireAllowed: permittedTo('governed'),
    decide: async (caller, record) => {
      const { view } = await graphDocumentsFor(caller, 'governed', parts.content.hasDecoder);
      const resolution = await inTurns(resolveSteps(term, view));
      record.setObjects({ form: null, objects: resolution.matches.map((m) => m.fqn).sort() });
      return resolution;
    },
    answer: (resolution) => resolution,
  });
}

/** The full graph requires an admin role; the governed one requires any access at all. */
function permittedTo(extent: 'full' | 'governed'): (caller: Caller) => void {
  return ({ access }) => {
    if (extent === 'full' && access.adminRoles.size === 0) throw queryError('adminOnly', {});
    if (extent === 'governed' && isEmpty(access)) throw queryError('noAccess', {});
  };
}

/** Cache lifetime of a domain map, ms. */
const TRUST_MS = 10_000;

interface CachedDomainMap {
  readonly until: number;
  readonly manifest: Manifest;
  readonly map: Promise<GraphDocument>;
}

/** Cached domain maps, keyed by the engines whose catalogs they contain. */
const drawn = new WeakMap<UpstreamParts['engines'], CachedDomainMap>();

/** Returns the full domain map, including relations not adopted yet; cached for a few seconds. */
function fullMap(parts: UpstreamParts, manifest: Manifest, requestId: string): Promise<GraphDocument> {
  const known = drawn.get(parts.engines);
  if (known !== undefined && known.manifest === manifest && known.until > Date.now()) return known.map;
  const map = draw(parts, manifest, requestId);
  drawn.set(parts.engines, { until: Date.now() + TRUST_MS, manifest, map });
  map.catch(() => drawn.delete(parts.engines));
  return map;
}

async function draw(parts: UpstreamParts, manifest: Manifest, requestId: string): Promise<GraphDocument> {
  const { read, unread, truncated } = await upstreamsOf(parts, requestId);
  const discovered = discoveredIn(candidatesInAll(read, manifest), manifest);
  const view = await inTurns(fullViewSteps(manifest));
  const { nodes, edges, bridges } = await inTurns(domainMapSteps(view));
  const map = {
    nodes: [...nodes, ...discovered.nodes],
    edges: [...edges, ...discovered.edges],
    bridges: [...bridges, ...discovered.bridges],
    // Present only if the map is incomplete.
    ...(unread.length === 0 ? {} : { unread }),
    ...(truncated ? { truncated } : {}),
  };
  return inTurns(serializeSteps(map));
}
