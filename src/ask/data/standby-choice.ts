import type { GovernedPlan } from 'osl-compiler';
import type { Caller } from '../request/caller.js';
import { cacheRulesOf } from './answer-cache.js';
import type { AnswerParts } from './parts.js';
import { StandbyUse } from './query-answer.js';
import type { ResultDelivery } from './question.js';
import { engineOf } from './runtime/step.js';

/** True if the answer may be kept, if the rules of its entities allow it. */
export function mayKeep(
  { answers }: AnswerParts,
  { again, maxRows, snapshots }: Omit<ResultDelivery, 'sink'>,
): boolean {
  return answers.isOn && again !== undefined && maxRows === 0 && snapshots === undefined;
}

/**
 * Only the primary may answer a query of a rollup, whose age is known, or one whose answer may be kept: what is kept for
 * an epoch must contain everything of that epoch. Rows must not be older than rights that were read from entities: who
 * is new in a team must not see what left it before.
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
  const isKept = mayKeep(parts, delivery) && cacheRulesOf(manifest, plan) !== null;
  const use = new StandbyUse(isKept ? null : standby, hasSteps || rightsAsOf !== undefined);
  if (rightsAsOf !== undefined) use.requireCommitted(rightsAsOf);
  return use;
}
