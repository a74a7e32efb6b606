import type { RelationAccess } from './access.js';

const metricAccesses = new WeakMap<RelationAccess, Map<string, RelationAccess>>();

/**
 * Returns `access` for the expression of a metric: grants that allow the metric then also cover the columns that it
 * reads.
 */
export function forMetric(access: RelationAccess, metric: string): RelationAccess {
  if (access.grants.every((g) => g.groups?.metrics?.has(metric) !== true)) return access;
  const known = metricAccesses.get(access) ?? new Map<string, RelationAccess>();
  metricAccesses.set(access, known);
  const found = known.get(metric) ?? withMetric(access, metric);
  known.set(metric, found);
  return found;
}

function withMetric(access: RelationAccess, metric: string): RelationAccess {
  const grants = access.grants.map((g) => {
    const read = g.groups?.metrics?.get(metric);
    return read === undefined ? g : Object.freeze({ ...g, columns: new Set([...g.columns, ...read]) });
  });
  return Object.freeze({ ...access, grants: Object.freeze(grants) });
}
