import { type Catalog, type GroupRule, metricColumns, QueryError } from 'osl-compiler';
import type { GrantDocument } from './document.js';
import type { Names, RelationNames } from './names.js';
import type { DocumentPath, ProblemList } from './problems.js';

const MAX_SIZE = 1_000_000;

/**
 * What `min_group_size` and `metrics` of a grant come to; null for a grant that shows rows.
 *
 * INVARIANT: a grant that says anything of groups never becomes one that shows rows; the whole policy is refused.
 */
export function compileGroups(
  grant: GrantDocument,
  found: RelationNames,
  path: DocumentPath,
  { names, catalog, problems }: { names: Names; catalog: Catalog; problems: ProblemList },
): GroupRule | null {
  const { min_group_size: size, metrics } = grant;
  if (size === undefined && metrics === undefined) return null;
  const fault = (at: string, message: string, hint: string | null = null): void =>
    problems.add('groups', [...path, at], { message, hint });
  if (size === undefined) {
    fault(
      'metrics',
      'a grant of metrics needs `min_group_size`',
      'without it a group of one shows its value',
    );
  } else if (!Number.isInteger(size) || size < 2 || size > MAX_SIZE) {
    fault('min_group_size', `\`min_group_size\` is a whole number from 2 to ${MAX_SIZE}`);
  }
  if (found.relation.kind === 'facet') {
    fault('min_group_size', 'a facet has passages, which cannot be aggregated', 'leave `min_group_size` out');
  } else if (found.relation.primaryKey.length === 0) {
    fault('min_group_size', `\`${found.relation.name}\` has no primary key to tell its entities apart by`);
  }
  const minimum = size ?? MAX_SIZE;
  if (metrics === undefined) return Object.freeze({ minimum, metrics: null });
  if (metrics.length === 0)
    fault('metrics', 'the grant names no metric', 'leave `metrics` out for any aggregate');
  const granted = new Map<string, ReadonlySet<string>>();
  for (const metric of names.metrics(metrics, found, [...path, 'metrics'])) {
    if (metric.type !== 'simple') {
      fault(
        'metrics',
        `metric \`${metric.name}\` is made of others`,
        'grant the simple metrics that it is made of',
      );
      continue;
    }
    try {
      granted.set(metric.name, metricColumns(metric, catalog));
    } catch (error) {
      if (!(error instanceof QueryError)) throw error;
      fault('metrics', `metric \`${metric.name}\` has no meaning here: ${error.message}`, error.hint);
    }
  }
  return Object.freeze({ minimum, metrics: granted });
}
