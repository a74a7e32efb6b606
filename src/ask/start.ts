import type { AuditLog } from '../../audit/index.js';
import type { FollowedApprovals, RevocationCheck } from '../../policy/index.js';
import type { ServiceLog } from '../base/log.js';
import type { AnswerMemory } from '../engine/index.js';
import type { ServedModel } from '../model/served-model.js';
import { AnswerCache, type AnswerCacheBounds } from './data/answer-cache.js';
import type { AnswerParts, Caps } from './data/parts.js';
import { createPlanCache } from './data/plan-cache.js';
import { RunningQueries } from './data/running-queries.js';
import { PermittedSets, PermittedWords } from './data/runtime/permitted-counts.js';
import { maskKeys } from './data/runtime/slot-values.js';
import { type SubscriptionLimits, Subscriptions } from './data/subscription.js';
import { createParsing } from './parsing/index.js';
import { startMarks } from './parsing/marks.js';
import { createProbes, createRefusalThrottle, type Probes, type RefusalThrottle } from './request/probes.js';

export interface AskFoundation {
  readonly tenant: string;
  readonly audit: AuditLog;
  readonly log: ServiceLog;
  readonly revoked: RevocationCheck;
  readonly approvals: FollowedApprovals;
  readonly memory: AnswerMemory;
  /** The secret from which the keys of `hash` masks and of subscriptions are derived. */
  readonly maskSecret: Uint8Array;
  /** The directory of marks for long texts being compiled. */
  readonly marksDir: string;
  follow(follower: (model: ServedModel) => void): void;
}

export interface AskSettings {
  readonly caps: Caps;
  readonly resultCache: AnswerCacheBounds;
  readonly planCacheBytes: number;
  readonly exactUpTo: number;
  readonly probeWindowMs: number;
  readonly subscriptions: SubscriptionLimits;
}

type AskPartName =
  | 'answers'
  | 'caps'
  | 'marks'
  | 'maskKeys'
  | 'parsing'
  | 'permitted'
  | 'plans'
  | 'runningQueries'
  | 'words';

/** Query services, except engines, content and authentication. */
export interface AskServices extends Pick<AnswerParts, AskPartName> {
  readonly subscriptions: Subscriptions;
  readonly refusals: RefusalThrottle;
  readonly probes: Probes;
}

/** Starts caches, parser threads, and counters of refused calls. */
export async function startAsk(
  { tenant, audit, log, revoked, approvals, memory, maskSecret, marksDir, follow }: AskFoundation,
  { caps, resultCache, planCacheBytes, exactUpTo, probeWindowMs: windowMs, subscriptions }: AskSettings,
): Promise<{ readonly services: AskServices; close(): Promise<void> }> {
  const marks = await startMarks(marksDir, tenant, audit, log);
  const parsing = createParsing({ log });
  const answers = new AnswerCache(resultCache, memory);
  const runningQueries = new RunningQueries(revoked, approvals);
  const refusals = createRefusalThrottle({ tenant, audit, log });
  const probes = createProbes({ tenant, audit, log, windowMs });
  follow((model) => {
    runningQueries.onModelChange(model);
    // The keys of cached answers contain the versions, so clearing only frees memory.
    answers.clear();
  });
  const services = {
    marks,
    parsing,
    answers,
    runningQueries,
    refusals,
    probes,
    caps,
    maskKeys: maskKeys(maskSecret, tenant),
    plans: createPlanCache(planCacheBytes),
    subscriptions: new Subscriptions(subscriptions, maskSecret, tenant),
    permitted: new PermittedSets(exactUpTo),
    words: new PermittedWords(),
  };
  const close = async (): Promise<void> => {
    refusals.settle();
    probes.settle();
    await parsing.close();
  };
  return { services, close };
}
