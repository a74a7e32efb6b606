import { TRUE } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { chooseOverload } from './call.js';
import { type Bound, coerce, typeOfBound } from './coerce.js';

const FUNCTIONS: ReadonlyMap<string, string> = new Map([
  ['@?', 'jsonb_path_exists'],
  ['@@', 'jsonb_path_match'],
]);

/** `doc @? path` and `doc @@ path` of jsonb, as the functions that they are, with errors silent. Null of anything else. */
export function bindPathOperator(
  name: string,
  left: Bound,
  right: Bound,
  at: Location,
  ctx: BindContext,
): Expr | null {
  const called = FUNCTIONS.get(name);
  if (called === undefined || left.kind === 'untyped' || typeOfBound(left) !== 'jsonb') return null;
  const path = right.kind === 'untyped' || right.type === 'text' ? coerce(right, 'text', ctx) : null;
  if (path?.kind !== 'parameter')
    throw ctx.unsupported('a path that is no constant', at, 'write the path as text');
  const given = [left, path, ctx.constant('{}', 'jsonb'), TRUE];
  const { definition, args, type } = chooseOverload(called, given, at, ctx);
  return ctx.at(Object.freeze({ kind: 'call', definition, args, type }), at);
}
