import { StartProblem } from '../../base/start-problem.js';
import {
  type IndexProgress,
  type IndexStanding,
  type IndexSummary,
  indexFacet,
  indexStanding,
  type OnIndexProgress,
  openEmbedder,
} from '../../content/index.js';
import { NoSystemCredentials, type OpenedEngine, type SystemEngine } from '../../engine/index.js';
import { STORE_SCHEMA } from '../../model/facets/store-names.js';
import {
  type Connector,
  type Facet,
  indexedFacets,
  type Manifest,
  systemUrlVariable,
} from '../../model/manifest/index.js';
import type { ContentSettings } from './content.js';

/** Options of an indexing run. */
export interface IndexRound {
  readonly signal?: AbortSignal;
  /** As `IndexOptions.readAt`; default: the start of the run. */
  readonly readAt?: Date | null;
}

/**
 * Indexes all versions of all or the named facets, incrementally.
 *
 * @throws StartProblem for an unknown facet; ContentError, UpstreamFailure
 */
export async function indexContent(
  manifest: Manifest,
  engines: ReadonlyMap<string, OpenedEngine>,
  settings: ContentSettings,
  names: readonly string[],
  onProgress: OnIndexProgress,
  { signal, readAt = new Date() }: IndexRound = {},
): Promise<readonly IndexSummary[]> {
  const summaries: IndexSummary[] = [];
  for (const facet of facetsNamed(manifest, names)) {
    const system = systemOf(engines, facet);
    const embedder = await openEmbedder(
      facet.embeddingModel,
      { endpoint: settings.embeddings },
      facet.embedding,
    );
    try {
      summaries.push(
        ...(await indexFacet(
          system,
          manifest,
          facet,
          { embedder, readAt, ...(signal && { signal }) },
          onProgress,
        )),
      );
      await system.grantRead(STORE_SCHEMA);
    } catch (error) {
      throw faultOf(error, manifest, facet);
    }
  }
  return summaries;
}

/**
 * Index status of all versions of all or the named facets.
 *
 * @throws StartProblem for an unknown facet; as `indexStanding`
 */
export async function contentStanding(
  manifest: Manifest,
  engines: ReadonlyMap<string, OpenedEngine>,
  names: readonly string[],
): Promise<readonly IndexStanding[]> {
  const standings: IndexStanding[] = [];
  for (const facet of facetsNamed(manifest, names)) {
    const system = systemOf(engines, facet);
    for (const version of facet.versions.values()) {
      const standing = indexStanding(system, manifest, facet, version);
      standings.push(
        await standing.catch((error: unknown) => {
          throw faultOf(error, manifest, facet);
        }),
      );
    }
  }
  return standings;
}

/** Includes legs. @throws StartProblem */
function facetsNamed(manifest: Manifest, names: readonly string[]): readonly Facet[] {
  const unknown = names.find((n) => !manifest.facets.has(n));
  if (unknown !== undefined) {
    throw new StartProblem(
      `there is no facet \`${unknown}\`; the manifest declares ${[...manifest.facets.keys()].join(', ') || 'none'}`,
    );
  }
  return indexedFacets(manifest).filter((f) => names.length === 0 || names.includes(f.legOf ?? f.name));
}

/** @throws StartProblem */
function systemOf(engines: ReadonlyMap<string, OpenedEngine>, { connector }: Facet): SystemEngine {
  const engine = engines.get(connector);
  if (engine === undefined) throw new StartProblem(`connector \`${connector}\` is not open`);
  return engine.system;
}

function faultOf(error: unknown, { connectors }: Manifest, { connector }: Facet): unknown {
  return error instanceof NoSystemCredentials ? closed(connectors.get(connector)) : error;
}

function closed(connector: Connector | undefined): Error {
  if (connector === undefined) return new NoSystemCredentials();
  return new StartProblem(
    `connector \`${connector.name}\` has no system credentials: set ${systemUrlVariable(connector)} to the URL of a role ` +
      `that owns the schema ${STORE_SCHEMA} and may read the facets' tables (docs/operations.md has its SQL)`,
  );
}

/** Rate and remaining time, for a progress line. */
export function paceText({ documentsPerSecond, secondsLeft }: IndexProgress): string {
  const left = secondsLeft === null ? '' : `, ${Math.ceil(secondsLeft)} s left`;
  return ` (${Math.round(documentsPerSecond)}/s${left})`;
}
