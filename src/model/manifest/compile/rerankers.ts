import type { ManifestDocument } from '../document.js';
import { frozenMap } from '../frozen-map.js';
import type { Reranker } from '../manifest.js';
import { membersOf } from './scope.js';

const MIB = 1_048_576;

/** The rerankers of a document, with what it leaves unsaid. */
export function rerankersOf({ rerankers }: ManifestDocument): ReadonlyMap<string, Reranker> {
  return frozenMap(
    membersOf(rerankers).map(([name, r]): [string, Reranker] => [
      name,
      Object.freeze({
        name,
        protocol: r.protocol,
        urlEnv: r.url_env,
        model: r.model,
        candidates: r.candidates ?? 50,
        timeoutMs: r.timeout_ms ?? 10_000,
        concurrency: r.concurrency ?? 4,
        cacheBytes: (r.cache_mib ?? 16) * MIB,
        perDay: r.passages_per_day ?? null,
      }),
    ]),
  );
}
