import type { Node, SelectStmt, SortBy, WindowDef } from '@pgsql/types';
import type { MetricFormat } from '../../catalog/catalog.js';
import { LIMITS } from '../../limits.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { nullOf } from '../../plan/nodes.js';
import type { Expr, FromItem, PlanOutput, Select, SortKey } from '../../plan/plan.js';
import { ascending } from '../../plan/select-nodes.js';
import { someExpr, sortExprs } from '../../plan/walk.js';
import {
  conjunctsOf,
  constructOf,
  firstLocation,
  integerOf,
  type Location,
  required,
  stringOf,
} from '../ast.js';
import type { BindContext } from '../context.js';
import { sortKey } from '../expressions/call.js';
import { bindExpression, bindPredicateNode, bindValue, columnValue } from '../expressions/expression.js';
import { asValue, type BoundExpression, requireComparable } from '../expressions/operands.js';
import { existsOfRows } from '../expressions/row.js';
import { extended, windowNamed } from '../expressions/window.js';
import { bindFrom } from '../from/from.js';
import { joinParents } from '../manifest/computed.js';
import { MetricRows } from '../metrics/metric-rows.js';
import { joinContent } from '../runtime/evidence.js';
import { operatedSelect } from '../runtime/operated-select.js';
import { RowOperators } from '../runtime/row-operators.js';
import { addKeyFilters, takeStoreFilters } from '../runtime/store-filters.js';
import {
  type BindEnvironment,
  type BoundColumn,
  type BoundFrom,
  type ColumnReference,
  innerScope,
  isSealedIn,
  localSources,
  lookUp,
  plainEnvironment,
  type Scope,
  type ScopeItem,
} from '../scope.js';
import { bindGroups, checkGrouping, refuseOtherGroupings } from './grouping.js';
import { type BoundQuery, bindLimit, NO_OUTPUTS, type UntypedOutputs } from './query.js';
import { defaultName, expandStar, SelectList, starOf } from './star.js';

export function bindSelect(
  stmt: SelectStmt,
  ctx: BindContext,
  outer: Scope | null,
  tables: Scope['tables'],
  isOperand: boolean,
): BoundQuery {
  const conjuncts = conjunctsOf(stmt.whereClause);
  const from = bindFrom(stmt.fromClause ?? [], conjuncts, ctx, outer, tables);
  ctx.recordItems(from?.items ?? []);
  const plain = innerScope(outer, from?.items ?? [], tables);
  const metricRows = new MetricRows();
  const operators = new RowOperators();
  const scope: Scope =
    from === null ? plain : { ...plain, from: from.item, using: from.using, metricRows, operators };
  const named = namedWindows(stmt, ctx);
  const env = (clause: string, aggregates: boolean, windows: boolean): BindEnvironment => ({
    ...plainEnvironment(ctx, scope, clause),
    aggregates,
    windows,
    namedWindows: named,
  });
  // Bound in Postgres' order, because the first use of a parameter determines its type.
  const bound = expandTargets(stmt.targetList ?? [], env('SELECT', true, true));
  const filters = conjuncts.filter((c) => from?.keys.has(c) !== true);
  const predicates = filters.map((c) => bindPredicateNode(existsOfRows(c) ?? c, env('WHERE', false, false)));
  const strict = strictItems(from);
  const where = takeStoreFilters(predicates, strict, ctx);
  addKeyFilters(where, from?.items ?? [], strict);
  const untyped = isOperand ? untypedOutputs(bound, stmt) : NO_OUTPUTS;
  const targets = bound.map(({ name, value }, i) => ({
    name,
    expr: untyped.has(i) ? nullOf('text') : asValue(value, ctx),
  }));
  requireLists(stmt, ctx);
  const listed = new SelectList(targets);
  const grouping = bindGroups(stmt, (g) => bindGroup(g, listed, env('GROUP BY', false, false)), ctx);
  const { groupBy } = grouping;
  const having = conjunctsOf(stmt.havingClause).map((h) => bindPredicateNode(h, env('HAVING', true, false)));
  const outputs = targets.map(({ name, expr }) => Object.freeze({ name, expr }));
  const orderBy = (stmt.sortClause ?? []).map((s) => bindSort(s, listed, env('ORDER BY', true, true)));
  const distinct = bindDistinct(stmt.distinctClause, listed, env('DISTINCT ON', false, false));
  const clauses = { groupBy, having, outputs, orderBy, ...distinct };
  const grouped = isGrouped(stmt, clauses);
  checkClauses(clauses, grouped, scope, ctx);
  const query: Select = Object.freeze({
    kind: 'select',
    with: Object.freeze([]),
    from: joinParents(joinContent(from?.item ?? null, where, scope.items, ctx), scope.items),
    where: Object.freeze(where),
    grouped,
    ...grouping,
    having: Object.freeze(having),
    outputs: Object.freeze(outputs),
    ...distinct,
    orderBy: Object.freeze(orderBy),
    ...bindLimit(stmt, ctx, scope),
  });
  const columns = targets.map(({ name, expr }) => ({
    name,
    type: expr.type,
    sealed: isSealed(expr, scope),
    ...formatted(ctx.formatOf(expr)),
  }));
  const settled = metricRows.rewrite(query, new Set(localSources(scope).keys()), ctx);
  const { level } = operators;
  if (level !== null) {
    if (settled !== query)
      throw ctx.unsupported('an operator over rows beside such a metric', level.location);
    return {
      query: operatedSelect(query, level, scope, ctx),
      columns: columns.map((c) => ({ ...c, sealed: false })),
      untyped,
    };
  }
  return { query: inOwnOrder(settled, scope, ctx), columns, untyped };
}

/** Returns the outputs that have no type yet and that no clause needs as text: literals, parameters and NULLs. */
function untypedOutputs(
  outputs: readonly BoundTarget[],
  { distinctClause, groupClause, sortClause }: SelectStmt,
): UntypedOutputs {
  const isRead = (distinctClause ?? groupClause ?? sortClause) !== undefined;
  return new Map(
    [...outputs.entries()].flatMap(([i, { value }]) =>
      value.kind === 'untyped' && (!isRead || value.value === null) ? [[i, value] as const] : [],
    ),
  );
}

function formatted(format: MetricFormat | undefined): Pick<BoundColumn, 'format'> {
  return format === undefined ? {} : { format };
}

type SelectClauses = Pick<Select, 'groupBy' | 'having' | 'outputs' | 'orderBy' | 'distinct' | 'distinctOn'>;

function isGrouped(stmt: SelectStmt, { outputs, orderBy }: SelectClauses): boolean {
  return (
    stmt.groupClause !== undefined ||
    stmt.havingClause !== undefined ||
    [...outputs.map((o) => o.expr), ...sortExprs(orderBy)].some(hasAggregate)
  );
}

function checkClauses(clauses: SelectClauses, grouped: boolean, scope: Scope, ctx: BindContext): void {
  const { groupBy, having, outputs, orderBy, distinct, distinctOn } = clauses;
  const sorted = sortExprs(orderBy);
  const listed = distinct
    ? outputs
    : orderBy.map((k) => (typeof k.by === 'number' ? outputs[k.by - 1] : undefined));
  for (const expr of [...groupBy, ...sorted, ...distinctOn, ...listed.flatMap((o) => o?.expr ?? [])]) {
    requireComparable(expr.type, ctx.locationOf(expr), ctx);
    if (ctx.wholeRows.has(expr)) throw ctx.wholeRow(ctx.locationOf(expr));
  }
  if (grouped) {
    const above = [...outputs.map((o) => o.expr), ...having, ...sorted, ...distinctOn];
    checkGrouping(above, groupBy, scope, ctx);
  }
  refuseOtherGroupings([...outputs.map((o) => o.expr), ...having, ...sorted, ...distinctOn], groupBy, ctx);
  if (distinct && sorted[0] !== undefined) {
    const detail = 'with SELECT DISTINCT, ORDER BY expressions must stand in the select list';
    throw ctx.syntax(detail, ctx.locationOf(sorted[0]));
  }
  checkDistinctOn(distinctOn, orderBy, outputs, ctx);
}

/** Returns the items whose rows WHERE filters directly: those not on the nullable side of an outer join. */
function strictItems(from: BoundFrom | null): readonly ScopeItem[] {
  if (from === null) return [];
  const strict = (item: FromItem): readonly number[] => {
    if (item.kind !== 'join') return [item.id];
    if (item.type === 'full') return [];
    return [...strict(item.left), ...(item.type === 'inner' ? strict(item.right) : [])];
  };
  const sources = new Set(strict(from.item));
  return from.items.filter((i) => sources.has(i.source));
}

/**
 * Applies the default order of RETRIEVE (ordinal) and TRAVERSE (depth, then key), unless the query sorts, groups or
 * removes duplicates itself.
 */
function inOwnOrder(query: Select, scope: Scope, ctx: BindContext): Select {
  const order = scope.items.flatMap((i) => i.order ?? []);
  if (
    order.length === 0 ||
    query.orderBy.length > 0 ||
    query.grouped ||
    query.distinct ||
    query.distinctOn.length > 0
  )
    return query;
  const orderBy = Object.freeze(order.map(ascending));
  ctx.recordRuntimeOrder(orderBy);
  return Object.freeze({ ...query, orderBy });
}

function isSealed(expr: Expr, scope: Scope): boolean {
  if (expr.kind !== 'column') return false;
  const item = scope.items.find((i) => i.source === expr.source);
  return item !== undefined && isSealedIn(item, expr.name);
}

function requireLists(stmt: SelectStmt, ctx: BindContext): void {
  for (const [nodes, what] of [
    [stmt.groupClause, 'GROUP BY'],
    [stmt.sortClause, 'ORDER BY'],
    [stmt.distinctClause, 'DISTINCT ON'],
  ] as const) {
    if (nodes !== undefined && nodes.length > LIMITS.columns)
      ctx.requireColumns(nodes.length, what, firstLocation(nodes[LIMITS.columns]));
  }
}

function hasAggregate(expr: Expr): boolean {
  return someExpr(expr, (e) => e.kind === 'aggregate');
}

function namedWindows(stmt: SelectStmt, ctx: BindContext): ReadonlyMap<string, WindowDef> {
  const named = new Map<string, WindowDef>();
  for (const node of stmt.windowClause ?? []) {
    if (!('WindowDef' in node)) throw ctx.unsupported(constructOf(node), firstLocation(node));
    const window = node.WindowDef;
    const name = window.name ?? '';
    if (named.has(name)) {
      const detail = `window \`${name}\` is defined twice`;
      throw ctx.windowing(detail, window.location);
    }
    const base = window.refname === undefined ? null : windowNamed(window.refname, window, named, ctx);
    named.set(name, base === null ? window : extended(window, base, ctx));
  }
  return named;
}

/** An output whose type is not known yet if it is a bare literal or parameter. */
interface BoundTarget {
  readonly name: string;
  readonly value: BoundExpression;
}

function expandTargets(nodes: readonly Node[], env: BindEnvironment): readonly BoundTarget[] {
  const outputs: BoundTarget[] = [];
  const atTop: BindEnvironment = { ...env, rows: true };
  for (const node of nodes) {
    const target = 'ResTarget' in node ? node.ResTarget : {};
    const star = starOf(target);
    if (star === null) {
      const value = bindExpression(required(target.val), atTop);
      outputs.push({ name: target.name ?? defaultName(required(target.val)), value });
    } else {
      const columns = expandStar(star, target, env, columnValue);
      outputs.push(...columns.map(({ name, expr }) => ({ name, value: expr })));
    }
    env.ctx.requireColumns(outputs.length, 'the select list', target.location);
  }
  return outputs;
}

/** Resolves a GROUP BY item, in Postgres' order: position, input column, output name, expression. */
function bindGroup(node: Node, outputs: SelectList, env: BindEnvironment): Expr {
  const { ctx } = env;
  const named = again(outputNamed(node, outputs, env, false), node, env);
  const expr = byPosition(node, outputs, env) ?? named ?? bindValue(node, env);
  if (someExpr(expr, (e) => e.kind === 'aggregate' || e.kind === 'window')) {
    throw ctx.grouping('aggregates and window calls are not allowed in GROUP BY', ctx.locationOf(expr));
  }
  return expr;
}

function byPosition(node: Node, outputs: SelectList, env: BindEnvironment): Expr | null {
  const position = positionOf(node, outputs, env);
  return position === null ? null : again(outputs.at(position)?.expr ?? null, node, env);
}

/** Counts an output again if GROUP BY or DISTINCT ON refers to it, because the SQL repeats it. */
function again(expr: Expr | null, node: Node, { ctx }: BindEnvironment): Expr | null {
  if (expr !== null && expr.kind !== 'column') ctx.countAgain(expr, firstLocation(node));
  return expr;
}

function positionOf(node: Node, outputs: SelectList, env: BindEnvironment): number | null {
  if (!('A_Const' in node)) return null;
  const position = integerOf(node);
  if (position === null || position < 1 || position > outputs.length) {
    throw env.ctx.syntax(
      `${env.clause} takes the position of an output, from 1 to ${outputs.length}`,
      node.A_Const.location,
    );
  }
  return position;
}

function bareName(name: string): ColumnReference {
  return { alias: null, name, schema: null };
}

/** Returns the output that a bare name refers to, if any. Input columns take precedence unless `outputFirst` is set. */
function outputNamed(
  node: Node,
  outputs: SelectList,
  env: BindEnvironment,
  outputFirst: boolean,
): Expr | null {
  if (!('ColumnRef' in node) || node.ColumnRef.fields?.length !== 1) return null;
  const name = stringOf(node.ColumnRef.fields[0]);
  const hits = outputs.named(name);
  const [hit] = hits;
  if (hit === undefined) return null;
  if (!outputFirst && isInputColumn(name, env, node.ColumnRef.location)) return null;
  if (outputs.meansSeveral(name)) {
    throw env.ctx.error('ambiguous', { what: 'name', name }, node.ColumnRef.location);
  }
  return hit.expr;
}

/** True for a column of FROM. The name of a FROM item that stands for its only column is none. */
function isInputColumn(name: string, { scope, ctx }: BindEnvironment, location: Location): boolean {
  const found = lookUp({ ...scope, parent: null }, bareName(name), ctx, location);
  return found?.item.columns.has(name) === true;
}

function bindSort(node: Node, outputs: SelectList, env: BindEnvironment): SortKey {
  const sort: SortBy = 'SortBy' in node ? node.SortBy : {};
  const target = required(sort.node);
  const position = positionOf(target, outputs, env);
  if (position !== null) return sortKey(sort, position, env.ctx);
  const expr = outputNamed(target, outputs, env, true) ?? bindValue(target, env);
  return sortKey(sort, outputs.positionOf(expr) ?? expr, env.ctx);
}

/** Requires ORDER BY to start with the DISTINCT ON expressions, in any order. */
function checkDistinctOn(
  keys: readonly Expr[],
  orderBy: readonly SortKey[],
  outputs: readonly PlanOutput[],
  ctx: BindContext,
): void {
  const wanted = new Set(keys.map(fingerprint));
  for (const key of orderBy.slice(0, wanted.size)) {
    const by = typeof key.by === 'number' ? outputs[key.by - 1]?.expr : key.by;
    if (by !== undefined && wanted.has(fingerprint(by))) continue;
    const detail = 'ORDER BY must begin with the expressions of DISTINCT ON';
    throw ctx.syntax(detail, by === undefined ? undefined : ctx.locationOf(by));
  }
}

/** Binds DISTINCT, a list with one empty node in the grammar, or DISTINCT ON, a list of expressions. */
function bindDistinct(nodes: readonly Node[] | undefined, outputs: SelectList, env: BindEnvironment) {
  if (nodes === undefined || nodes.length === 0) return { distinct: false, distinctOn: Object.freeze([]) };
  const first = nodes[0];
  if (first === undefined || Object.keys(first).length === 0)
    return { distinct: true, distinctOn: Object.freeze([]) };
  const distinctOn = nodes.map(
    (n) =>
      byPosition(n, outputs, env) ?? again(outputNamed(n, outputs, env, true), n, env) ?? bindValue(n, env),
  );
  return { distinct: false, distinctOn: Object.freeze(distinctOn) };
}
