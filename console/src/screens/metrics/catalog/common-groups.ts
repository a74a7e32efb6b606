import type { Plan } from '../../../../../clients/typescript/types.js';
import type { SignedInCaller } from '../../../api/caller.js';
import { ProblemError, postJson } from '../../../api/http.js';
import { entitiesIn } from './dimensions.js';
import type { CatalogMetric, CatalogThread } from './protocol.js';

/** Properties shared by the selected metrics, which determine how they can be grouped together. */
export interface CommonGroups {
  readonly metrics: readonly CatalogMetric[];
  /** Entities whose rows the metrics are computed from. */
  readonly entities: readonly string[];
  /** True if all metrics have a time to group by. */
  readonly hasTime: boolean;
}

/**
 * Determines the common properties of the selected metrics. Information missing from the schema (whether a metric has a
 * time dimension, and the entities of one that uses several) is taken from the server's query plans, so that the
 * console agrees with the server.
 *
 * @throws like `postJson`; a plan that the server refuses is not an error
 */
export async function findCommonGroups(
  caller: SignedInCaller,
  thread: CatalogThread,
  names: readonly string[],
  signal: AbortSignal,
): Promise<CommonGroups> {
  const metrics = await thread.ask('known', { names });
  if (metrics.length === 0) return { metrics, entities: [], hasTime: false };
  const known = metrics.map((m) => m.name);
  const timed = await planOf(caller, known, true, signal);
  const entities = new Set<string>();
  for (const { name, entity } of metrics) {
    if (entity !== null) entities.add(entity);
    else for (const one of await entitiesOf(caller, name, timed !== null, signal)) entities.add(one);
  }
  return { metrics, entities: [...entities], hasTime: timed !== null };
}

async function entitiesOf(
  caller: SignedInCaller,
  name: string,
  hasTime: boolean,
  signal: AbortSignal,
): Promise<readonly string[]> {
  const plan =
    (await planOf(caller, [name], false, signal)) ??
    (hasTime ? await planOf(caller, [name], true, signal) : null);
  return entitiesIn(plan?.objects ?? []);
}

/** Requests the plan of a query for `metrics`, by month or ungrouped; null if the server refuses it. */
async function planOf(
  caller: SignedInCaller,
  metrics: readonly string[],
  byTime: boolean,
  signal: AbortSignal,
): Promise<Plan | null> {
  const groups = byTime ? { group_by: [{ name: 'metric_time', grain: 'month' }] } : {};
  try {
    return await postJson<Plan>(caller, '/osl/query', { metrics, ...groups, explain: true }, { signal });
  } catch (error) {
    if (error instanceof ProblemError && [400, 422].includes(error.problem.status)) return null;
    throw error;
  }
}
