import type { Plan } from '../../../../../clients/typescript/types.js';
import type { SignedInCaller } from '../../../api/caller.js';
import { ProblemError, postJson } from '../../../api/http.js';
import { entitiesIn } from '../dimensions/offered.js';
import type { CatalogMetric, CatalogThread } from './protocol.js';

/** What the picked metrics stand on: what can be asked of all of them together. */
export interface CommonGroups {
  readonly metrics: readonly CatalogMetric[];
  /** Entities whose rows they take. */
  readonly entities: readonly string[];
  /** True if all of them have a time that they can be grouped by. */
  readonly hasTime: boolean;
}

/**
 * Finds out what the picked metrics have in common. What the schema does not tell (whether there is a time, which
 * entities a metric of several takes rows of) the server is asked by plans, so that it never disagrees.
 *
 * @throws ProblemError and as `postJson`, but for refusals of a plan
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

/** The plan of some metrics, by months or at all; null where the server refuses it. */
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
