import type { FuncCall, WindowDef } from '@pgsql/types';
import { functionsNamed } from '../../functions/resolve.js';
import type { Expr, FrameBound, SortKey, WindowFrame } from '../../plan/plan.js';
import { someExpr, sortExprs } from '../../plan/walk.js';
import { isInteger, type TypeName } from '../../types/types.js';
import { required } from '../ast.js';
import type { BindContext } from '../context.js';
import { type BindEnvironment, insideCall } from '../scope.js';
import { aggregateOf, bindFilter, chooseOverload, sortKey, unknownFunction } from './call.js';
import { bindExpression, bindValue } from './expression.js';
import { coerce, requireComparable, typeOfBound } from './operands.js';

export function bindWindow(name: string, node: FuncCall, env: BindEnvironment): Expr {
  const { ctx } = env;
  if (!env.windows)
    throw ctx.windowing(
      `window calls are not allowed in ${env.clause}`,
      node.location,
      'work it out in a derived table first',
    );
  ctx.requireFeature('window_functions', node.location);
  const kind = functionsNamed(name)[0]?.kind;
  if (kind === undefined) throw unknownFunction(name, [], node.location, ctx);
  if (kind === 'scalar' || kind === 'ordered_set') {
    throw ctx.windowing(`\`${name}\` is not a window function`, node.location);
  }
  if (node.agg_distinct === true || node.agg_order !== undefined) {
    throw ctx.unsupported('DISTINCT or ORDER BY inside a window call', node.location);
  }
  if (node.agg_filter !== undefined && kind !== 'aggregate') {
    throw ctx.windowing(`\`${name}\` is not an aggregate, so it takes no FILTER`, node.location);
  }
  const inner = insideCall(env, 'a window call', env.aggregates);
  const bounds = (node.args ?? []).map((a) => bindExpression(a, inner));
  const { definition, args, type } =
    kind === 'aggregate'
      ? aggregateOf(name, node, bounds, ctx)
      : chooseOverload(name, bounds, node.location, ctx);
  const window = windowOf(node.over, env);
  const orderBy = (window.orderClause ?? []).map((s) => {
    const sort = 'SortBy' in s ? s.SortBy : {};
    return sortKey(sort, bindValue(required(sort.node), inner), ctx);
  });
  const partitionBy = (window.partitionClause ?? []).map((p) => bindValue(p, inner));
  for (const key of [...partitionBy, ...sortExprs(orderBy)])
    requireComparable(key.type, ctx.locationOf(key) ?? node.location, ctx);
  return ctx.at(
    Object.freeze({
      kind: 'window',
      definition,
      args,
      filter: bindFilter(node, env),
      partitionBy: Object.freeze(partitionBy),
      orderBy: Object.freeze(orderBy),
      frame: frameOf(window, orderBy, insideCall(env, 'the frame of a window', false)),
      type,
    }),
    node.location,
  );
}

function windowOf(over: WindowDef | undefined, env: BindEnvironment): WindowDef {
  const { ctx } = env;
  if (over === undefined) return {};
  if (over.refname !== undefined)
    return extended(over, windowNamed(over.refname, over, env.namedWindows, ctx), ctx);
  return over.name === undefined ? over : windowNamed(over.name, over, env.namedWindows, ctx);
}

export function windowNamed(
  name: string,
  { location }: WindowDef,
  windows: BindEnvironment['namedWindows'],
  ctx: BindContext,
): WindowDef {
  const named = windows.get(name);
  if (named !== undefined) return named;
  const detail = `window \`${name}\` does not exist`;
  throw ctx.windowing(detail, location, `WINDOW ${name} AS (…)`);
}

const NONDEFAULT = 0x1;
const RANGE = 0x2;
const GROUPS = 0x8;
const START_UNBOUNDED_PRECEDING = 0x20;
const END_UNBOUNDED_FOLLOWING = 0x100;
const START_CURRENT_ROW = 0x200;
const END_CURRENT_ROW = 0x400;
const START_PRECEDING = 0x800;
const END_PRECEDING = 0x1000;
const START_FOLLOWING = 0x2000;
const END_FOLLOWING = 0x4000;
const EXCLUDE_CURRENT_ROW = 0x8000;
const EXCLUDE_GROUP = 0x10000;
const EXCLUDE_TIES = 0x20000;

/** Returns the type of a RANGE offset for the single sort key, following Postgres' `in_range` functions. */
function rangeOffset(
  written: TypeName | null,
  orderBy: readonly SortKey[],
  window: WindowDef,
  { ctx }: BindEnvironment,
): TypeName {
  const [key] = orderBy;
  const type = key !== undefined && orderBy.length === 1 && typeof key.by !== 'number' ? key.by.type : null;
  const offset = type === null ? undefined : DISTANCES.get(type);
  if (offset !== undefined)
    return isInteger(offset) && offset !== 'int8' && written !== null && isInteger(written)
      ? written
      : offset;
  const detail = 'RANGE with an offset needs one sort key, a number or a time';
  throw ctx.windowing(detail, window.location, 'use ROWS');
}

const DISTANCES: ReadonlyMap<TypeName, TypeName> = new Map<TypeName, TypeName>([
  ['int2', 'int2'],
  ['int4', 'int4'],
  ['int8', 'int8'],
  ['float4', 'float8'],
  ['float8', 'float8'],
  ['numeric', 'numeric'],
  ['date', 'interval'],
  ['time', 'interval'],
  ['timetz', 'interval'],
  ['timestamp', 'interval'],
  ['timestamptz', 'interval'],
  ['interval', 'interval'],
]);

function frameOf(window: WindowDef, orderBy: readonly SortKey[], env: BindEnvironment): WindowFrame | null {
  const bits = window.frameOptions ?? 0;
  if ((bits & NONDEFAULT) === 0) return null;
  const mode = (bits & RANGE) !== 0 ? 'range' : (bits & GROUPS) !== 0 ? 'groups' : 'rows';
  if (mode === 'groups' && orderBy.length === 0)
    throw env.ctx.windowing('GROUPS needs ORDER BY, which makes the groups', window.location, 'use ROWS');
  const offset = (node: WindowDef['startOffset']): Expr => {
    const bound = bindExpression(required(node), env);
    const type = mode === 'range' ? rangeOffset(typeOfBound(bound), orderBy, window, env) : 'int8';
    const count = coerce(bound, type, env.ctx);
    if (someExpr(count, (e) => e.kind === 'column')) {
      throw env.ctx.windowing('the offset of a frame must not hold columns', window.location);
    }
    return count;
  };
  const start: FrameBound =
    (bits & START_UNBOUNDED_PRECEDING) !== 0
      ? { kind: 'unbounded preceding' }
      : (bits & START_CURRENT_ROW) !== 0
        ? { kind: 'current row' }
        : {
            kind: (bits & START_PRECEDING) !== 0 ? 'preceding' : 'following',
            offset: offset(window.startOffset),
          };
  const end: FrameBound =
    (bits & END_UNBOUNDED_FOLLOWING) !== 0
      ? { kind: 'unbounded following' }
      : (bits & END_CURRENT_ROW) !== 0
        ? { kind: 'current row' }
        : (bits & (END_PRECEDING | END_FOLLOWING)) !== 0
          ? {
              kind: (bits & END_PRECEDING) !== 0 ? 'preceding' : 'following',
              offset: offset(window.endOffset),
            }
          : { kind: 'current row' };
  if ((bits & (START_FOLLOWING | START_PRECEDING | START_CURRENT_ROW | START_UNBOUNDED_PRECEDING)) === 0) {
    throw env.ctx.unsupported('this window frame', window.location);
  }
  return Object.freeze({
    mode,
    start: Object.freeze(start),
    end: Object.freeze(end),
    exclude: exclusion(bits),
  });
}

function exclusion(bits: number): WindowFrame['exclude'] {
  if ((bits & EXCLUDE_CURRENT_ROW) !== 0) return 'current row';
  if ((bits & EXCLUDE_GROUP) !== 0) return 'group';
  return (bits & EXCLUDE_TIES) !== 0 ? 'ties' : null;
}

/**
 * Extends window `base` by `window`, as in `(w ORDER BY … ROWS …)`. As in Postgres, PARTITION BY comes from the base,
 * ORDER BY may be added if the base has none, and a base with a frame cannot be extended.
 */
export function extended(window: WindowDef, base: WindowDef, ctx: BindContext): WindowDef {
  const { location } = window;
  const name = base.name ?? '';
  const fault =
    window.partitionClause !== undefined
      ? `window \`${name}\` has its PARTITION BY, which cannot be given again`
      : window.orderClause !== undefined && base.orderClause !== undefined
        ? `window \`${name}\` has its ORDER BY, which cannot be given again`
        : ((base.frameOptions ?? 0) & NONDEFAULT) !== 0
          ? `window \`${name}\` has a frame, so that no other can extend it`
          : null;
  if (fault !== null) throw ctx.windowing(fault, location);
  const { frameOptions, startOffset, endOffset } = window;
  const orderClause = window.orderClause ?? base.orderClause;
  return {
    ...(location === undefined ? {} : { location }),
    ...(frameOptions === undefined ? {} : { frameOptions }),
    ...(startOffset === undefined ? {} : { startOffset }),
    ...(endOffset === undefined ? {} : { endOffset }),
    ...(base.partitionClause === undefined ? {} : { partitionClause: base.partitionClause }),
    ...(orderClause === undefined ? {} : { orderClause }),
  };
}
