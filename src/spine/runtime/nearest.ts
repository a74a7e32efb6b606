import type { GovernedPlan, GovernedStore } from 'osl-compiler';
import type { TextRow } from '../collect.js';
import { step } from './step.js';
import type { RuntimeInput } from './types.js';

/**
 * How many of the nearest by their signs are compared exactly: enough for a recall above .99 (`bench -- retrieve`),
 * few enough that comparing them costs less than finding them.
 */
const CANDIDATES = 1_000;
const CANDIDATES_OF_EACH = 40;

/** The same for an approximate index. If it finds fewer, its budget was spent on what may not be seen. */
const APPROXIMATE = 100;
const APPROXIMATE_OF_EACH = 4;

/**
 * The passages nearest to `vector`, best first: exactly min(k, permitted) of them, by the lane for so many permitted
 * passages. Which lane that is depends on permitted passages alone.
 */
export async function nearest(
  store: GovernedStore,
  vector: string,
  k: number,
  epoch: string,
  input: RuntimeInput,
): Promise<readonly TextRow[]> {
  const search = async (
    plan: GovernedPlan,
    limit: number,
    candidates: number,
  ): Promise<readonly TextRow[]> => {
    const given = new Map([
      ['vector', vector],
      ['limit', String(limit)],
      ['candidates', String(candidates)],
    ]);
    return (await step(plan, given, input, limit)).rows;
  };
  const lanes = store.nearest;
  if (lanes === null || !(await input.service.permitted.areMany(lanes.some, epoch, input)))
    return search(store.passages, k, 0);
  if (lanes.approximate !== null) {
    const wanted = Math.max(APPROXIMATE, APPROXIMATE_OF_EACH * k);
    const found = await search(lanes.approximate, wanted, wanted);
    if (found.length === wanted) return found.slice(0, k);
  }
  return search(lanes.prefiltered, k, Math.max(CANDIDATES, CANDIDATES_OF_EACH * k));
}
