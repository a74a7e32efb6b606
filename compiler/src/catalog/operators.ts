import type { TypeName } from '../types/types.js';

/**
 * The type of an operator's argument. `labels` is a `text[]` or a jsonb array of `{label, description, examples}`;
 * `schema` is a JSON Schema of an object, as jsonb.
 */
export type OperatorArgumentType = 'text' | 'float8' | 'int4' | 'labels' | 'schema';

export interface OperatorArgument {
  /** The name in `name => value`. */
  readonly name: string;
  readonly type: OperatorArgumentType;
  /** True if the argument may also be passed by position, after the column. */
  readonly positional: boolean;
  /** True if the service derives a missing value from the query and the facet. */
  readonly worked: boolean;
  readonly default: number | string | null;
  /** Inclusive bounds of a number. */
  readonly min: number | null;
  readonly max: number | null;
}

export interface OperatorSignature {
  readonly class: 'encoder' | 'decoder';
  /** The arguments after the first, which is always the passage's `text`. */
  readonly arguments: readonly OperatorArgument[];
  readonly result: TypeName;
  /** A different result type that applies if this argument is given. */
  readonly resultWith: { readonly argument: string; readonly type: TypeName } | null;
  readonly nullable: boolean;
  /** Use of RETRIEVE's search query by the operator: never, or only if this argument is missing. */
  readonly query: 'never' | { readonly unless: string };
}

function argument(
  name: string,
  type: OperatorArgumentType,
  more: Partial<OperatorArgument> = {},
): OperatorArgument {
  const bare = { positional: false, worked: false, default: null, min: null, max: null };
  return Object.freeze({ name, type, ...bare, ...more });
}

function encoder(
  args: readonly OperatorArgument[],
  result: TypeName,
  more: Partial<OperatorSignature> = {},
): OperatorSignature {
  const bare = { resultWith: null, nullable: false, query: 'never' as const };
  return Object.freeze({ class: 'encoder', arguments: Object.freeze(args), result, ...bare, ...more });
}

function decoder(
  args: readonly OperatorArgument[],
  result: TypeName,
  resultWith: OperatorSignature['resultWith'] = null,
): OperatorSignature {
  return encoder(args, result, { class: 'decoder', nullable: true, resultWith });
}

const POSITIONAL = { positional: true } as const;
const WORKED = { positional: true, worked: true } as const;
const UNIT = { min: -1, max: 1 } as const;

/** The twelve operators. Names are in upper case here and are compared case-insensitively. */
export const OPERATORS = Object.freeze({
  SIMILARITY: encoder([argument('reference', 'text', POSITIONAL)], 'float8', {
    query: { unless: 'reference' },
  }),
  CLASSIFY: encoder([argument('labels', 'labels', WORKED), argument('min_score', 'float8', UNIT)], 'text', {
    nullable: true,
  }),
  TAG: encoder(
    [argument('labels', 'labels', WORKED), argument('threshold', 'float8', { default: 0.2, ...UNIT })],
    'text[]',
  ),
  RANK: encoder(
    [argument('query', 'text', POSITIONAL), argument('lambda', 'float8', { default: 1, min: 0, max: 1 })],
    'int4',
    { query: { unless: 'query' } },
  ),
  DEDUP: encoder([argument('threshold', 'float8', { default: 0.95, ...UNIT })], 'jsonb'),
  OUTLIER: encoder([argument('k', 'int4', { default: 5, min: 1, max: 1000 })], 'float8', { nullable: true }),
  CLUSTER: encoder([argument('k', 'int4', { default: 5, min: 1, max: 1000 })], 'int4'),
  EXTRACT: decoder([argument('schema', 'schema', WORKED)], 'jsonb'),
  SUMMARIZE: decoder(
    [
      argument('instruction', 'text', POSITIONAL),
      argument('max_words', 'int4', { default: 100, min: 1, max: 5000 }),
    ],
    'text',
  ),
  SCORE: decoder(
    [
      argument('rubric', 'text', WORKED),
      argument('min', 'float8', { default: 0 }),
      argument('max', 'float8', { default: 1 }),
    ],
    'float8',
  ),
  GENERATE: decoder([argument('instruction', 'text', WORKED), argument('schema', 'schema')], 'text', {
    argument: 'schema',
    type: 'jsonb',
  }),
  COMPLETE: decoder([argument('prompt', 'text', WORKED)], 'text'),
});

export type OperatorName = keyof typeof OPERATORS;
export type EncoderName = 'SIMILARITY' | 'CLASSIFY' | 'TAG' | 'RANK' | 'DEDUP' | 'OUTLIER' | 'CLUSTER';
export type DecoderName = Exclude<OperatorName, EncoderName>;

export function operatorNamed(name: string): OperatorName | null {
  const upper = name.toUpperCase();
  return Object.hasOwn(OPERATORS, upper) ? (upper as OperatorName) : null; // checked by hasOwn
}
