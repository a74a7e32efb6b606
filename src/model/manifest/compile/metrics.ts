import {
  type Catalog,
  compile,
  type Edge,
  type Metric,
  type MetricFormat,
  type MetricInput,
  metricFault,
  NO_FEATURES,
  type PeriodSpan,
  parseWindow,
  QueryError,
  type Relation,
  type SimpleMetric,
} from 'osl-compiler';
import { CODES, membersOf, type Path, type Problems, type RelationMap } from '../diagnostic.js';
import type { ManifestDocument, MetricDocument, MetricInputDocument, NamedMembers } from '../document.js';
import { everythingIn, frozenMap } from '../manifest.js';
import { entityNamed } from './links.js';
import { resolvedMetrics } from './metric-graph.js';

/** Returns the metrics of a document. Expressions are kept as text; the compiler's binder interprets them. */
export function metricsOf(
  document: ManifestDocument,
  relations: RelationMap,
  edges: readonly Edge[],
  problems: Problems,
): ReadonlyMap<string, Metric> {
  checkSpelling(document.metrics, 'metrics', problems);
  const declared = new Map<string, Metric>();
  const broken = new Set<string>();
  for (const [name, m] of membersOf(document.metrics)) {
    const format = formatOf(name, m, problems);
    const metric = hasItsMembers(name, m, problems) ? metricOf(name, m, format) : null;
    if (metric === null) broken.add(name);
    else declared.set(name, metric);
    if (metric?.type === 'simple')
      entityNamed(metric.entity, ['metrics', name, 'entity'], relations, problems);
  }
  return frozenMap(resolvedMetrics(declared, broken, { relations, edges }, problems));
}

const COMMON: ReadonlySet<string> = new Set(['type', 'description', 'deprecated', 'format']);

type Member = Exclude<keyof MetricDocument, 'type' | 'description' | 'deprecated' | 'format'>;

/** Required and optional members of each metric type. */
const MEMBERS: Readonly<
  Record<NonNullable<MetricDocument['type']>, { needs: readonly Member[]; may: readonly Member[] }>
> = {
  simple: { needs: ['entity', 'expression'], may: ['filter'] },
  ratio: { needs: ['numerator', 'denominator'], may: [] },
  derived: { needs: ['expression'], may: [] },
  cumulative: { needs: ['metric'], may: ['window', 'grain_to_date'] },
  offset: { needs: ['metric'], may: ['offset_window', 'offset_to_grain'] },
  conversion: {
    needs: ['base', 'conversion'],
    may: ['entity', 'constant_properties', 'window', 'calculation'],
  },
};

function hasItsMembers(name: string, m: MetricDocument, problems: Problems): boolean {
  const type = m.type ?? 'simple';
  const { needs, may } = MEMBERS[type];
  const path: Path = ['metrics', name];
  const conflict = (at: Path, message: string, hint: string | null) =>
    problems.add(CODES.conflict, [...path, ...at], message, hint, true);
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
    conflict(['grain_to_date'], message, 'say one of them, or none');
  }
  const offsets = [m.offset_window, m.offset_to_grain].filter((o) => o !== undefined).length;
  if (offsets > 1) {
    const message = '`offset_window` and `offset_to_grain` exclude each other';
    conflict(['offset_to_grain'], message, 'say one of them');
  }
  const aimless = type === 'offset' && offsets === 0;
  if (aimless) {
    const message = `\`${name}\` has no \`offset_window\``;
    problems.add(CODES.missingKey, path, message, 'an offset metric needs it, or `offset_to_grain`', true);
  }
  const unbound =
    type === 'conversion' && m.entity === undefined && (m.constant_properties ?? []).length === 0;
  if (unbound) {
    const message = `nothing says which \`conversion\` follows which \`base\``;
    problems.add(CODES.missingKey, path, message, 'add `entity`, or `constant_properties`', true);
  }
  return missing.length === 0 && foreign.length === 0 && !aimless && !unbound;
}

/** The `kind` of format that each optional member requires. */
const OF_KIND = { currency: 'currency', unit: 'number' } as const;

function formatOf(name: string, m: MetricDocument, problems: Problems): { readonly format?: MetricFormat } {
  const { format } = m;
  if (format === undefined) return {};
  for (const key of ['currency', 'unit'] as const) {
    if (format[key] === undefined || format.kind === OF_KIND[key]) continue;
    const message = `a format of kind \`${format.kind}\` has no \`${key}\``;
    const hint = `it is of kind \`${OF_KIND[key]}\``;
    problems.add(CODES.notAllowed, ['metrics', name, 'format', key], message, hint, true);
  }
  return { format: Object.freeze({ ...format }) };
}

/** Returns the metric as declared. If its entity depends on its inputs, `resolvedMetrics` fills it in later. */
function metricOf(name: string, m: MetricDocument, format: { readonly format?: MetricFormat }): Metric {
  const common = { name, description: m.description ?? null, ...format };
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
    case 'offset':
      return Object.freeze({
        type: 'cumulative',
        ...common,
        entity: '',
        metric: m.metric ?? '',
        span: spanOf(m),
      });
    case 'conversion':
      return Object.freeze({
        type: 'conversion',
        ...common,
        // The entity that links both events; `metric-graph.ts` replaces it with the entity of the base.
        entity: m.entity ?? '',
        base: m.base ?? '',
        conversion: m.conversion ?? '',
        conversionEntity: '',
        same: Object.freeze((m.constant_properties ?? []).map((s) => Object.freeze({ ...s }))),
        window: m.window === undefined ? null : windowOf(m.window),
        calculation: m.calculation ?? 'conversion_rate',
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

function spanOf(m: MetricDocument): PeriodSpan {
  if (m.grain_to_date !== undefined) return Object.freeze({ kind: 'to_date', grain: m.grain_to_date });
  if (m.offset_to_grain !== undefined)
    return Object.freeze({ kind: 'offset_to_grain', grain: m.offset_to_grain });
  if (m.offset_window !== undefined) {
    const { count, unit } = windowOf(m.offset_window);
    return Object.freeze({ kind: 'offset', count, unit });
  }
  if (m.window === undefined) return Object.freeze({ kind: 'unbounded' });
  return windowOf(m.window);
}

function windowOf(text: string) {
  const window = parseWindow(text);
  if (window === null) throw new TypeError('the schema has checked the form of a window');
  return window;
}

/** Reports names that differ only in case, because SQL would treat them as one name. */
export function checkSpelling(
  part: NamedMembers<unknown> | undefined,
  key: string,
  problems: Problems,
): void {
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

/**
 * Compiles each metric with access to everything, so that an invalid expression is reported at load and not by the
 * first query. Requires `ready()` of osl-compiler.
 */
export function checkMetricTexts(catalog: Catalog, problems: Problems): void {
  const faulty = new Set<string>();
  const report = (metric: Metric, at: Path, fault: QueryError | null): void => {
    if (fault === null) return;
    faulty.add(metric.name);
    problems.add(CODES.badExpression, ['metrics', metric.name, ...at], fault.message, fault.hint);
  };
  for (const metric of catalog.metrics.values()) {
    if (metric.type === 'simple') checkSimple(metric, catalog, report);
  }
  // Metrics built on other metrics are checked only if all simple metrics are valid.
  if (faulty.size > 0) return;
  const access = everythingIn(catalog);
  for (const metric of catalog.metrics.values()) {
    if (metric.type === 'simple') continue;
    if (metric.type === 'ratio') {
      for (const side of ['numerator', 'denominator'] as const) {
        const { metric: name, filter } = metric[side];
        const input = catalog.metrics.get(name);
        if (input !== undefined && filter !== null)
          report(metric, [side, 'filter'], metricFault(input, [filter], catalog, access));
      }
    }
    if (!faulty.has(metric.name))
      report(
        metric,
        metric.type === 'derived' ? ['expression'] : [],
        metricFault(metric, [], catalog, access),
      );
  }
}

type ReportFault = (metric: Metric, at: Path, fault: QueryError | null) => void;

function checkSimple(metric: SimpleMetric, catalog: Catalog, report: ReportFault): void {
  const entity = catalog.relations.get(metric.entity);
  if (entity?.kind !== 'entity') return;
  const plain = faultOf({ ...metric, filter: null }, entity, catalog);
  if (plain !== null) report(metric, ['expression'], plain);
  else if (metric.filter !== null) report(metric, ['filter'], faultOf(metric, entity, catalog));
}

/** Returns the error in a metric's expression or filter; null if valid. `count(*)` makes non-aggregates invalid. */
function faultOf(metric: SimpleMetric, entity: Relation, whole: Catalog): QueryError | null {
  const catalog: Catalog = {
    version: '',
    relations: whole.relations,
    metrics: new Map([[metric.name, metric]]),
    facets: new Map(),
    edges: whole.edges,
  };
  const access = everythingIn(whole);
  try {
    const text = `select measure("${metric.name}"), count(*) from osl.entities."${entity.name}"`;
    compile(text, catalog, access, { features: NO_FEATURES });
    return null;
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    // This error says only that the metric does not exist; `metricFault` tells its author the cause.
    return error.entry === 'unknownMetric' ? (metricFault(metric, [], catalog, access) ?? error) : error;
  }
}
