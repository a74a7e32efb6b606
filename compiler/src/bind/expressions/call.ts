import type { FuncCall, Node, SortBy } from '@pgsql/types';
import { OPERATORS } from '../../catalog/operators.js';
import { HYPOTHETICAL } from '../../functions/aggregate.js';
import { UNIT_NAMES } from '../../functions/datetime.js';
import type { FunctionDefinition } from '../../functions/define.js';
import { FUNCTIONS, functionsNamed, requireFunction, resolveFunction } from '../../functions/resolve.js';
import { columnsOfRows } from '../../functions/set-returning.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { callNode, isNotNull, TRUE } from '../../plan/nodes.js';
import type { Aggregate, Expr, SortKey } from '../../plan/plan.js';
import { nodesIn, sortExprs } from '../../plan/walk.js';
import { nearest } from '../../text/text.js';
import { sqlNameOf, type TypeName } from '../../types/types.js';
import { type Location, nameParts, required, rowItems, ZERO } from '../ast.js';
import type { BindContext } from '../context.js';
import { bindMeasure, bindMetricAggregate } from '../metrics/measure.js';
import { bindOperatorCall } from '../runtime/operator.js';
import { type BindEnvironment, insideCall, isLocal } from '../scope.js';
import { bindExpression, bindPredicateNode } from './expression.js';
import {
  asValue,
  type BoundExpression,
  coerce,
  commonType,
  requireComparable,
  typeOfBound,
} from './operands.js';
import { bindArgument, bindRowToJson, countedRow } from './row.js';
import { bindWindow } from './window.js';

/** Binds a scalar, aggregate or window function call. */
export function bindCall(node: FuncCall, env: BindEnvironment): Expr {
  const { ctx } = env;
  const name = nameParts(node.funcname).join('.');
  if (name === 'measure' && ctx.world === 'semantic') return bindMeasure(node, env);
  if (name === 'attribute' && env.policy) {
    const detail = 'attribute() can only be on the right of =, or alone in IN';
    throw ctx.mismatch(detail, node.location, "write a column before it, as in region = attribute('region')");
  }
  const operator = bindOperatorCall(node, env);
  if (operator !== null) return operator;
  const placed = inPlaces(name, node, ctx);
  refuseOddities(placed, ctx);
  if (name === 'pg_typeof') return bindTypeOf(node, env);
  if (name === 'row_to_json') return bindRowToJson(node.args ?? [], node.location, env);
  if (node.over !== undefined) return bindWindow(name, node, env);
  const hypothetical = node.agg_within_group === true ? HYPOTHETICAL.get(name) : undefined;
  if (hypothetical !== undefined) return bindHypothetical(hypothetical, node, env);
  const kind = functionsNamed(name)[0]?.kind;
  if (kind === undefined) throw unknownFunction(name, [], node.location, ctx);
  if (kind === 'window') {
    throw ctx.windowing(
      `window function \`${name}\` needs an OVER clause`,
      node.location,
      `${name}(…) OVER (PARTITION BY … ORDER BY …)`,
    );
  }
  if (kind === 'rows') requireRows(name, node, env);
  if (kind === 'scalar' || kind === 'rows') return bindScalar(name, placed, env);
  return bindMetricAggregate(name, node, env) ?? bindAggregate(name, node, env);
}

/** Binds `pg_typeof(x)` as a text constant. The expression keeps `x` so that its columns count as used. */
function bindTypeOf({ args = [], location }: FuncCall, env: BindEnvironment): Expr {
  const { ctx } = env;
  const [only, ...more] = args;
  if (only === undefined || more.length > 0)
    throw unknownFunction(`pg_typeof of ${args.length} values`, [], location, ctx);
  const bound = bindExpression(only, env);
  if (bound.kind === 'untyped') return ctx.at(ctx.constant('unknown', 'text'), location);
  const name = ctx.constant(sqlNameOf(bound.type), 'text');
  const arms = Object.freeze([Object.freeze({ when: isNotNull(bound), result: name })]);
  return ctx.at(Object.freeze({ kind: 'case', arms, otherwise: name, type: 'text' }), location);
}

function refuseOddities(node: FuncCall, ctx: BindContext): void {
  const at = node.location;
  if ((node.args ?? []).some((a) => 'NamedArgExpr' in a)) {
    throw ctx.unsupported('a named argument here', at);
  }
  if (node.func_variadic === true) throw ctx.unsupported('VARIADIC', at);
}

/** Requires a set-returning function to have a single column and to be in a select list. */
function requireRows(name: string, node: FuncCall, env: BindEnvironment): void {
  const [definition] = functionsNamed(name);
  const single = definition !== undefined && columnsOfRows(definition, 'text').length === 1;
  if (env.rows !== true || !single) {
    const place = single ? 'FROM, or at the top of the select list' : 'FROM';
    throw env.ctx.unsupported(`\`${name}\` here`, node.location, `put it in ${place}`);
  }
  env.ctx.requireFeature('row_functions', node.location);
}

function bindScalar(name: string, node: FuncCall, env: BindEnvironment): Expr {
  const { ctx } = env;
  if (
    node.agg_distinct === true ||
    node.agg_filter !== undefined ||
    node.agg_order !== undefined ||
    node.agg_star === true
  ) {
    throw ctx.grouping(`\`${name}\` is not an aggregate`, node.location);
  }
  const bounds = (node.args ?? []).map((a, i) => bindArgument(a, name, i, env));
  const { definition, args, type } = chooseOverload(name, bounds, node.location, ctx);
  return ctx.at(callNode(definition, args, type), node.location);
}

/**
 * Chooses the overload and converts the arguments. Structural arguments, such as the unit of `date_trunc`, become part
 * of the plan.
 */
export function chooseOverload(
  name: string,
  bounds: readonly BoundExpression[],
  location: Location,
  ctx: BindContext,
): { definition: FunctionDefinition; args: readonly Expr[]; type: TypeName } {
  const types = bounds.map(typeOfBound);
  const found = resolveFunction(name, types);
  if (found === 'none') throw unknownFunction(name, types, location, ctx);
  if (found === 'ambiguous')
    throw ctx.error('ambiguous', { what: 'function', name: signature(name, types) }, location);
  const { definition, argumentTypes, result } = found;
  const args = bounds.map((bound, i) => {
    const allowed = definition.structural.get(i);
    return allowed === undefined
      ? coerce(bound, argumentTypes[i] ?? 'text', ctx, location)
      : structural(name, bound, allowed, location, ctx);
  });
  return { definition, args: Object.freeze(args), type: result };
}

/**
 * Binds a literal from a closed set, such as the unit of `date_trunc`. It is emitted as SQL text, not as a parameter.
 */
function structural(
  name: string,
  bound: BoundExpression,
  allowed: ReadonlySet<string>,
  location: Location,
  ctx: BindContext,
): Expr {
  const value = bound.kind === 'untyped' ? bound.value : null;
  const literal =
    value !== null && 'literal' in value
      ? value.literal.read()
      : bound.kind === 'untyped'
        ? null
        : (ctx.literalIn(bound)?.read() ?? null);
  const text = literal?.toLowerCase() ?? null;
  if (text === null || !allowed.has(text)) {
    const units = UNIT_NAMES.filter((unit) => allowed.has(unit));
    const one = units.length > 0 ? 'one of its units' : "a text search configuration of Postgres' own";
    const detail = `\`${name}\` needs ${one}, as a literal`;
    const hint = units.length > 0 ? `units: ${units.join(', ')}` : `such as 'simple' or 'english'`;
    throw ctx.mismatch(detail, bound.kind === 'untyped' ? bound.location : location, hint);
  }
  return Object.freeze({ kind: 'structural', text, type: 'text' });
}

/** @throws QueryError E0511, 42803 in a clause that does not allow aggregates */
export function requireAggregates(
  what: string,
  at: Location,
  { ctx, clause, aggregates }: BindEnvironment,
): void {
  if (aggregates) return;
  const hint = clause === 'WHERE' ? 'use HAVING' : 'work it out in a derived table first';
  throw ctx.grouping(`${what} is not allowed in ${clause}`, at, hint);
}

export function bindFilter({ agg_filter }: FuncCall, env: BindEnvironment): Expr | null {
  return agg_filter === undefined ? null : bindPredicateNode(agg_filter, insideCall(env, 'FILTER', false));
}

function bindAggregate(name: string, node: FuncCall, env: BindEnvironment): Expr {
  const { ctx } = env;
  requireAggregates(`aggregate \`${name}\``, node.location, env);
  const inner = insideCall(env, `the arguments of \`${name}\``, false);
  const ordered = (node.agg_order ?? []).map((n) => ('SortBy' in n ? n.SortBy : {}));
  const items = name === 'count' ? rowsCounted(node) : null;
  const row = name === 'count' ? rowCounted(node, inner) : null;
  const direct =
    row !== null ? [row] : (items ?? node.args ?? []).map((a, i) => bindArgument(a, name, i, inner));
  const within = node.agg_within_group === true;
  const sorted = ordered.map((s) => bindExpression(s.node ?? nullNode, inner));
  if (within !== (functionsNamed(name)[0]?.kind === 'ordered_set')) {
    throw ctx.grouping(
      `\`${name}\` ${within ? 'takes no' : 'needs'} WITHIN GROUP`,
      node.location,
      within ? `${name}(… ORDER BY …)` : `${name}(…) WITHIN GROUP (ORDER BY …)`,
    );
  }
  const { definition, args, type } =
    items === null
      ? aggregateOf(
          name,
          row === TRUE ? { ...node, agg_star: true } : node,
          within ? [...direct, ...sorted] : direct,
          ctx,
        )
      : countOfRows(direct, ctx);
  const orderBy = ordered.map((s, i) =>
    sortKey(s, within ? (args[direct.length + i] ?? null) : settle(sorted[i], ctx), ctx),
  );
  const filter = bindFilter(node, env);
  const expr: Aggregate = Object.freeze({
    kind: 'aggregate',
    definition,
    args: within ? Object.freeze(args.slice(0, direct.length)) : args,
    distinct: node.agg_distinct === true,
    filter,
    orderBy: Object.freeze(orderBy),
    metric: null,
    type,
  });
  const compared = [...(expr.distinct ? args : []), ...sortExprs(orderBy)];
  for (const e of compared) requireComparable(e.type, node.location, ctx);
  refuseOtherOrder(expr, node.location, ctx);
  refuseOuterOnly(expr, env, node.location);
  return ctx.at(expr, node.location);
}

/** Refuses `array_agg(DISTINCT x ORDER BY y)`: the values that are left have no `y` to be sorted by. */
function refuseOtherOrder(
  { distinct, args, orderBy }: Aggregate,
  location: Location,
  ctx: BindContext,
): void {
  if (!distinct) return;
  const known = new Set(args.map(fingerprint));
  const other = sortExprs(orderBy).find((e) => !known.has(fingerprint(e)));
  if (other === undefined) return;
  const detail = 'with DISTINCT in an aggregate, ORDER BY expressions must be among its arguments';
  throw ctx.syntax(detail, ctx.locationOf(other) ?? location);
}

const nullNode: Node = { A_Const: { isnull: true } };

function settle(bound: BoundExpression | undefined, ctx: BindContext): Expr | null {
  return bound === undefined ? null : asValue(bound, ctx);
}

export function aggregateOf(
  name: string,
  node: FuncCall,
  bounds: readonly BoundExpression[],
  ctx: BindContext,
) {
  if (node.agg_star !== true) return chooseOverload(name, bounds, node.location, ctx);
  const definition = functionsNamed(name).find((d) => d.arguments.length === 1 && d.arguments[0] === 'any');
  if (definition === undefined) throw unknownFunction(`${name}(*)`, [], node.location, ctx);
  return { definition, args: Object.freeze([]), type: 'int8' as const };
}

/** Returns `a` and `b` of `count(distinct (a, b))`; null for other calls. */
function rowsCounted({ args = [], agg_distinct }: FuncCall): readonly Node[] | null {
  const items = agg_distinct === true && args.length === 1 ? rowItems(args[0]) : null;
  return items !== null && items.length > 1 ? items : null;
}

/** Returns the argument of `count(t)` if `t` is a FROM item; null for other calls. */
function rowCounted({ args = [], agg_distinct }: FuncCall, env: BindEnvironment): Expr | null {
  const [only, ...more] = args;
  return only === undefined || more.length > 0 || agg_distinct === true ? null : countedRow(only, env);
}

function countOfRows(items: readonly BoundExpression[], ctx: BindContext) {
  const args = items.map((b) => asValue(b, ctx));
  return {
    definition: requireFunction('count', ['text']).definition,
    args: Object.freeze(args),
    type: 'int8' as const,
  };
}

/** Refuses an aggregate over outer columns only, which Postgres would evaluate in the outer query. */
function refuseOuterOnly(call: Aggregate, env: BindEnvironment, location: Location): void {
  const columns = nodesIn([call], 'column');
  if (columns.length > 0 && !columns.some((c) => isLocal(env.scope, c.source)))
    throw env.ctx.unsupported('an aggregate over an outer query', location);
}

/** Creates a sort key with Postgres' defaults: NULLs last when ascending, first when descending. */
export function sortKey(node: SortBy, by: Expr | number | null, ctx: BindContext): SortKey {
  const operator = nameParts(node.useOp).join('.');
  if (operator !== '' && operator !== '<' && operator !== '>') {
    throw ctx.unsupported(`ORDER BY … USING ${operator}`, node.location, 'use < or >, or ASC or DESC');
  }
  const descending = node.sortby_dir === 'SORTBY_DESC' || operator === '>';
  const nulls = node.sortby_nulls ?? 'SORTBY_NULLS_DEFAULT';
  const nullsFirst = nulls === 'SORTBY_NULLS_DEFAULT' ? descending : nulls === 'SORTBY_NULLS_FIRST';
  return Object.freeze({ by: by ?? 1, descending, nullsFirst });
}

function signature(name: string, types: readonly (TypeName | null)[]): string {
  return `${name}(${types.map((t) => t ?? 'unknown').join(', ')})`;
}

export function unknownFunction(
  name: string,
  types: readonly (TypeName | null)[],
  location: Location,
  ctx: BindContext,
) {
  const overloads = functionsNamed(name);
  if (overloads.length === 0) {
    const words = ctx.world === 'semantic' ? OPERATOR_WORDS : [];
    const takes = INSTEAD.get(name) ?? (words.includes(name) ? OF_A_COLUMN : undefined);
    const near =
      takes === undefined ? nearest(name, new Set([...FUNCTIONS.map((f) => f.name), ...words])) : null;
    return ctx.error(
      'unknownFunction',
      { signature: name, near, ...(takes === undefined ? {} : { takes }) },
      location,
    );
  }
  const shown = overloads.slice(0, SHOWN_OVERLOADS).map((f) => `${name}(${f.arguments.join(', ')})`);
  const more = overloads.length > SHOWN_OVERLOADS ? ', …' : '';
  const takes = `there is ${shown.join(', ')}${more}`;
  return ctx.error('unknownFunction', { signature: signature(name, types), near: null, takes }, location);
}

const OF_COMPOSITES =
  'the model has no composite types; read the members by jsonb_to_record(…) AS t(a int, b text)';
const OF_A_COLUMN = 'an operator takes the name of a text column first; compute a text in a derived table';
const INSTEAD: ReadonlyMap<string, string> = new Map([
  ...['json', 'jsonb'].flatMap((json): [string, string][] => [
    [`${json}_populate_record`, OF_COMPOSITES],
    [`${json}_populate_recordset`, OF_COMPOSITES.replace('_record(', '_recordset(')],
  ]),
  ['factorial', 'its work has no bound; write the number'],
]);

const SHOWN_OVERLOADS = 4;

const OPERATOR_WORDS: readonly string[] = ['measure', ...Object.keys(OPERATORS).map((o) => o.toLowerCase())];

/** Binds `rank(a, …) WITHIN GROUP (ORDER BY x, …)`, converting each argument and its key to their common type. */
function bindHypothetical(definition: FunctionDefinition, node: FuncCall, env: BindEnvironment): Expr {
  const { ctx } = env;
  const { name, result } = definition;
  const at = node.location;
  requireAggregates(`aggregate \`${name}\``, at, env);
  const given = node.args ?? [];
  const sorts = (node.agg_order ?? []).map((n) => ('SortBy' in n ? n.SortBy : {}));
  if (given.length !== sorts.length || given.length === 0) {
    const detail = `\`${name}\` takes a value for each key of WITHIN GROUP`;
    throw ctx.grouping(detail, at, `${name}(5) WITHIN GROUP (ORDER BY x)`);
  }
  const inner = insideCall(env, `the arguments of \`${name}\``, false);
  const pairs = sorts.map((sort, i) => {
    const [key, value] = [
      bindExpression(required(sort.node), inner),
      bindExpression(required(given[i]), inner),
    ];
    const type = commonType([key, value], ctx, at);
    return { value: coerce(value, type, ctx), key: sortKey(sort, coerce(key, type, ctx), ctx) };
  });
  const call: Aggregate = Object.freeze({
    kind: 'aggregate',
    definition,
    args: Object.freeze(pairs.map((p) => p.value)),
    distinct: false,
    filter: bindFilter(node, env),
    orderBy: Object.freeze(pairs.map((p) => p.key)),
    metric: null,
    type: result === 'int8' ? 'int8' : 'float8',
  });
  for (const key of sortExprs(call.orderBy)) requireComparable(key.type, at, ctx);
  refuseOuterOnly(call, env, at);
  return ctx.at(call, at);
}

/** Parameter names of the functions that allow named arguments. All parameters default to 0. */
const PARTS: ReadonlyMap<string, readonly string[]> = new Map([
  ['make_interval', ['years', 'months', 'weeks', 'days', 'hours', 'mins', 'secs']],
]);

/**
 * Puts named arguments, as in `make_interval(days => 3)`, into positional order. Other calls are returned unchanged.
 *
 * @throws QueryError E0511 for an unknown or repeated name
 */
function inPlaces(name: string, call: FuncCall, ctx: BindContext): FuncCall {
  const parts = PARTS.get(name);
  const args = call.args ?? [];
  if (parts === undefined || !args.some((a) => 'NamedArgExpr' in a)) return call;
  const placed = new Map<number, Node>();
  let last = 0;
  for (const [i, arg] of args.entries()) {
    const named = 'NamedArgExpr' in arg ? arg.NamedArgExpr : null;
    const at = named === null ? i : parts.indexOf(named.name ?? '');
    if (at < 0 || placed.has(at)) {
      const detail = `\`${name}\` ${at < 0 ? 'has no argument' : 'is given twice'} \`${named?.name ?? parts[at]}\``;
      throw ctx.mismatch(detail, named?.location ?? call.location, `it takes ${parts.join(', ')}`);
    }
    const value = named === null ? arg : named.arg;
    if (value !== undefined) placed.set(at, value);
    last = Math.max(last, at);
  }
  return { ...call, args: Array.from({ length: last + 1 }, (_, i) => placed.get(i) ?? ZERO) };
}
