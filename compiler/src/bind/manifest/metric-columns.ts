import type { Access, RelationAccess } from '../../access/access.js';
import { type Catalog, labelsOf, type Relation, type SimpleMetric } from '../../catalog/catalog.js';
import { NO_FEATURES } from '../../catalog/features.js';
import { InternalError } from '../../errors/errors.js';
import { allQueries, leavesOf } from '../../plan/walk.js';
import { parse } from '../../text/parse.js';
import { bind } from '../bind.js';

/**
 * The columns of its entity that a metric reads. What its filters read of parents is none of them: parents have grants of
 * their own.
 *
 * @throws QueryError where the metric's text has no meaning
 */
export function metricColumns(metric: SimpleMetric, catalog: Catalog): ReadonlySet<string> {
  const entity = catalog.relations.get(metric.entity);
  if (entity === undefined) throw new InternalError(`metric ${metric.name} is of no entity`);
  const access: Access = {
    signature: '',
    policyVersion: '',
    chainLength: 1,
    relations: new Map([...catalog.relations.values()].map((r) => [r.name, wholly(r)])),
  };
  const text = `select measure("${metric.name}") from osl.entities."${entity.name}"`;
  const { query } = bind(parse(text), catalog, access, NO_FEATURES, []);
  const leaves = allQueries(query).flatMap((q) => (q.kind === 'select' ? leavesOf(q.from) : []));
  return new Set(leaves.flatMap((l) => (l.kind === 'entity' && l.relation === entity ? l.columns : [])));
}

/** Every row and column, in the clear. */
function wholly(relation: Relation): RelationAccess {
  const columns = new Set(relation.columns.map((c) => c.name));
  const unmask = labelsOf(relation);
  return {
    grants: [{ id: '', columns, unmask, filter: null }],
    masks: new Map(),
    denied: new Set(),
  };
}
