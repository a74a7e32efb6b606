import type { Access, RelationAccess } from '../../access/access.js';
import {
  type Catalog,
  type ComputedColumn,
  labelsOf,
  type ReadColumn,
  type Relation,
  type SimpleMetric,
} from '../../catalog/catalog.js';
import { NO_FEATURES } from '../../catalog/features.js';
import { InternalError } from '../../errors/errors.js';
import type { Expr } from '../../plan/plan.js';
import { allQueries, leavesOf, queryOf, someExpr } from '../../plan/walk.js';
import { parse } from '../../text/parse.js';
import { bind } from '../bind.js';
import { BindContext } from '../context.js';
import { columnValue } from '../expressions/expression.js';
import { innerScope, resolveColumn, type ScopeItem, withParents } from '../scope.js';
import { columnsOf } from './computed.js';

/** What a computed column is of, which its text does not say. */
export type ComputedFacts = Pick<ComputedColumn, 'type' | 'reads' | 'keys' | 'labels'>;

/**
 * Binds what a computed column of `relation` says, as a caller who may see everything would. The `type`, the `reads` and the
 * `labels` of the computed columns of `catalog` need not be known yet.
 *
 * @throws QueryError where it has no meaning, reads itself, or is no value of one row
 */
export function computedFacts(name: string, relation: Relation, catalog: Catalog): ComputedFacts {
  const ctx = new BindContext({ original: '', quoted: [] }, catalog, everything(catalog), NO_FEATURES, []);
  const columns = columnsOf(relation, wholly(relation), ctx);
  const item: ScopeItem = { source: ctx.nextSource(), alias: relation.name, columns, relation, parents: [] };
  const found = resolveColumn(innerScope(null, [item], new Map()), [name], ctx, undefined);
  const value = columnValue(found, ctx, undefined);
  if (someExpr(value, (e) => queryOf(e) !== null))
    throw ctx.unsupported('a subquery in a computed column', undefined);
  if (ctx.finish().slots.some((s) => s.kind === 'client'))
    throw ctx.unsupported('$n in a computed column', undefined);
  const items = withParents([item]);
  const elsewhere = items.find((i) => i.relation?.connector !== relation.connector)?.relation;
  if (elsewhere != null)
    throw ctx.unsupported(`a column of \`${elsewhere.name}\`, which is in another database`, undefined);
  const reads = items.flatMap((i) =>
    ctx.usedOf(i.source).map((column) => Object.freeze({ relation: i.relation?.name ?? '', column })),
  );
  const keys = items.flatMap(({ relation: from, parents = [] }) =>
    parents.flatMap(({ on, item: parent }) =>
      on.flatMap(({ left, right }) => [keyOf(left, from), keyOf(right, parent.relation)]),
    ),
  );
  return Object.freeze({
    type: value.type,
    reads: Object.freeze(reads),
    keys: Object.freeze(keys.flat()),
    labels: Object.freeze(ctx.ownLabels),
  });
}

function keyOf(side: Expr | null, relation: Relation | null): readonly ReadColumn[] {
  if (side?.kind !== 'column' || relation === null) return [];
  return [Object.freeze({ relation: relation.name, column: side.name })];
}

const EVERYTHING = new WeakMap<Catalog, Access>();

function everything(catalog: Catalog): Access {
  const known = EVERYTHING.get(catalog);
  if (known !== undefined) return known;
  const relations = new Map([...catalog.relations.values()].map((r) => [r.name, wholly(r)]));
  const access = { signature: '', policyVersion: '', chainLength: 1, relations };
  EVERYTHING.set(catalog, access);
  return access;
}

const WHOLLY = new WeakMap<Relation, RelationAccess>();

/** Every row and column, in the clear. */
function wholly(relation: Relation): RelationAccess {
  const known = WHOLLY.get(relation);
  if (known !== undefined) return known;
  const columns = new Set(relation.columns.map((c) => c.name));
  const unmask = labelsOf(relation);
  const access = {
    grants: [{ id: '', columns, unmask, filter: null }],
    masks: new Map(),
    denied: new Set<string>(),
  };
  WHOLLY.set(relation, access);
  return access;
}

/**
 * The columns of its entity that a metric reads. What its filters read of parents is none of them: parents have grants of
 * their own.
 *
 * @throws QueryError where the metric's text has no meaning
 */
export function metricColumns(metric: SimpleMetric, catalog: Catalog): ReadonlySet<string> {
  const entity = catalog.relations.get(metric.entity);
  if (entity === undefined) throw new InternalError(`metric ${metric.name} is of no entity`);
  const access = everything(catalog);
  const text = `select measure("${metric.name}") from osl.entities."${entity.name}"`;
  const { query } = bind(parse(text), catalog, access, NO_FEATURES, []);
  const leaves = allQueries(query).flatMap((q) => (q.kind === 'select' ? leavesOf(q.from) : []));
  return new Set(leaves.flatMap((l) => (l.kind === 'entity' && l.relation === entity ? l.columns : [])));
}
