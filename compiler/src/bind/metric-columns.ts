import type { Access } from '../access.js';
import type { Catalog, SimpleMetric } from '../catalog.js';
import { InternalError } from '../errors.js';
import { parse } from '../parse.js';
import { allQueries, leavesOf } from '../walk.js';
import { bind } from './bind.js';

/**
 * The columns of its entity that a metric reads.
 *
 * @throws QueryError where the metric's text has no meaning
 */
export function metricColumns(metric: SimpleMetric, catalog: Catalog): ReadonlySet<string> {
  const entity = catalog.relations.get(metric.entity);
  if (entity === undefined) throw new InternalError(`metric ${metric.name} is of no entity`);
  const columns = new Set(entity.columns.map((c) => c.name));
  const unmask = new Set(entity.columns.flatMap((c) => c.sensitivity ?? []));
  const grants = [{ id: '', columns, unmask, filter: null }];
  const access: Access = {
    signature: '',
    policyVersion: '',
    chainLength: 1,
    relations: new Map([[entity.name, { grants, masks: new Map(), denied: new Set() }]]),
  };
  const text = `select measure("${metric.name}") from osl.entities."${entity.name}"`;
  const { query } = bind(parse(text), catalog, access, NO_FEATURES, []);
  const leaves = allQueries(query).flatMap((q) => (q.kind === 'select' ? leavesOf(q.from) : []));
  return new Set(leaves.flatMap((l) => (l.kind === 'entity' ? l.columns : [])));
}

const NO_FEATURES = { subqueries: false, setOperations: false };
