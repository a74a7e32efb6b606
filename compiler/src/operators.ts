import type { TypeName } from './types.js';

/** What an argument of an operator may be. `labels` is an array of texts or a jsonb array of label objects. */
export type OperatorArgumentType = 'text' | 'number' | 'integer' | 'labels' | 'json';

export interface OperatorArgument {
  readonly name: string;
  readonly type: OperatorArgumentType;
  readonly required: boolean;
  /** Whether it may be given by position; named arguments come after. */
  readonly positional: boolean;
}

/** A projection operator of OSL-SQL: a unary map over the passages of a RETRIEVE. */
export interface OperatorSignature {
  readonly name: string;
  /** Encoders compute from embeddings already there; decoders ask a language model. */
  readonly class: 'encoder' | 'decoder';
  readonly arguments: readonly OperatorArgument[];
  readonly result: TypeName;
}

const argument = (
  name: string,
  type: OperatorArgumentType,
  required: boolean,
  positional: boolean,
): OperatorArgument => Object.freeze({ name, type, required, positional });
const first = (name: string, type: OperatorArgumentType): OperatorArgument =>
  argument(name, type, true, true);
const maybe = (name: string, type: OperatorArgumentType): OperatorArgument =>
  argument(name, type, false, true);
const named = (name: string, type: OperatorArgumentType): OperatorArgument =>
  argument(name, type, false, false);

const operator = (
  name: string,
  operatorClass: 'encoder' | 'decoder',
  result: TypeName,
  ...args: readonly OperatorArgument[]
): OperatorSignature => Object.freeze({ name, class: operatorClass, arguments: Object.freeze(args), result });

export const OPERATOR_SIGNATURES: readonly OperatorSignature[] = Object.freeze([
  operator('similarity', 'encoder', 'float8', maybe('reference', 'text')),
  operator('classify', 'encoder', 'text', first('labels', 'labels'), named('min_score', 'number')),
  operator('tag', 'encoder', 'text[]', first('labels', 'labels'), named('threshold', 'number')),
  operator('rank', 'encoder', 'int4', maybe('query', 'text'), named('lambda', 'number')),
  operator('dedup', 'encoder', 'jsonb', named('threshold', 'number')),
  operator('outlier', 'encoder', 'float8', named('k', 'integer')),
  operator('cluster', 'encoder', 'int4', argument('k', 'integer', true, false)),
  operator('extract', 'decoder', 'jsonb', first('schema', 'json')),
  operator('summarize', 'decoder', 'text', maybe('instruction', 'text'), named('max_words', 'integer')),
  operator(
    'score',
    'decoder',
    'float8',
    first('rubric', 'text'),
    named('min', 'number'),
    named('max', 'number'),
  ),
  operator('generate', 'decoder', 'jsonb', first('instruction', 'text'), named('schema', 'json')),
  operator('complete', 'decoder', 'text', first('prompt', 'text')),
]);

const BY_NAME: ReadonlyMap<string, OperatorSignature> = new Map(OPERATOR_SIGNATURES.map((o) => [o.name, o]));

export function operatorNamed(name: string): OperatorSignature | null {
  return BY_NAME.get(name) ?? null;
}
