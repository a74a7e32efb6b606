import type { FuncCall, Node, SortBy } from '@pgsql/types';
import type { FunctionDefinition } from '../functions/definition.js';
import { FUNCTIONS, functionsNamed, resolveFunction } from '../functions/index.js';
import { UNIT_NAMES } from '../functions/units.js';
import { callNode } from '../nodes.js';
import { OPERATORS } from '../operators.js';
import type { Expr, SortKey } from '../plan.js';
import { nearest } from '../text.js';
import type { TypeName } from '../types.js';
import { someExpr } from '../walk.js';
import { type Location, nameParts } from './ast.js';
import { type Bound, coerce, typeOfBound } from './coerce.js';
import type { BindContext } from './context.js';
import { type Environment, insideCall } from './environment.js';
import { bindExpression, bindPredicateNode } from './expression.js';
import { bindMeasure, bindMetricAggregate } from './measure.js';
import { bindOperatorCall } from './operator.js';
import { localSources } from './scope.js';
import { bindWindow } from './window.js';

/** A function call: scalar, aggregate or window. */
export function bindCall(node: FuncCall, env: Environment): Expr {
  const { ctx } = env;
  const name = nameParts(node.funcname).join('.');
  if (name === 'measure' && ctx.world === 'semantic') return bindMeasure(node, env);
  const operator = bindOperatorCall(node, env);
  if (operator !== null) return operator;
  refuseOddities(node, ctx);
  if (node.over !== undefined) return bindWindow(name, node, env);
  const kind = functionsNamed(name)[0]?.kind;
  if (kind === undefined) throw unknownFunction(name, [], node.location, ctx);
  if (kind === 'window') {
    throw ctx.error(
      'windowing',
      {
        detail: `window function \`${name}\` needs an OVER clause`,
        hint: `${name}(…) OVER (PARTITION BY … ORDER BY …)`,
      },
      node.location,
    );
  }
  if (kind === 'scalar') return bindScalar(name, node, env);
  return bindMetricAggregate(name, node, env) ?? bindAggregate(name, node, env);
}

function refuseOddities(node: FuncCall, ctx: BindContext): void {
  const at = node.location;
  if ((node.args ?? []).some((a) => 'NamedArgExpr' in a)) {
    throw ctx.unsupported('a named argument here', at);
  }
  if (node.func_variadic === true) throw ctx.unsupported('VARIADIC', at);
}

function bindScalar(name: string, node: FuncCall, env: Environment): Expr {
  const { ctx } = env;
  if (
    node.agg_distinct === true ||
    node.agg_filter !== undefined ||
    node.agg_order !== undefined ||
    node.agg_star === true
  ) {
    throw ctx.error('grouping', { detail: `\`${name}\` is no aggregate` }, node.location);
  }
  const bounds = (node.args ?? []).map((a) => bindExpression(a, env));
  const { definition, args, type } = chooseOverload(name, bounds, node.location, ctx);
  return ctx.at(callNode(definition, args, type), node.location);
}

/** Resolves the overload and converts the arguments; structural ones become part of the plan's shape. */
export function chooseOverload(
  name: string,
  bounds: readonly Bound[],
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

/** A literal of a closed set, such as the unit of `date_trunc`: emitted as text, so it must be one of the set. */
function structural(
  name: string,
  bound: Bound,
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
    const detail = `\`${name}\` needs one of its units, as a literal`;
    const hint = `units: ${UNIT_NAMES.filter((unit) => allowed.has(unit)).join(', ')}`;
    throw ctx.mismatch(detail, bound.kind === 'untyped' ? bound.location : location, hint);
  }
  return Object.freeze({ kind: 'structural', text, type: 'text' });
}

/** Where an aggregate may stand instead. */
export function aggregateHint(clause: string): string {
  return clause === 'WHERE' ? 'use HAVING' : 'work it out in a derived table first';
}

function bindAggregate(name: string, node: FuncCall, env: Environment): Expr {
  const { ctx } = env;
  if (!env.aggregates) {
    throw ctx.error(
      'grouping',
      { detail: `aggregate \`${name}\` is not allowed in ${env.clause}`, hint: aggregateHint(env.clause) },
      node.location,
    );
  }
  const inner = insideCall(env, `the arguments of \`${name}\``, false);
  const ordered = (node.agg_order ?? []).map((n) => ('SortBy' in n ? n.SortBy : {}));
  const direct = (node.args ?? []).map((a) => bindExpression(a, inner));
  const within = node.agg_within_group === true;
  const sorted = ordered.map((s) => bindExpression(s.node ?? nullNode, inner));
  if (within !== (functionsNamed(name)[0]?.kind === 'ordered_set')) {
    throw ctx.error(
      'grouping',
      {
        detail: `\`${name}\` ${within ? 'takes no' : 'needs'} WITHIN GROUP`,
        hint: within ? `${name}(… ORDER BY …)` : `${name}(…) WITHIN GROUP (ORDER BY …)`,
      },
      node.location,
    );
  }
  const { definition, args, type } = aggregateOf(name, node, within ? [...direct, ...sorted] : direct, ctx);
  const orderBy = ordered.map((s, i) =>
    sortKey(s, within ? (args[direct.length + i] ?? null) : settle(sorted[i], ctx), ctx),
  );
  const filter =
    node.agg_filter === undefined
      ? null
      : bindPredicateNode(node.agg_filter, insideCall(env, 'FILTER', false));
  const expr: Expr = Object.freeze({
    kind: 'aggregate',
    definition,
    args: within ? Object.freeze(args.slice(0, direct.length)) : args,
    distinct: node.agg_distinct === true,
    filter,
    orderBy: Object.freeze(orderBy),
    metric: null,
    type,
  });
  refuseOuterOnly(expr, env, node.location);
  return ctx.at(expr, node.location);
}

const nullNode: Node = { A_Const: { isnull: true } };

function settle(bound: Bound | undefined, ctx: BindContext): Expr | null {
  if (bound === undefined) return null;
  return bound.kind === 'untyped' ? coerce(bound, 'text', ctx) : bound;
}

export function aggregateOf(name: string, node: FuncCall, bounds: readonly Bound[], ctx: BindContext) {
  if (node.agg_star !== true) return chooseOverload(name, bounds, node.location, ctx);
  const definition = functionsNamed(name).find((d) => d.arguments.length === 1 && d.arguments[0] === 'any');
  if (definition === undefined) throw unknownFunction(`${name}(*)`, [], node.location, ctx);
  return { definition, args: Object.freeze([]), type: 'int8' as const };
}

/** In Postgres an aggregate over outer columns alone belongs to the outer query; here it has no node. */
function refuseOuterOnly(expr: Expr, env: Environment, location: Location): void {
  const local = localSources(env.scope);
  if (someExpr(expr, (e) => e.kind === 'column' && !local.has(e.source))) {
    throw env.ctx.unsupported('an aggregate over an outer query', location);
  }
}

/** A sort key with Postgres' defaults: NULLs last when ascending, first when descending. */
export function sortKey(node: SortBy, by: Expr | number | null, ctx: BindContext): SortKey {
  if (node.useOp !== undefined && node.useOp.length > 0) {
    throw ctx.unsupported('ORDER BY … USING', node.location, 'use ASC or DESC');
  }
  const descending = node.sortby_dir === 'SORTBY_DESC';
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
    const near = nearest(name, new Set([...FUNCTIONS.map((f) => f.name), ...words]));
    return ctx.error('unknownFunction', { signature: name, near }, location);
  }
  const shown = overloads.slice(0, SHOWN_OVERLOADS).map((f) => `${name}(${f.arguments.join(', ')})`);
  const more = overloads.length > SHOWN_OVERLOADS ? ', …' : '';
  const takes = `there is ${shown.join(', ')}${more}`;
  return ctx.error('unknownFunction', { signature: signature(name, types), near: null, takes }, location);
}

/** Overloads that a hint names. */
const SHOWN_OVERLOADS = 4;

const OPERATOR_WORDS: readonly string[] = ['measure', ...Object.keys(OPERATORS).map((o) => o.toLowerCase())];
