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
import { InternalError, QueryError, queryError } from '../../errors/errors.js';
import { baseColumn } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import { allQueries, leavesOf, mapChildren, queryOf, someExpr } from '../../plan/walk.js';
import { parse } from '../../text/parse.js';
import { positionOfIndex } from '../../text/text.js';
import { bind } from '../bind.js';
import { BindContext } from '../context.js';
import { bindPredicateNode, columnValue } from '../expressions/expression.js';
import {
  type BindEnvironment,
  innerScope,
  plainEnvironment,
  resolveColumn,
  type ScopeColumn,
  type ScopeItem,
  withParents,
} from '../scope.js';
import { columnsOf } from './computed.js';
import { expressionNode, type LiteralForm, PREFIX, settingsFree } from './expression.js';

export type ComputedFacts = Pick<ComputedColumn, 'type' | 'reads' | 'keys' | 'labels'>;

/**
 * Binds a computed column of `relation` as a caller with full access. `type`, `reads` and `labels` of the catalog's
 * computed columns need not be known yet.
 *
 * @throws QueryError if the column is invalid, refers to itself, or is not a value of one row
 */
export function computedFacts(name: string, relation: Relation, catalog: Catalog): ComputedFacts {
  const ctx = new BindContext(
    { original: '', quoted: [] },
    catalog,
    fullCatalogAccess(catalog),
    NO_FEATURES,
    [],
  );
  const columns = columnsOf(relation, fullAccess(relation), ctx);
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

const FULL_CATALOG_ACCESS = new WeakMap<Catalog, Access>();

function fullCatalogAccess(catalog: Catalog): Access {
  const known = FULL_CATALOG_ACCESS.get(catalog);
  if (known !== undefined) return known;
  const relations = new Map([...catalog.relations.values()].map((r) => [r.name, fullAccess(r)]));
  const access = { signature: '', policyVersion: '', chainLength: 1, relations };
  FULL_CATALOG_ACCESS.set(catalog, access);
  return access;
}

const FULL_ACCESS = new WeakMap<Relation, RelationAccess>();

function fullAccess(relation: Relation): RelationAccess {
  const known = FULL_ACCESS.get(relation);
  if (known !== undefined) return known;
  const columns = new Set(relation.columns.map((c) => c.name));
  const unmask = labelsOf(relation);
  const access = {
    grants: [{ id: '', columns, unmask, filter: null }],
    masks: new Map(),
    denied: new Set<string>(),
  };
  FULL_ACCESS.set(relation, access);
  return access;
}

/**
 * Returns the columns that a metric reads from its own entity. Columns of parents are excluded because parents have
 * their own grants.
 *
 * @throws QueryError if the metric is invalid
 */
export function metricColumns(metric: SimpleMetric, catalog: Catalog): ReadonlySet<string> {
  const entity = catalog.relations.get(metric.entity);
  if (entity === undefined) throw new InternalError(`metric ${metric.name} is of no entity`);
  const access = fullCatalogAccess(catalog);
  const text = `select measure("${metric.name}") from osl.entities."${entity.name}"`;
  const { query } = bind(parse(text), catalog, access, NO_FEATURES, []);
  const leaves = allQueries(query).flatMap((q) => (q.kind === 'select' ? leavesOf(q.from) : []));
  return new Set(leaves.flatMap((l) => (l.kind === 'entity' && l.relation === entity ? l.columns : [])));
}

/**
 * Parses and binds a policy predicate over one relation. `attribute('name')` is allowed in `column =
 * attribute('name')` and `column in (attribute('name'))`.
 *
 * @returns a predicate over base columns with inline literals, independent of session settings
 * @throws QueryError with a position in `text`
 */
export function bindPredicate(text: string, relation: Relation): Expr {
  try {
    return bindOver(text, relation);
  } catch (error) {
    throw error instanceof QueryError ? shiftPosition(error, text) : error;
  }
}

const NOTHING = { version: '', relations: new Map(), metrics: new Map(), facets: new Map(), edges: [] };
const NOBODY = { signature: '', policyVersion: '', chainLength: 1, relations: new Map() };

function bindOver(text: string, relation: Relation): Expr {
  const source = { original: `${PREFIX}${text}`, quoted: [] };
  const ctx = new BindContext(source, NOTHING, NOBODY, NO_FEATURES, []);
  const offered = { sealed: false, denied: false, starred: true };
  const columns = new Map<string, ScopeColumn>([
    ...relation.columns.map((c) => [c.name, { ...offered, name: c.name, type: c.type }] as const),
    ...(relation.computed ?? []).map(
      (c) => [c.name, { ...offered, name: c.name, type: c.type, computed: c }] as const,
    ),
  ]);
  const id = ctx.nextSource();
  const scope = innerScope(null, [{ source: id, alias: relation.name, columns, relation }], new Map());
  const env: BindEnvironment = { ...plainEnvironment(ctx, scope, 'a policy predicate'), policy: true };
  const bound = bindPredicateNode(expressionNode(text), env);
  const { slots } = ctx.finish();
  if (someExpr(bound, (e) => queryOf(e) !== null)) {
    throw queryError('unsupported', { construct: 'a subquery in a policy predicate', hint: null });
  }
  const declared = new Map(relation.columns.map((c) => [c.name, c]));
  const grounded = (e: Expr): Expr => {
    if (e.kind === 'column') {
      return baseColumn({ physical: e.name, ...declared.get(e.name), type: e.type });
    }
    if (e.kind === 'parameter') {
      const slot = slots[e.slot];
      if (slot?.kind !== 'literal')
        throw queryError('unsupported', { construct: '$n in a policy predicate', hint: null });
      return Object.freeze({ kind: 'literal', type: slot.type, value: slot.value });
    }
    return mapChildren(e, grounded, (q) => q);
  };
  return settingsFree(grounded(bound), IN_THE_TREE);
}

const IN_THE_TREE: LiteralForm = {
  valueOf: (e) => (e.kind === 'literal' ? e.value : null),
  make: (value, type) => Object.freeze({ kind: 'literal', value, type }),
};

function shiftPosition(error: QueryError, text: string): QueryError {
  if (error.position === null) return error;
  const index = Math.max(0, error.position.offset - PREFIX.length);
  return new QueryError(error.entry, error.message, { ...error, position: positionOfIndex(text, index) });
}
