import { join } from 'node:path';
import { queryError } from 'osl-compiler';
import type { ContentPlane } from '../../ask/data/content-plane.js';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';
import type { Reranker } from '../../content/rerank/reranker.js';
import { ContentError, serverNamed } from '../../content/serving.js';
import { stopError } from '../../engine/index.js';
import type { RerankerSettings as Declared, Manifest } from '../../model/manifest/index.js';
import { modelSlots, type Share } from '../share.js';

/** Number of retries; small, because a client is waiting. */
const RETRIES = 2;

/** Provides the manifest's rerankers. Each is opened at its first use and opened again when its declaration changes. */
export function createReranking(
  manifest: () => Manifest,
  share: Share,
  log: ServiceLog,
  dataDir: string,
): Pick<ContentPlane, 'rerank'> {
  const opened = new Map<string, { readonly declaration: string; readonly reranker: Promise<Reranker> }>();
  const openReranker = (declared: Declared): Promise<Reranker> => {
    const declaration = JSON.stringify(declared);
    const cached = opened.get(declared.name);
    if (cached?.declaration === declaration) return cached.reranker;
    const reranker = createReranker(declared, share, log, dataDir);
    opened.set(declared.name, { declaration, reranker });
    // If opening fails, the next query tries again.
    reranker.catch(() => opened.delete(declared.name));
    return reranker;
  };
  return {
    async rerank(name, query, texts, caller) {
      const declared = manifest().rerankers.get(name);
      if (declared === undefined)
        throw queryError('rerankerUnavailable', { reranker: name, reason: 'it is not declared any more' });
      try {
        return await (await openReranker(declared)).scores(query, texts, caller);
      } catch (error) {
        if (caller.signal?.aborted === true) throw stopError(caller.signal);
        throw toQueryError(name, error);
      }
    },
  };
}

async function createReranker(
  declared: Declared,
  share: Share,
  log: ServiceLog,
  dataDir: string,
): Promise<Reranker> {
  // Loaded only when a query uses a reranker.
  const [{ DailyBudget }, { Reranker }] = await Promise.all([
    import('../../content/decode/budget.js'),
    import('../../content/rerank/reranker.js'),
  ]);
  const { name, urlEnv, perDay, candidates: _, ...rest } = declared;
  const onFault = (cause: unknown): void =>
    log.error('passages cannot be counted, so none is sent to the reranker', {
      reranker: name,
      cause: messageOf(cause),
    });
  const budget = perDay === null ? null : new DailyBudget(join(dataDir, 'reranking', name), perDay, onFault);
  const concurrency = modelSlots(rest.concurrency, share);
  return new Reranker({ ...rest, ...serverNamed(urlEnv), concurrency, retries: RETRIES }, budget);
}

function toQueryError(reranker: string, error: unknown): unknown {
  if (!(error instanceof ContentError)) return error;
  return error.code === 'overBudget'
    ? queryError('rerankBudget', { reranker, retryAfterSeconds: secondsLeftToday() })
    : queryError('rerankerUnavailable', { reranker, reason: error.message });
}

function secondsLeftToday(now = new Date()): number {
  const midnight = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1);
  return Math.ceil((midnight - now.getTime()) / 1_000);
}
