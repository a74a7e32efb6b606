import type { FuncCall } from '@pgsql/types';
import type { FunctionDefinition } from '../../functions/definition.js';
import type { Aggregate, Expr } from '../../plan/plan.js';
import { sortExprs } from '../../plan/walk.js';
import { required } from '../ast.js';
import { type Environment, insideCall } from '../environment.js';
import { aggregateHint, refuseOuterOnly, sortKey } from './call.js';
import { coerce, commonType } from './coerce.js';
import { requireComparable } from './comparable.js';
import { bindExpression, bindPredicateNode } from './expression.js';

/** `rank(a, …) WITHIN GROUP (ORDER BY x, …)`: as many values as keys, each pair in the type that both convert to. */
export function bindHypothetical(definition: FunctionDefinition, node: FuncCall, env: Environment): Expr {
  const { ctx } = env;
  const { name, result } = definition;
  const at = node.location;
  if (!env.aggregates) {
    const detail = `aggregate \`${name}\` is not allowed in ${env.clause}`;
    throw ctx.error('grouping', { detail, hint: aggregateHint(env.clause) }, at);
  }
  const given = node.args ?? [];
  const sorts = (node.agg_order ?? []).map((n) => ('SortBy' in n ? n.SortBy : {}));
  if (given.length !== sorts.length || given.length === 0) {
    const detail = `\`${name}\` takes a value for each key of WITHIN GROUP`;
    throw ctx.error('grouping', { detail, hint: `${name}(5) WITHIN GROUP (ORDER BY x)` }, at);
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
    filter:
      node.agg_filter === undefined
        ? null
        : bindPredicateNode(node.agg_filter, insideCall(env, 'FILTER', false)),
    orderBy: Object.freeze(pairs.map((p) => p.key)),
    metric: null,
    type: result === 'int8' ? 'int8' : 'float8',
  });
  for (const key of sortExprs(call.orderBy)) requireComparable(key.type, at, ctx);
  refuseOuterOnly(call, env, at);
  return ctx.at(call, at);
}
