import type { Node, RangeTableSample } from '@pgsql/types';
import type { Parameter, TableSample } from '../../plan/plan.js';
import { type Location, nameParts } from '../ast.js';
import type { BoundItem } from '../bound-from.js';
import type { BindContext } from '../context.js';
import { plainEnvironment } from '../environment.js';
import { coerce } from '../expressions/coerce.js';
import { bindExpression } from '../expressions/expression.js';
import { innerScope } from '../scope.js';

const METHODS: ReadonlyMap<string, TableSample['method']> = new Map([
  ['bernoulli', 'bernoulli'],
  ['system', 'system'],
]);

/** `item TABLESAMPLE method (percent) [REPEATABLE (seed)]`. Whether the caller may sample it is policy's to say. */
export function sampled(node: RangeTableSample, bound: BoundItem, ctx: BindContext): BoundItem {
  const at = ctx.wordNear('tablesample', 'before', node.location);
  const { item } = bound;
  const method = METHODS.get(nameParts(node.method).join('.'));
  if (item.kind !== 'entity')
    throw ctx.unsupported('TABLESAMPLE of what is no table', at, 'sample the entity itself');
  const [percent, ...more] = node.args ?? [];
  if (method === undefined || percent === undefined || more.length > 0)
    throw ctx.unsupported('this method of TABLESAMPLE', at, 'use BERNOULLI (percent) or SYSTEM (percent)');
  const sample: TableSample = Object.freeze({
    method,
    percent: given(percent, 'float4', at, ctx),
    seed: node.repeatable === undefined ? null : given(node.repeatable, 'float8', at, ctx),
  });
  return { ...bound, item: Object.freeze({ ...item, sample }) };
}

/** A number that is written, or a parameter. */
function given(node: Node, type: 'float4' | 'float8', at: Location, ctx: BindContext): Parameter {
  const env = plainEnvironment(ctx, innerScope(null, [], new Map()), 'TABLESAMPLE');
  const value = coerce(bindExpression(node, env), type, ctx);
  if (value.kind === 'parameter') return value;
  throw ctx.unsupported('a computed number in TABLESAMPLE', at, 'write the number, or a parameter');
}
