import {
  type IndexProgress,
  type IndexSummary,
  indexFacet,
  openEmbedder,
  STORE_SCHEMA,
} from '../content/index.js';
import type { Engine } from '../engine/index.js';
import type { Manifest } from '../manifest/index.js';
import type { ContentSettings } from './content.js';
import { StartProblem } from './settings.js';

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
  onProgress: (progress: IndexProgress) => void,
): Promise<readonly IndexSummary[]> {
  const unknown = names.find((n) => !manifest.facets.has(n));
  if (unknown !== undefined) {
    throw new StartProblem(
      `there is no facet \`${unknown}\`; the manifest declares ${[...manifest.facets.keys()].join(', ') || 'none'}`,
    );
  }
  const summaries: IndexSummary[] = [];
  for (const facet of manifest.facets.values()) {
    if (names.length > 0 && !names.includes(facet.name)) continue;
    const engine = engines.get(facet.connector);
    if (engine === undefined) throw new StartProblem(`connector \`${facet.connector}\` is not open`);
    const embedder = await openEmbedder(facet.embeddingModel, { endpoint: settings.embeddings });
    summaries.push(...(await indexFacet(engine.system, manifest, facet, { embedder }, onProgress)));
    await engine.system.grantRead(STORE_SCHEMA);
  }
  return summaries;
}

/** Rate and time left, as they stand behind a line of progress. */
export function paceText({ documentsPerSecond, secondsLeft }: IndexProgress): string {
  const left = secondsLeft === null ? '' : `, ${Math.ceil(secondsLeft)} s left`;
  return ` (${Math.round(documentsPerSecond)}/s${left})`;
}
