import { emit, type GovernedPlan } from 'osl-compiler';

export interface PlanCacheStats {
  readonly hits: number;
  readonly misses: number;
  readonly entries: number;
  readonly bytes: number;
}

/**
 * Governed plans by exact text and rights. The key has the versions of manifest and policy in it, so what is found
 * is right at the time of looking; what an old version left is pushed out in time.
 */
export interface PlanCache {
  get(key: string): GovernedPlan | null;
  set(key: string, plan: GovernedPlan): void;
  stats(): PlanCacheStats;
}

interface Entry {
  readonly plan: GovernedPlan;
  readonly bytes: number;
}

/** What one plan's tree weighs beside its texts, roughly. */
const PLAN_BYTES = 4_096;

/** A least-recently-used cache of at most `maxBytes`. */
export function createPlanCache(maxBytes: number): PlanCache {
  const entries = new Map<string, Entry>();
  let bytes = 0;
  let hits = 0;
  let misses = 0;
  const drop = (key: string, entry: Entry): void => {
    entries.delete(key);
    bytes -= entry.bytes;
  };
  return {
    get(key) {
      const entry = entries.get(key);
      if (entry === undefined) {
        misses++;
        return null;
      }
      hits++;
      entries.delete(key);
      entries.set(key, entry);
      return entry.plan;
    },
    set(key, plan) {
      const before = entries.get(key);
      if (before !== undefined) drop(key, before);
      const size = 2 * (key.length + emit(plan).sql.length) + PLAN_BYTES;
      if (size > maxBytes) return;
      entries.set(key, { plan, bytes: size });
      bytes += size;
      for (const [oldest, entry] of entries) {
        if (bytes <= maxBytes) break;
        drop(oldest, entry);
      }
    },
    stats: () => ({ hits, misses, entries: entries.size, bytes }),
  };
}
