import type { Node, TypeName as TypeNode } from '@pgsql/types';
import type { BitNumber } from '../../plan/plan.js';
import type { TypeName } from '../../types/types.js';
import { integerOf, type Location, nameParts, required } from '../ast.js';
import type { Environment } from '../environment.js';
import { coerce } from './coerce.js';
import { bindExpression } from './expression.js';

/** How many bits an integer of the type has. */
const BITS: ReadonlyMap<TypeName, number> = new Map<TypeName, number>([
  ['int4', 32],
  ['int8', 64],
]);

/**
 * `text::bit(n)::bigint`, the way to read a number from hexadecimal digits (`'x' || md5(…)`): bits are no type of their
 * own, so the two casts are one. Null for any other cast.
 */
export function bindBitNumber(
  arg: Node | undefined,
  type: TypeName,
  location: Location,
  env: Environment,
): BitNumber | null {
  if (arg === undefined || !('TypeCast' in arg)) return null;
  const { ctx } = env;
  const most = BITS.get(type);
  const modifiers = arg.TypeCast.typeName?.typmods ?? [];
  const length = modifiers.length === 0 ? 1 : integerOf(modifiers[0]);
  if (most === undefined || length === null || modifiers.length > 1 || length < 1 || length > most) {
    const hint = 'bits are read as numbers: ::bit(64)::bigint, ::bit(32)::int';
    throw ctx.unsupported(`bit(${length ?? '…'}) as ${type}`, location, hint);
  }
  const bits = bindExpression(required(arg.TypeCast.arg), env);
  if (bits.kind !== 'untyped' && bits.type !== 'text') {
    throw ctx.mismatch(`a value of type ${bits.type} is no text of bits`, location, "write 'x' || md5(…)");
  }
  const text = coerce(bits, 'text', ctx);
  const number = Object.freeze({
    kind: 'bit_number',
    arg: text,
    length,
    type: type === 'int4' ? 'int4' : 'int8',
  });
  return ctx.at(number satisfies BitNumber, location);
}

/** Whether a value is cast to bits. */
export function isBitCast(node: Node | undefined): boolean {
  const type: TypeNode | undefined =
    node !== undefined && 'TypeCast' in node ? node.TypeCast.typeName : undefined;
  return nameParts(type?.names).join('.') === 'bit' && (type?.arrayBounds ?? []).length === 0;
}
