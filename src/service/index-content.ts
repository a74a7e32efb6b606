import { StartProblem } from '../base/start-problem.js';
import {
  type IndexProgress,
  type IndexSummary,
  indexFacet,
  type OnIndexProgress,
  openEmbedder,
} from '../content/index.js';
import { type Engine, NoSystemCredentials } from '../engine/index.js';
import { STORE_SCHEMA } from '../model/facets/store-names.js';
import { type Connector, indexedFacets, type Manifest, systemUrlVariable } from '../model/manifest/index.js';
import type { ContentSettings } from './content.js';

/** A round of indexing. */
export interface IndexRound {
  readonly signal?: AbortSignal;
  /** As `IndexOptions.readAt`; unless told, when it begins. */
  readonly readAt?: Date | null;
}

/**
 * Indexes facets, or brings their stores up to date: every version of every one, or of those that are named.
 *
 * @throws StartProblem for a name that is no facet; ContentError, UpstreamFailure
 */
export async function indexContent(
  manifest: Manifest,
  engines: ReadonlyMap<string, Engine>,
  settings: ContentSettings,
  names: readonly string[],
  onProgress: OnIndexProgress,
  { signal, readAt = new Date() }: IndexRound = {},
): Promise<readonly IndexSummary[]> {
  const unknown = names.find((n) => !manifest.facets.has(n));
  if (unknown !== undefined) {
    throw new StartProblem(
      `there is no facet \`${unknown}\`; the manifest declares ${[...manifest.facets.keys()].join(', ') || 'none'}`,
    );
  }
  const summaries: IndexSummary[] = [];
  for (const facet of indexedFacets(manifest)) {
    if (names.length > 0 && !names.includes(facet.legOf ?? facet.name)) continue;
    const engine = engines.get(facet.connector);
    if (engine === undefined) throw new StartProblem(`connector \`${facet.connector}\` is not open`);
    const embedder = await openEmbedder(
      facet.embeddingModel,
      { endpoint: settings.embeddings },
      facet.embedding,
    );
    try {
      summaries.push(
        ...(await indexFacet(
          engine.system,
          manifest,
          facet,
          { embedder, readAt, ...(signal && { signal }) },
          onProgress,
        )),
      );
      await engine.system.grantRead(STORE_SCHEMA);
    } catch (error) {
      throw error instanceof NoSystemCredentials ? closed(manifest.connectors.get(facet.connector)) : error;
    }
  }
  return summaries;
}

/** What to set. The SQL of the role is in `docs/operations.md`. */
function closed(connector: Connector | undefined): Error {
  if (connector === undefined) return new NoSystemCredentials();
  return new StartProblem(
    `connector \`${connector.name}\` has no system credentials: set ${systemUrlVariable(connector)} to the URL of a role ` +
      `that owns the schema ${STORE_SCHEMA} and may read the facets' tables (docs/operations.md has its SQL)`,
  );
}

/** Rate and time left, as they stand behind a line of progress. */
export function paceText({ documentsPerSecond, secondsLeft }: IndexProgress): string {
  const left = secondsLeft === null ? '' : `, ${Math.ceil(secondsLeft)} s left`;
  return ` (${Math.round(documentsPerSecond)}/s${left})`;
}
