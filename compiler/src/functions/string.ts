import { growing, LEAKPROOF, STABLE, scalar } from './define.js';
import type { FunctionDefinition } from './definition.js';

/** Functions whose last argument is the name of an encoding: text here, `name` in Postgres, which converts it unasked. */
export const ENCODING_FUNCTIONS: ReadonlySet<string> = new Set(['convert_from', 'convert_to']);

/** Text and bytea: case, length, slices, padding, search, digests. */
export const STRING_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  scalar('lower', ['text'], 'text'),
  scalar('upper', ['text'], 'text'),
  scalar('initcap', ['text'], 'text'),
  scalar('length', ['text'], 'int4'),
  scalar('length', ['bpchar'], 'int4'),
  scalar('length', ['bytea'], 'int4'),
  scalar('char_length', ['text'], 'int4'),
  scalar('char_length', ['bpchar'], 'int4'),
  scalar('character_length', ['text'], 'int4'),
  scalar('character_length', ['bpchar'], 'int4'),
  scalar('octet_length', ['text'], 'int4'),
  scalar('octet_length', ['bpchar'], 'int4'),
  scalar('octet_length', ['bytea'], 'int4'),
  scalar('bit_length', ['text'], 'int4'),
  scalar('bit_length', ['bytea'], 'int4'),

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
  scalar('left', ['text', 'int4'], 'text'),
  scalar('right', ['text', 'int4'], 'text'),
  scalar('overlay', ['text', 'text', 'int4'], 'text'),
  scalar('overlay', ['bytea', 'bytea', 'int4'], 'bytea'),
  scalar('overlay', ['text', 'text', 'int4', 'int4'], 'text'),
  scalar('overlay', ['bytea', 'bytea', 'int4', 'int4'], 'bytea'),

  ...growing('btrim', ['text'], ['text'], 'text'),
  scalar('btrim', ['bytea', 'bytea'], 'bytea'),
  ...growing('ltrim', ['text'], ['text'], 'text'),
  scalar('ltrim', ['bytea', 'bytea'], 'bytea'),
  ...growing('rtrim', ['text'], ['text'], 'text'),
  scalar('rtrim', ['bytea', 'bytea'], 'bytea'),
  ...growing('lpad', ['text', 'int4'], ['text'], 'text'),
  ...growing('rpad', ['text', 'int4'], ['text'], 'text'),

  scalar('replace', ['text', 'text', 'text'], 'text'),
  scalar('translate', ['text', 'text', 'text'], 'text'),
  scalar('reverse', ['text'], 'text'),
  scalar('repeat', ['text', 'int4'], 'text'),

  scalar('position', ['text', 'text'], 'int4'),
  scalar('position', ['bytea', 'bytea'], 'int4'),
  scalar('strpos', ['text', 'text'], 'int4'),
  scalar('starts_with', ['text', 'text'], 'bool', LEAKPROOF),
  scalar('split_part', ['text', 'text', 'int4'], 'text'),
  ...growing('string_to_array', ['text', 'text'], ['text'], 'text[]'),

  scalar('concat', ['any'], 'text', { stable: true, variadic: 'any' }),
  scalar('concat_ws', ['text', 'any'], 'text', { stable: true, variadic: 'any' }),
  scalar('format', ['text'], 'text', STABLE),
  scalar('format', ['text', 'any'], 'text', { stable: true, variadic: 'any' }),

  scalar('quote_ident', ['text'], 'text'),
  scalar('quote_literal', ['text'], 'text'),
  scalar('quote_literal', ['anyelement'], 'text', STABLE),
  scalar('quote_nullable', ['text'], 'text'),
  scalar('quote_nullable', ['anyelement'], 'text', STABLE),
  ...growing('parse_ident', ['text'], ['bool'], 'text[]'),
  scalar('unistr', ['text'], 'text'),

  scalar('ascii', ['text'], 'int4'),
  scalar('chr', ['int4'], 'text'),
  scalar('to_hex', ['int4'], 'text'),
  scalar('to_hex', ['int8'], 'text'),
  scalar('md5', ['text'], 'text', LEAKPROOF),
  scalar('md5', ['bytea'], 'text', LEAKPROOF),
  scalar('sha224', ['bytea'], 'bytea', LEAKPROOF),
  scalar('sha256', ['bytea'], 'bytea', LEAKPROOF),
  scalar('sha384', ['bytea'], 'bytea', LEAKPROOF),
  scalar('sha512', ['bytea'], 'bytea', LEAKPROOF),
  scalar('encode', ['bytea', 'text'], 'text'),
  scalar('decode', ['text', 'text'], 'bytea'),
  scalar('convert_from', ['bytea', 'text'], 'text', STABLE),
  scalar('convert_to', ['text', 'text'], 'bytea', STABLE),
  scalar('get_byte', ['bytea', 'int4'], 'int4'),
  scalar('set_byte', ['bytea', 'int4', 'int4'], 'bytea'),

  ...growing('normalize', ['text'], ['text'], 'text'),
  ...growing('is_normalized', ['text'], ['text'], 'bool'),

  scalar('like_escape', ['text', 'text'], 'text'),
  scalar('like_escape', ['bytea', 'bytea'], 'bytea'),
  ...growing('similar_to_escape', ['text'], ['text'], 'text'),
]);

/** Conversions that follow a template. */
export const FORMAT_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  scalar('to_char', ['int4', 'text'], 'text', STABLE),
  scalar('to_char', ['int8', 'text'], 'text', STABLE),
  scalar('to_char', ['float4', 'text'], 'text', STABLE),
  scalar('to_char', ['float8', 'text'], 'text', STABLE),
  scalar('to_char', ['numeric', 'text'], 'text', STABLE),
  scalar('to_char', ['timestamp', 'text'], 'text', STABLE),
  scalar('to_char', ['timestamptz', 'text'], 'text', STABLE),
  scalar('to_char', ['interval', 'text'], 'text', STABLE),
  scalar('to_date', ['text', 'text'], 'date', STABLE),
  scalar('to_timestamp', ['float8'], 'timestamptz'),
  scalar('to_timestamp', ['text', 'text'], 'timestamptz', STABLE),
  scalar('to_number', ['text', 'text'], 'numeric', STABLE),
]);

/** POSIX regular expressions; none that returns a set. */
export const REGEXP_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...growing('regexp_like', ['text', 'text'], ['text'], 'bool'),
  ...growing('regexp_count', ['text', 'text'], ['int4', 'text'], 'int4'),
  ...growing('regexp_instr', ['text', 'text'], ['int4', 'int4', 'int4', 'text', 'int4'], 'int4'),
  ...growing('regexp_substr', ['text', 'text'], ['int4', 'int4', 'text', 'int4'], 'text'),
  ...growing('regexp_match', ['text', 'text'], ['text'], 'text[]'),
  ...growing('regexp_replace', ['text', 'text', 'text'], ['int4'], 'text'),
  scalar('regexp_replace', ['text', 'text', 'text', 'text'], 'text'),
  ...growing('regexp_replace', ['text', 'text', 'text', 'int4', 'int4'], ['text'], 'text'),
  ...growing('regexp_split_to_array', ['text', 'text'], ['text'], 'text[]'),
]);
