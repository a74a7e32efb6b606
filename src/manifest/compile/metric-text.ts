import type { Access, Catalog, Metric, Relation } from 'osl-compiler';
import { compile, QueryError } from 'osl-compiler';
import { CODES } from '../codes.js';
import type { Path } from '../diagnostic.js';
import type { Problems } from './scope.js';

/**
 * Compiles what each metric says, as a caller who may see all of its entity would, so that a bad expression is
 * found now and not by the first question. `ready()` of osl-compiler must have been awaited.
 */
export function checkMetricTexts(catalog: Catalog, problems: Problems): void {
  for (const metric of catalog.metrics.values()) {
    const entity = catalog.relations.get(metric.entity);
    if (entity?.kind !== 'entity') continue;
    const path: Path = ['metrics', metric.name];
    const plain = faultOf({ ...metric, filter: null }, entity);
    if (plain !== null) problems.add(CODES.badExpression, [...path, 'expression'], plain.message, plain.hint);
    else if (metric.filter !== null) {
      const filtered = faultOf(metric, entity);
      if (filtered !== null)
        problems.add(CODES.badExpression, [...path, 'filter'], filtered.message, filtered.hint);
    }
  }
}

const FEATURES = { scalarSubqueries: false, setOperations: false };

/** `count(*)` beside it makes what is no aggregate an error. */
function faultOf(metric: Metric, entity: Relation): QueryError | null {
  const catalog: Catalog = {
    version: '',
    relations: new Map([[entity.name, entity]]),
    metrics: new Map([[metric.name, metric]]),
    facets: new Map(),
    edges: [],
  };
  try {
    const text = `select measure("${metric.name}"), count(*) from osl.entities."${entity.name}"`;
    compile(text, catalog, all(entity), { features: FEATURES });
    return null;
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    return error.entry === 'unknownMetric' ? (unreadable(metric, catalog, entity) ?? error) : error;
  }
}

/** A caller hears only that there is no such metric; its author hears which name in it means nothing. */
function unreadable(metric: Metric, catalog: Catalog, entity: Relation): QueryError | null {
  const filter = metric.filter === null ? '' : ` where ${metric.filter}`;
  try {
    compile(`select ${metric.expression} from osl.entities."${entity.name}"${filter}`, catalog, all(entity), {
      features: FEATURES,
    });
    return null;
  } catch (error) {
    if (error instanceof QueryError) return error;
    throw error;
  }
}

function all(entity: Relation): Access {
  const columns = new Set(entity.columns.map((c) => c.name));
  const unmask = new Set(entity.columns.map((c) => c.sensitivity).filter((label) => label !== null));
  const grants = [{ id: 'all', columns, unmask, filter: null }];
  const access = { grants, masks: new Map(), denied: new Set<string>() };
  return { signature: 'all', policyVersion: '', chainLength: 1, relations: new Map([[entity.name, access]]) };
}
