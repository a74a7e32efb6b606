import { INTEGERS, NUMBERS, type TypeName } from '../types/types.js';
import { scalar, VOLATILE } from './define.js';
import type { FunctionDefinition } from './definition.js';

function within(name: string, types: readonly TypeName[], count = 1): readonly FunctionDefinition[] {
  return types.map((type) => scalar(name, new Array<TypeName>(count).fill(type), type));
}

const INEXACT = ['float8', 'numeric'] as const;
const ANGLES = ['sin', 'cos', 'tan', 'cot', 'asin', 'acos', 'atan'] as const;

export const MATH_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...within('abs', NUMBERS),
  ...['sign', 'ceil', 'ceiling', 'floor'].flatMap((name) => within(name, INEXACT)),
  ...['round', 'trunc'].flatMap((name) => [
    ...within(name, INEXACT),
    scalar(name, ['numeric', 'int4'], 'numeric'),
  ]),

  ...within('mod', [...INTEGERS, 'numeric'], 2),
  ...within('div', ['numeric'], 2),
  ...within('gcd', ['int4', 'int8', 'numeric'], 2),
  ...within('lcm', ['int4', 'int8', 'numeric'], 2),

  ...within('sqrt', INEXACT),
  ...within('cbrt', ['float8']),
  ...within('power', INEXACT, 2),
  ...within('pow', INEXACT, 2),
  ...within('exp', INEXACT),
  ...within('ln', INEXACT),
  ...within('log', INEXACT),
  ...within('log', ['numeric'], 2),
  ...within('log10', INEXACT),

  scalar('scale', ['numeric'], 'int4'),
  scalar('min_scale', ['numeric'], 'int4'),
  scalar('trim_scale', ['numeric'], 'numeric'),
  scalar('width_bucket', ['anycompatible', 'anycompatiblearray'], 'int4'),
  scalar('width_bucket', ['float8', 'float8', 'float8', 'int4'], 'int4'),
  scalar('width_bucket', ['numeric', 'numeric', 'numeric', 'int4'], 'int4'),

  // `setseed` is missing because database sessions are shared.
  scalar('random', [], 'float8', VOLATILE),
  scalar('pi', [], 'float8'),
  ...['degrees', 'radians', ...ANGLES].flatMap((name) => within(name, ['float8'])),
  ...within('atan2', ['float8'], 2),
  ...ANGLES.flatMap((name) => within(`${name}d`, ['float8'])),
  ...within('atan2d', ['float8'], 2),
  ...['sinh', 'cosh', 'tanh', 'asinh', 'acosh', 'atanh'].flatMap((name) => within(name, ['float8'])),

  scalar('bit_count', ['bytea'], 'int8'),
]);
