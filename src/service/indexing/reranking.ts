import { join } from 'node:path';
import { queryError } from 'osl-compiler';
import type { ContentPlane } from '../../ask/data/content-plane.js';
import type { ServiceLog } from '../../base/log.js';
import { messageOf } from '../../base/thrown.js';
import type { Reranker } from '../../content/rerank/reranker.js';
import { ContentError, serverNamed } from '../../content/serving.js';
import { stopError } from '../../engine/index.js';
import type { RerankerSettings as Declared, Manifest } from '../../model/manifest/index.js';
import { placesOf, type Share } from '../share.js';

/** Number of retries; small, because a client is waiting. */
const RETRIES = 2;

/** Provides the manifest's rerankers. Each is opened at its first use and opened again when its declaration changes. */
export function reranking(
  manifest: () => Manifest,
  share: Share,
  log: ServiceLog,
  dataDir: string,
): Pick<ContentPlane, 'rerank'> {
  const opened = new Map<string, { readonly as: string; readonly reranker: Promise<Reranker> }>();
  const named = (declared: Declared): Promise<Reranker> => {
    const as = JSON.stringify(declared);
    const known = opened.get(declared.name);
    if (known?.as === as) return known.reranker;
    const reranker = rerankerOf(declared, share, log, dataDir);
    opened.set(declared.name, { as, reranker });
    // If opening fails, the next query tries again.
    reranker.catch(() => opened.delete(declared.name));
    return reranker;
  };
  return {
    async rerank(name, query, texts, by) {
      const declared = manifest().rerankers.get(name);
      if (declared === undefined)
        throw queryError('rerankerUnavailable', { reranker: name, reason: 'it is not declared any more' });
      try {
        return await (await named(declared)).scores(query, texts, by);
      } catch (error) {
        if (by.signal?.aborted === true) throw stopError(by.signal);
        throw asQueryError(name, error);
      }
    },
  };
}

async function rerankerOf(
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
  const concurrency = placesOf(rest.concurrency, share);
  return new Reranker({ ...rest, ...serverNamed(urlEnv), concurrency, retries: RETRIES }, budget);
}

function asQueryError(reranker: string, error: unknown): unknown {
  if (!(error instanceof ContentError)) return error;
  return error.code === 'overBudget'
    ? queryError('rerankBudget', { reranker, retryAfterSeconds: secondsLeftToday() })
    : queryError('rerankerUnavailable', { reranker, reason: error.message });
}

function secondsLeftToday(now = new Date()): number {
  const midnight = Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1);
  return Math.ceil((midnight - now.getTime()) / 1_000);
}
