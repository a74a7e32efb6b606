import { INTEGERS, NUMBERS, type TypeName } from '../types/types.js';
import {
  type FunctionDefinition,
  LEAKPROOF,
  STABLE,
  scalar,
  scalars,
  VOLATILE,
  withOptional,
} from './define.js';

/** Functions whose last argument is an encoding. Its type in Postgres is `name`, to which text converts implicitly. */
export const ENCODING_FUNCTIONS: ReadonlySet<string> = new Set(['convert_from', 'convert_to']);

export const STRING_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...scalars(['lower', 'upper', 'initcap', 'reverse', 'quote_ident', 'unistr'], ['text'], 'text'),
  ...(['text', 'bpchar'] as const).flatMap((type) =>
    scalars(['length', 'char_length', 'character_length', 'octet_length'], [type], 'int4'),
  ),
  scalar('bit_length', ['text'], 'int4'),
  ...scalars(['length', 'octet_length', 'bit_length'], ['bytea'], 'int4'),

  scalar('substring', ['text', 'int4'], 'text'),
  scalar('substring', ['text', 'text'], 'text'),
  scalar('substring', ['bytea', 'int4'], 'bytea'),
  scalar('substring', ['text', 'int4', 'int4'], 'text'),
  scalar('substring', ['text', 'text', 'text'], 'text'),
  scalar('substring', ['bytea', 'int4', 'int4'], 'bytea'),
  scalar('substr', ['text', 'int4'], 'text'),
  scalar('substr', ['bytea', 'int4'], 'bytea'),
  scalar('substr', ['text', 'int4', 'int4'], 'text'),
  scalar('substr', ['bytea', 'int4', 'int4'], 'bytea'),
  ...scalars(['left', 'right', 'repeat'], ['text', 'int4'], 'text'),
  scalar('overlay', ['text', 'text', 'int4'], 'text'),
  scalar('overlay', ['bytea', 'bytea', 'int4'], 'bytea'),
  scalar('overlay', ['text', 'text', 'int4', 'int4'], 'text'),
  scalar('overlay', ['bytea', 'bytea', 'int4', 'int4'], 'bytea'),

  ...['btrim', 'ltrim', 'rtrim'].flatMap((name) => [
    ...withOptional(name, ['text'], ['text'], 'text'),
    scalar(name, ['bytea', 'bytea'], 'bytea'),
  ]),
  ...['lpad', 'rpad'].flatMap((name) => withOptional(name, ['text', 'int4'], ['text'], 'text')),

  ...scalars(['replace', 'translate'], ['text', 'text', 'text'], 'text'),
  ...scalars(['position', 'strpos'], ['text', 'text'], 'int4'),
  scalar('position', ['bytea', 'bytea'], 'int4'),
  scalar('starts_with', ['text', 'text'], 'bool', LEAKPROOF),
  scalar('split_part', ['text', 'text', 'int4'], 'text'),
  ...withOptional('string_to_array', ['text', 'text'], ['text'], 'text[]'),

  scalar('concat', ['any'], 'text', { stable: true, variadic: 'any' }),
  scalar('concat_ws', ['text', 'any'], 'text', { stable: true, variadic: 'any' }),
  scalar('format', ['text'], 'text', STABLE),
  scalar('format', ['text', 'any'], 'text', { stable: true, variadic: 'any' }),

  ...scalars(['quote_literal', 'quote_nullable'], ['text'], 'text'),
  ...scalars(['quote_literal', 'quote_nullable'], ['anyelement'], 'text', STABLE),
  ...withOptional('parse_ident', ['text'], ['bool'], 'text[]'),

  scalar('ascii', ['text'], 'int4'),
  scalar('chr', ['int4'], 'text'),
  scalar('to_hex', ['int4'], 'text'),
  scalar('to_hex', ['int8'], 'text'),
  scalar('md5', ['text'], 'text', LEAKPROOF),
  scalar('md5', ['bytea'], 'text', LEAKPROOF),
  ...scalars(['sha224', 'sha256', 'sha384', 'sha512'], ['bytea'], 'bytea', LEAKPROOF),
  scalar('encode', ['bytea', 'text'], 'text'),
  scalar('decode', ['text', 'text'], 'bytea'),
  scalar('convert_from', ['bytea', 'text'], 'text', STABLE),
  scalar('convert_to', ['text', 'text'], 'bytea', STABLE),
  scalar('get_byte', ['bytea', 'int4'], 'int4'),
  scalar('set_byte', ['bytea', 'int4', 'int4'], 'bytea'),

  ...withOptional('normalize', ['text'], ['text'], 'text'),
  ...withOptional('is_normalized', ['text'], ['text'], 'bool'),

  scalar('like_escape', ['text', 'text'], 'text'),
  scalar('like_escape', ['bytea', 'bytea'], 'bytea'),
  ...withOptional('similar_to_escape', ['text'], ['text'], 'text'),
]);

export const FORMAT_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...(['int4', 'int8', 'float4', 'float8', 'numeric', 'timestamp', 'timestamptz', 'interval'] as const).map(
    (type) => scalar('to_char', [type, 'text'], 'text', STABLE),
  ),
  scalar('to_date', ['text', 'text'], 'date', STABLE),
  scalar('to_timestamp', ['float8'], 'timestamptz'),
  scalar('to_timestamp', ['text', 'text'], 'timestamptz', STABLE),
  scalar('to_number', ['text', 'text'], 'numeric', STABLE),
]);

/** Regular expression functions that do not return sets. */
export const REGEXP_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...withOptional('regexp_like', ['text', 'text'], ['text'], 'bool'),
  ...withOptional('regexp_count', ['text', 'text'], ['int4', 'text'], 'int4'),
  ...withOptional('regexp_instr', ['text', 'text'], ['int4', 'int4', 'int4', 'text', 'int4'], 'int4'),
  ...withOptional('regexp_substr', ['text', 'text'], ['int4', 'int4', 'text', 'int4'], 'text'),
  ...withOptional('regexp_match', ['text', 'text'], ['text'], 'text[]'),
  ...withOptional('regexp_replace', ['text', 'text', 'text'], ['int4'], 'text'),
  scalar('regexp_replace', ['text', 'text', 'text', 'text'], 'text'),
  ...withOptional('regexp_replace', ['text', 'text', 'text', 'int4', 'int4'], ['text'], 'text'),
  ...withOptional('regexp_split_to_array', ['text', 'text'], ['text'], 'text[]'),
]);

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

  ...scalars(['scale', 'min_scale'], ['numeric'], 'int4'),
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
