import type { GovernedPlan } from 'osl-compiler';
import type { Caller } from '../request/caller.js';
import { cacheRulesOf } from './answer-cache.js';
import type { AnswerParts } from './parts.js';
import { StandbyUse } from './query-answer.js';
import type { ResultDelivery } from './question.js';
import { engineOf } from './runtime/step.js';

/** True if the request permits caching the answer; the cache rules of its entities must permit it too. */
export function mayCache(
  { answers }: AnswerParts,
  { caching, maxRows, snapshots }: Omit<ResultDelivery, 'sink'>,
): boolean {
  return answers.isOn && caching !== undefined && maxRows === 0 && snapshots === undefined;
}

/**
 * Decides whether a standby may answer. The primary answers from rollups, whose age is known, and provides all
 * answers that may be cached, since a cached answer must contain everything committed in its epoch. Rows must not be
 * older than rights read from entities: a new member of a team must not see rows that left the team before.
 */
export function standbyUseFor(
  parts: AnswerParts,
  { manifest, rightsAsOf }: Caller,
  plan: GovernedPlan,
  delivery: Omit<ResultDelivery, 'sink'>,
): StandbyUse {
  const { standby = null } = delivery;
  const hasSteps = plan.runtime.length > 0;
  if (standby === null || plan.rollup !== null || !engineOf(parts, plan).hasStandbys)
    return new StandbyUse(null, hasSteps);
  const isCacheable = mayCache(parts, delivery) && cacheRulesOf(manifest, plan) !== null;
  const use = new StandbyUse(isCacheable ? null : standby, hasSteps);
  if (rightsAsOf !== undefined) use.requireCommitted(rightsAsOf);
  return use;
}
