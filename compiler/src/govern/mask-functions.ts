import type { FunctionDefinition } from '../functions/definition.js';
import { neededFunction, neededOperator } from '../functions/index.js';
import { callNode, operationNode } from '../plan/nodes.js';
import type { Expr } from '../plan/plan.js';
import type { TypeName } from '../types/types.js';

/** Functions that masks need and callers may not name. */
const PRIVATE: ReadonlyMap<string, FunctionDefinition> = new Map(
  (
    [
      ['sha256', ['bytea'], 'bytea'],
      ['convert_to', ['text', 'text'], 'bytea'],
      ['encode', ['bytea', 'text'], 'text'],
    ] as const
  ).map(([name, args, result]) => [
    name,
    Object.freeze({
      name,
      kind: 'scalar',
      arguments: Object.freeze([...args]),
      variadic: null,
      result,
      volatility: 'immutable',
      leakproof: false,
      structural: new Map(),
    } satisfies FunctionDefinition),
  ]),
);

/** A call that a mask makes; `name` must take exactly these types. */
export function maskCall(name: string, args: readonly Expr[]): Expr {
  const own = PRIVATE.get(name);
  if (own !== undefined) return callNode(own, args, own.result as TypeName); // no private function is polymorphic
  const types = args.map((a) => a.type);
  const { definition, result } = neededFunction(name, types);
  return callNode(definition, args, result);
}

/** `left || right`, both of `type`. */
export function textConcat(type: 'text' | 'bytea', left: Expr, right: Expr): Expr {
  return operationNode(neededOperator('||', type, type), left, right, type);
}
