import type { GovernedPlan } from 'osl-compiler';
import type { StandbySource } from '../../engine/index.js';
import type { Manifest } from '../../model/manifest/index.js';
import type { Caller } from '../request/caller.js';

export interface AnswerFreshness {
  /** Source of the answer; `live` means it was read from the entities, at the primary if there are standbys. */
  readonly from: 'live' | 'standby' | 'cache' | 'rollup';
  /** The answer is at least as recent as this time, in ms since the epoch. */
  readonly asOf: number;
}

/** The age of an answer in whole seconds; 0 if it is live. */
export function ageOf({ from, asOf }: AnswerFreshness): number {
  return from === 'live' ? 0 : Math.max(0, Math.floor((Date.now() - asOf) / 1_000));
}

/** The time of an answer in ISO 8601, for REST and SHOW. */
export function asOfText({ asOf }: AnswerFreshness): string {
  return new Date(asOf).toISOString();
}

interface UsableRollups {
  /** The rollups of `manifest` that may be read; each was built at a time in ms since the epoch. */
  usable(manifest: Manifest): { readonly builtAt: ReadonlyMap<string, number> };
}

/** Null if the plan reads no rollup. */
export function rollupFreshness(
  rollups: UsableRollups,
  { manifest }: Caller,
  plan: GovernedPlan,
): AnswerFreshness | null {
  if (plan.rollup === null) return null;
  const known = rollups.usable(manifest).builtAt.get(plan.rollup);
  // If the rollup became too old after planning, report the maximum age.
  const oldest = Date.now() - (manifest.rollups.get(plan.rollup)?.maxAgeMs ?? 0);
  return { from: 'rollup', asOf: known ?? oldest };
}

/** Null if the primary answered. */
export function standbyFreshness(source: StandbySource | null): AnswerFreshness | null {
  return source === null ? null : { from: 'standby', asOf: source.asOf };
}
