import type { Access, Catalog, Metric, Relation, RelationAccess, SimpleMetric } from 'osl-compiler';
import { compile, labelsOf, metricFault, NO_FEATURES, QueryError } from 'osl-compiler';
import { CODES } from '../codes.js';
import type { Path } from '../diagnostic.js';
import type { Problems } from './scope.js';

/**
 * Compiles each metric with access to everything, so that a bad expression is found at load and not by the first
 * query. Requires `ready()` of osl-compiler.
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
  // Metrics built on others are checked only if no simple metric is faulty.
  if (faulty.size > 0) return;
  const access = everything(catalog);
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

/** The added `count(*)` makes an expression that is not an aggregate an error. */
function faultOf(metric: SimpleMetric, entity: Relation, whole: Catalog): QueryError | null {
  const catalog: Catalog = {
    version: '',
    relations: whole.relations,
    metrics: new Map([[metric.name, metric]]),
    facets: new Map(),
    edges: whole.edges,
  };
  const access = everything(whole);
  try {
    const text = `select measure("${metric.name}"), count(*) from osl.entities."${entity.name}"`;
    compile(text, catalog, access, { features: NO_FEATURES });
    return null;
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    // A caller learns only that there is no such metric; its author learns which name is unknown.
    return error.entry === 'unknownMetric' ? (metricFault(metric, [], catalog, access) ?? error) : error;
  }
}

const EVERYTHING = new WeakMap<Catalog, Access>();

/** Access to every row and column of every entity, unmasked. */
function everything(catalog: Catalog): Access {
  const known = EVERYTHING.get(catalog);
  if (known !== undefined) return known;
  const relations = [...catalog.relations.values()].map((r) => [r.name, all(r)] as const);
  const access = { signature: 'all', policyVersion: '', chainLength: 1, relations: new Map(relations) };
  EVERYTHING.set(catalog, access);
  return access;
}

function all(relation: Relation): RelationAccess {
  const columns = new Set(relation.columns.map((c) => c.name));
  const unmask = labelsOf(relation);
  const grants = [{ id: 'all', columns, unmask, filter: null }];
  return { grants, masks: new Map(), denied: new Set<string>() };
}
