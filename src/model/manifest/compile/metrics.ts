import type { Metric, MetricInput, Relation, Span } from 'osl-compiler';
import { windowNamed } from 'osl-compiler';
import { CODES } from '../codes.js';
import type { Path } from '../diagnostic.js';
import type { ManifestDocument, Members, MetricDocument, MetricInputDocument } from '../document.js';
import { frozenMap } from '../frozen-map.js';
import { entityNamed } from './links.js';
import { resolvedMetrics } from './metric-graph.js';
import { membersOf, type Problems } from './scope.js';

/** Expressions are text here; the compiler's binder gives them their meaning. */
export function metricsOf(
  document: ManifestDocument,
  relations: ReadonlyMap<string, Relation>,
  problems: Problems,
): ReadonlyMap<string, Metric> {
  oneSpelling(document.metrics, 'metrics', problems);
  const declared = new Map<string, Metric>();
  const broken = new Set<string>();
  for (const [name, m] of membersOf(document.metrics)) {
    const metric = hasItsMembers(name, m, problems) ? metricOf(name, m) : null;
    if (metric === null) broken.add(name);
    else declared.set(name, metric);
    if (metric?.type === 'simple')
      entityNamed(metric.entity, ['metrics', name, 'entity'], relations, problems);
  }
  return frozenMap(resolvedMetrics(declared, broken, relations, problems));
}

/** Members that metrics of every type have. */
const COMMON: ReadonlySet<string> = new Set(['type', 'description', 'deprecated']);

type Member = Exclude<keyof MetricDocument, 'type' | 'description' | 'deprecated'>;

/** What each type needs, and what else it may have. */
const MEMBERS: Readonly<
  Record<NonNullable<MetricDocument['type']>, { needs: readonly Member[]; may: readonly Member[] }>
> = {
  simple: { needs: ['entity', 'expression'], may: ['filter'] },
  ratio: { needs: ['numerator', 'denominator'], may: [] },
  derived: { needs: ['expression'], may: [] },
  cumulative: { needs: ['metric'], may: ['window', 'grain_to_date'] },
};

function hasItsMembers(name: string, m: MetricDocument, problems: Problems): boolean {
  const type = m.type ?? 'simple';
  const { needs, may } = MEMBERS[type];
  const path: Path = ['metrics', name];
  const missing = needs.filter((key) => m[key] === undefined);
  for (const key of missing)
    problems.add(CODES.missingKey, path, `\`${name}\` has no \`${key}\``, `a ${type} metric needs it`, true);
  const foreign = Object.keys(m).filter(
    (key) => !COMMON.has(key) && ![...needs, ...may].some((k) => k === key),
  );
  for (const key of foreign) {
    const hint = `it has ${[...needs, ...may].join(', ')}`;
    problems.add(CODES.notAllowed, [...path, key], `a ${type} metric has no \`${key}\``, hint, true);
  }
  if (m.window !== undefined && m.grain_to_date !== undefined) {
    const message = '`window` and `grain_to_date` exclude each other';
    problems.add(CODES.conflict, [...path, 'grain_to_date'], message, 'say one of them, or none', true);
  }
  return missing.length === 0 && foreign.length === 0;
}

/** The metric without the entity of what it is made of, which only its inputs tell. */
function metricOf(name: string, m: MetricDocument): Metric {
  const common = { name, description: m.description ?? null };
  switch (m.type) {
    case 'ratio':
      return Object.freeze({
        type: 'ratio',
        ...common,
        entity: null,
        numerator: inputOf(m.numerator),
        denominator: inputOf(m.denominator),
      });
    case 'derived':
      return Object.freeze({ type: 'derived', ...common, entity: null, expression: m.expression ?? '' });
    case 'cumulative':
      return Object.freeze({
        type: 'cumulative',
        ...common,
        entity: '',
        metric: m.metric ?? '',
        span: spanOf(m),
      });
    case 'simple':
    case undefined:
      return Object.freeze({
        ...common,
        entity: m.entity ?? '',
        type: 'simple',
        expression: m.expression ?? '',
        filter: m.filter ?? null,
      });
    default: {
      const unknown: never = m.type;
      return unknown;
    }
  }
}

function inputOf(input: MetricInputDocument | undefined): MetricInput {
  if (typeof input === 'object') return Object.freeze({ metric: input.metric, filter: input.filter ?? null });
  return Object.freeze({ metric: input ?? '', filter: null });
}

function spanOf(m: MetricDocument): Span {
  if (m.grain_to_date !== undefined) return Object.freeze({ kind: 'to_date', grain: m.grain_to_date });
  if (m.window === undefined) return Object.freeze({ kind: 'unbounded' });
  const window = windowNamed(m.window);
  if (window === null) throw new TypeError('the schema has checked the form of a window');
  return window;
}

/** Names that differ in case only would be one name in SQL. */
export function oneSpelling(part: Members<unknown> | undefined, key: string, problems: Problems): void {
  const seen = new Map<string, string>();
  for (const [name] of membersOf(part)) {
    const before = seen.get(name.toLowerCase());
    if (before !== undefined) {
      const hint = `\`${before}\` is the same name: case does not count`;
      problems.add(CODES.duplicateName, [key, name], `\`${name}\` is declared twice`, hint, true);
    }
    seen.set(name.toLowerCase(), name);
  }
}
