import { InternalError } from '../errors/errors.js';
import type { TypeName } from '../types/types.js';
import type { Resolution } from './candidates.js';
import type { FunctionDefinition, OperatorDefinition } from './definition.js';
import { resolveFunction, resolveOperator } from './resolve.js';

/**
 * The function that the compiler itself calls on arguments of these types.
 *
 * @throws InternalError where the language's table has none
 */
export function neededFunction(name: string, types: readonly TypeName[]): Resolution<FunctionDefinition> {
  const found = resolveFunction(name, types);
  if (typeof found === 'string') throw new InternalError(`${name}(${types.join(', ')}) is ${found}`);
  return found;
}

/**
 * The infix operator that the compiler itself uses on operands of these types.
 *
 * @throws InternalError where the language's table has none
 */
export function neededOperator(name: string, left: TypeName, right: TypeName): OperatorDefinition {
  const found = resolveOperator(name, left, right);
  if (typeof found === 'string') throw new InternalError(`${left} ${name} ${right} is ${found}`);
  return found.definition;
}
