import type { Node } from '@pgsql/types';
import type { Expr } from '../../plan/plan.js';
import { constantText, type Location, nameParts } from '../ast.js';
import type { Environment } from '../environment.js';
import { bindValue } from './expression.js';
import { equalityOf } from './infix.js';

/** The name in `attribute('name')`, or null where `node` is something else or stands in a query. */
export function attributeArgument(node: Node, env: Environment): string | null {
  if (!env.policy || !('FuncCall' in node)) return null;
  const call = node.FuncCall;
  if (nameParts(call.funcname).join('.') !== 'attribute') return null;
  const arg = call.args?.[0];
  const name = arg === undefined || call.args?.length !== 1 ? null : constantText(arg);
  if (name === null) {
    throw env.ctx.mismatch('attribute() takes one quoted name', call.location, "attribute('region')");
  }
  return name;
}

/** `value = attribute('name')`: true if the value is one of the attribute's. */
export function bindAttributeMatch(
  value: Node,
  attribute: string,
  location: Location,
  env: Environment,
): Expr {
  const arg = bindValue(value, env);
  const equality = equalityOf(arg.type, location, env.ctx);
  return env.ctx.at(
    Object.freeze({ kind: 'attribute_match', arg, equality, attribute, subject: null, type: 'bool' }),
    location,
  );
}
