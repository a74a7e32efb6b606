import {
  type Catalog,
  type GroupRule,
  isComparable,
  metricColumns,
  type OverlapRule,
  QueryError,
  type TypeName,
} from 'osl-compiler';
import type { GrantDocument } from './document.js';
import type { NameResolver, RelationNames } from './names.js';
import type { DocumentPath, ProblemList } from './problems.js';

const MAX_SIZE = 1_000_000;

interface GroupsContext {
  readonly names: NameResolver;
  readonly catalog: Catalog;
  readonly problems: ProblemList;
  /** By relation: the column that identifies a data subject, if it is not the primary key. */
  readonly units: ReadonlyMap<string, string>;
}

/**
 * Compiles the group rules of a grant; null if the grant has none and therefore grants rows.
 *
 * INVARIANT: a grant with group rules never becomes one that grants rows; faults reject the whole policy.
 */
export function compileGroups(
  grant: GrantDocument,
  target: RelationNames,
  path: DocumentPath,
  { names, catalog, problems, units }: GroupsContext,
): GroupRule | null {
  const { min_group_size: size, metrics, distinct, dominance, overlap } = grant;
  if ([size, metrics, distinct, dominance, overlap].every((part) => part === undefined)) return null;
  const fault = (at: string, message: string, hint: string | null = null): void =>
    problems.add('groups', [...path, at], { message, hint });
  if (size === undefined && metrics !== undefined) {
    fault(
      'metrics',
      'a grant of metrics needs `min_group_size`',
      'without it a group of one shows its value',
    );
  } else if (size !== undefined && (!Number.isInteger(size) || size < 2 || size > MAX_SIZE)) {
    fault('min_group_size', `\`min_group_size\` is a whole number from 2 to ${MAX_SIZE}`);
  }
  if (target.relation.kind === 'facet') {
    fault('min_group_size', 'a facet has passages, which cannot be aggregated', 'leave `min_group_size` out');
  } else if (target.relation.primaryKey.length === 0) {
    fault('min_group_size', `\`${target.relation.name}\` has no primary key to tell its entities apart by`);
  }
  const unit = units.get(grant.on);
  if (size === undefined && [distinct, dominance, overlap].some((part) => part !== undefined))
    fault('min_group_size', '`distinct`, `dominance` and `overlap` are beside a minimum, not instead of one');
  if (dominance !== undefined && !(Number.isInteger(dominance) && dominance >= 1 && dominance <= 99))
    fault('dominance', '`dominance` is a whole number of percent from 1 to 99');
  if (dominance !== undefined && unit !== undefined)
    fault(
      'dominance',
      `rows of \`${grant.on}\` are counted by \`${unit}\`, and what one of those contributes in several rows nobody adds up`,
      'leave `dominance` out, or grant an entity that has one row for each of them',
    );
  const rules = {
    minimum: size ?? MAX_SIZE,
    ...(unit !== undefined && { unit }),
    ...(distinct !== undefined && { distinct: distinctOf(distinct, target, path, names, fault) }),
    ...(dominance !== undefined && { dominance }),
    ...(overlap !== undefined && { overlap: overlapOf(overlap, unit, grant, target, fault) }),
  };
  if (metrics === undefined) return Object.freeze({ ...rules, metrics: null });
  if (metrics.length === 0)
    fault('metrics', 'the grant names no metric', 'leave `metrics` out for any aggregate');
  const granted = new Map<string, ReadonlySet<string>>();
  for (const metric of names.metrics(metrics, target, [...path, 'metrics'])) {
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
  return Object.freeze({ ...rules, metrics: granted });
}

/** Types whose text does not depend on session settings, so that a key can identify a row across answers. */
const STABLE_TEXT_TYPES: ReadonlySet<TypeName> = new Set<TypeName>([
  'bool',
  'int2',
  'int4',
  'int8',
  'numeric',
  'text',
  'bpchar',
  'uuid',
]);

function overlapOf(
  { with: group, days = 1 }: NonNullable<GrantDocument['overlap']>,
  unit: string | undefined,
  { unmask = [] }: GrantDocument,
  { relation }: RelationNames,
  fault: (at: string, message: string, hint?: string | null) => void,
): OverlapRule {
  for (const name of [...relation.primaryKey, ...(unit === undefined ? [] : [unit])]) {
    const column = relation.columns.find((c) => c.name === name);
    if (column === undefined) continue;
    if (!STABLE_TEXT_TYPES.has(column.type) || column.stored !== undefined)
      fault('overlap', `rows cannot be recognized by \`${name}\`, which is a ${column.type}`);
    if (column.sensitivity !== null && !unmask.includes(column.sensitivity))
      fault(
        'overlap',
        `rows cannot be recognized by \`${name}\`, which is masked`,
        'use another key or unit, or unmask its label: rows are not shown',
      );
  }
  return Object.freeze({ days, with: group ?? null });
}

function distinctOf(
  distinct: Readonly<Record<string, number>>,
  target: RelationNames,
  path: DocumentPath,
  names: NameResolver,
  fault: (at: string, message: string, hint?: string | null) => void,
): ReadonlyMap<string, number> {
  const columns = Object.keys(distinct);
  names.columns(columns, target, [...path, 'distinct']);
  if (columns.length === 0) fault('distinct', 'no column is named');
  for (const [name, minimum] of Object.entries(distinct)) {
    const type = target.relation.columns.find((c) => c.name === name)?.type;
    if (type !== undefined && !isComparable(type))
      fault('distinct', `values of \`${name}\` cannot be told apart`);
    if (!Number.isInteger(minimum) || minimum < 2 || minimum > MAX_SIZE)
      fault('distinct', `a group has at least a whole number of values from 2 to ${MAX_SIZE}`);
  }
  return new Map(Object.entries(distinct));
}
