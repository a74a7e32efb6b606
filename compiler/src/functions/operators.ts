import { FLOATS, INTEGERS, MOMENTS, NUMBERS, type TypeName } from '../types/types.js';
import {
  type ArgumentType,
  infix,
  LEAKPROOF,
  type OperatorDefinition,
  prefix,
  type Traits,
} from './define.js';

/** Defines an operator over all pairs of `types`, which are listed narrowest first. The result has the wider type. */
function overPairs(name: string, types: readonly TypeName[]): readonly OperatorDefinition[] {
  return types.flatMap((left, i) => types.map((right, j) => infix(left, name, right, i < j ? right : left)));
}

function within(name: string, types: readonly TypeName[]): readonly OperatorDefinition[] {
  return types.map((type) => infix(type, name, type, type));
}

function prefixes(name: string, types: readonly TypeName[]): readonly OperatorDefinition[] {
  return types.map((type) => prefix(name, type, type));
}

/** Defines the six comparisons of two types. They are leakproof only if `traits` says so, as in Postgres. */
function comparison(left: ArgumentType, right: ArgumentType, traits?: Traits): readonly OperatorDefinition[] {
  return ['=', '<>', '<', '<=', '>', '>='].map((name) => infix(left, name, right, 'bool', traits));
}

function comparisons(types: readonly ArgumentType[], traits?: Traits): readonly OperatorDefinition[] {
  return types.flatMap((type) => comparison(type, type, traits));
}

function comparisonsAcross(types: readonly TypeName[], traits?: Traits): readonly OperatorDefinition[] {
  return types.flatMap((left) =>
    types.filter((right) => right !== left).flatMap((right) => comparison(left, right, traits)),
  );
}

const COMPARISONS: readonly OperatorDefinition[] = [
  ...comparisons(['bool', ...INTEGERS, ...FLOATS], LEAKPROOF),
  ...comparisons(['numeric']),
  ...comparisons(['text', 'bpchar', 'uuid', 'date', 'time', 'timestamp', 'timestamptz'], LEAKPROOF),
  ...comparisons(['interval', 'bytea'], LEAKPROOF),
  ...comparisons(['jsonb', 'anyarray']),
  ...comparisons(['inet', 'macaddr', 'macaddr8', 'money', 'timetz', 'varbit'], LEAKPROOF),
  // tsquery is missing: comparing large ones fails with "tsquery stack too small".
  ...comparisons(['anyrange', 'anymultirange', 'tsvector']),
  ...comparisonsAcross(INTEGERS, LEAKPROOF),
  ...comparisonsAcross(FLOATS, LEAKPROOF),
  ...comparisonsAcross(MOMENTS),
];

function arithmetic(name: string): readonly OperatorDefinition[] {
  return [...overPairs(name, INTEGERS), ...overPairs(name, FLOATS), ...within(name, ['numeric'])];
}

const ARITHMETIC: readonly OperatorDefinition[] = [
  ...arithmetic('+'),
  ...prefixes('+', NUMBERS),
  ...arithmetic('-'),
  ...prefixes('-', NUMBERS),
  ...arithmetic('*'),
  ...arithmetic('/'),
  ...within('%', [...INTEGERS, 'numeric']),
  ...within('^', ['float8', 'numeric']),
  ...prefixes('@', NUMBERS),
  ...prefixes('|/', ['float8']),
  ...prefixes('||/', ['float8']),
];

const DATETIME: readonly OperatorDefinition[] = [
  infix('int4', '+', 'date', 'date'),
  infix('date', '+', 'int4', 'date'),
  infix('date', '+', 'time', 'timestamp'),
  infix('date', '+', 'interval', 'timestamp'),
  infix('time', '+', 'date', 'timestamp'),
  infix('time', '+', 'interval', 'time'),
  infix('timestamp', '+', 'interval', 'timestamp'),
  infix('timestamptz', '+', 'interval', 'timestamptz'),
  infix('interval', '+', 'date', 'timestamp'),
  infix('interval', '+', 'time', 'time'),
  infix('interval', '+', 'timestamp', 'timestamp'),
  infix('interval', '+', 'timestamptz', 'timestamptz'),
  infix('interval', '+', 'interval', 'interval'),
  infix('timetz', '+', 'interval', 'timetz'),
  infix('interval', '+', 'timetz', 'timetz'),
  infix('timetz', '-', 'interval', 'timetz'),
  infix('date', '+', 'timetz', 'timestamptz'),
  infix('timetz', '+', 'date', 'timestamptz'),
  infix('date', '-', 'int4', 'date'),
  infix('date', '-', 'date', 'int4'),
  infix('date', '-', 'interval', 'timestamp'),
  infix('time', '-', 'time', 'interval'),
  infix('time', '-', 'interval', 'time'),
  infix('timestamp', '-', 'timestamp', 'interval'),
  infix('timestamp', '-', 'interval', 'timestamp'),
  infix('timestamptz', '-', 'timestamptz', 'interval'),
  infix('timestamptz', '-', 'interval', 'timestamptz'),
  infix('interval', '-', 'interval', 'interval'),
  prefix('-', 'interval', 'interval'),
  infix('float8', '*', 'interval', 'interval'),
  infix('interval', '*', 'float8', 'interval'),
  infix('interval', '/', 'float8', 'interval'),
];

const BITS: readonly OperatorDefinition[] = [
  ...within('&', INTEGERS),
  ...within('|', INTEGERS),
  ...within('#', INTEGERS),
  ...INTEGERS.map((type) => infix(type, '<<', 'int4', type)),
  ...INTEGERS.map((type) => infix(type, '>>', 'int4', type)),
  ...prefixes('~', INTEGERS),
];

function pattern(name: string): readonly OperatorDefinition[] {
  return [infix('text', name, 'text', 'bool'), infix('bpchar', name, 'text', 'bool')];
}

/** `~~` is LIKE and `~~*` is ILIKE. */
const TEXT: readonly OperatorDefinition[] = [
  infix('text', '||', 'text', 'text'),
  infix('text', '||', 'anynonarray', 'text'),
  infix('anynonarray', '||', 'text', 'text'),
  infix('bytea', '||', 'bytea', 'bytea'),
  infix('text', '^@', 'text', 'bool', LEAKPROOF),
  ...['~~', '!~~'].flatMap((name) => [...pattern(name), infix('bytea', name, 'bytea', 'bool')]),
  ...['~~*', '!~~*', '~', '!~', '~*', '!~*'].flatMap(pattern),
];

const ARRAYS: readonly OperatorDefinition[] = [
  infix('anycompatible', '||', 'anycompatiblearray', 'anycompatiblearray'),
  infix('anycompatiblearray', '||', 'anycompatible', 'anycompatiblearray'),
  infix('anycompatiblearray', '||', 'anycompatiblearray', 'anycompatiblearray'),
  infix('anyarray', '@>', 'anyarray', 'bool'),
  infix('anyarray', '<@', 'anyarray', 'bool'),
  infix('anyarray', '&&', 'anyarray', 'bool'),
];

function jsonMembers(json: 'json' | 'jsonb'): readonly OperatorDefinition[] {
  return [
    ...(['int4', 'text'] as const).map((key) => infix(json, '->', key, json)),
    ...(['int4', 'text'] as const).map((key) => infix(json, '->>', key, 'text')),
    infix(json, '#>', 'text[]', json),
    infix(json, '#>>', 'text[]', 'text'),
  ];
}

const JSONB: readonly OperatorDefinition[] = [
  ...jsonMembers('jsonb'),
  infix('jsonb', '@>', 'jsonb', 'bool'),
  infix('jsonb', '<@', 'jsonb', 'bool'),
  infix('jsonb', '?', 'text', 'bool'),
  infix('jsonb', '?|', 'text[]', 'bool'),
  infix('jsonb', '?&', 'text[]', 'bool'),
  infix('jsonb', '||', 'jsonb', 'jsonb'),
  infix('jsonb', '-', 'int4', 'jsonb'),
  infix('jsonb', '-', 'text', 'jsonb'),
  infix('jsonb', '-', 'text[]', 'jsonb'),
  infix('jsonb', '#-', 'text[]', 'jsonb'),
];

const NETWORKS: readonly OperatorDefinition[] = [
  ...['<<', '<<=', '>>', '>>=', '&&'].map((name) => infix('inet', name, 'inet', 'bool')),
  ...['&', '|'].flatMap((name) => within(name, ['inet', 'macaddr', 'macaddr8'])),
  ...prefixes('~', ['inet', 'macaddr', 'macaddr8']),
  infix('inet', '+', 'int8', 'inet'),
  infix('int8', '+', 'inet', 'inet'),
  infix('inet', '-', 'int8', 'inet'),
  infix('inet', '-', 'inet', 'int8'),
];

const SUMS: readonly OperatorDefinition[] = [
  ...within('+', ['money']),
  ...within('-', ['money']),
  infix('money', '/', 'money', 'float8'),
  ...[...INTEGERS, ...FLOATS].flatMap((type) => [
    infix('money', '*', type, 'money'),
    infix(type, '*', 'money', 'money'),
    infix('money', '/', type, 'money'),
  ]),
];

const SPANS = ['anyrange', 'anymultirange'] as const;

const RANGES: readonly OperatorDefinition[] = [
  ...['&&', '@>', '<@', '<<', '>>', '&<', '&>', '-|-'].flatMap((name) =>
    SPANS.flatMap((left) => SPANS.map((right) => infix(left, name, right, 'bool'))),
  ),
  ...SPANS.flatMap((span) => [
    infix(span, '@>', 'anyelement', 'bool'),
    infix('anyelement', '<@', span, 'bool'),
    ...['+', '-', '*'].map((name) => infix(span, name, span, span)),
  ]),
];

const SEARCH: readonly OperatorDefinition[] = [
  infix('tsvector', '@@', 'tsquery', 'bool'),
  infix('tsquery', '@@', 'tsvector', 'bool'),
  infix('text', '@@', 'tsquery', 'bool'),
  infix('text', '@@', 'text', 'bool'),
  infix('tsvector', '||', 'tsvector', 'tsvector'),
  ...within('||', ['tsquery']),
  ...within('&&', ['tsquery']),
  ...prefixes('!!', ['tsquery']),
  infix('tsquery', '@>', 'tsquery', 'bool'),
  infix('tsquery', '<@', 'tsquery', 'bool'),
];

/** All infix and prefix operators. AND, OR, NOT, IN, IS and BETWEEN are handled by the grammar. */
export const OPERATORS: readonly OperatorDefinition[] = Object.freeze([
  ...COMPARISONS,
  ...ARITHMETIC,
  ...DATETIME,
  ...BITS,
  ...TEXT,
  ...ARRAYS,
  ...JSONB,
  ...NETWORKS,
  ...SUMS,
  ...RANGES,
  ...SEARCH,
  ...jsonMembers('json'),
]);
