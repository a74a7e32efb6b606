import type { TypeName } from '../types.js';

/**
 * Postgres' polymorphic types. `anyelement`, `anynonarray` and `anyarray` bind to one element type per call;
 * `anycompatible` and `anycompatiblearray` bind to the common type that all such arguments convert to.
 */
export type PolymorphicType =
  | 'anyelement'
  | 'anynonarray'
  | 'anyarray'
  | 'anycompatible'
  | 'anycompatiblearray';

/** An argument's declared type; `any` takes each argument's own type. */
export type ArgumentType = TypeName | PolymorphicType | 'any';
export type ResultType = TypeName | PolymorphicType;

/** One overload. Emitted as `pg_catalog.<name>(…)`. */
export interface FunctionDefinition {
  /** Postgres' own name, lower case. */
  readonly name: string;
  readonly kind: 'scalar' | 'aggregate' | 'ordered_set' | 'window';
  /** For an ordered-set aggregate: the direct arguments, then the one of WITHIN GROUP. */
  readonly arguments: readonly ArgumentType[];
  /** Type of each further argument, or null where the function takes no more. */
  readonly variadic: ArgumentType | null;
  readonly result: ResultType;
  readonly volatility: 'immutable' | 'stable';
  readonly leakproof: boolean;
  /**
   * Positions whose literal belongs to the plan's shape and is emitted as text, with the closed, lower-case
   * set of values that it may have (the unit of `date_trunc`).
   */
  readonly structural: ReadonlyMap<number, ReadonlySet<string>>;
}

/** One operator overload; `left` is null for a prefix operator. */
export interface OperatorDefinition {
  readonly name: string;
  readonly left: ArgumentType | null;
  readonly right: ArgumentType;
  readonly result: ResultType;
  readonly leakproof: boolean;
}

export interface CastDefinition {
  readonly from: TypeName;
  readonly to: TypeName;
  /** Where Postgres applies it unasked; `explicit` casts need CAST or `::`. */
  readonly context: 'implicit' | 'assignment' | 'explicit';
  readonly leakproof: boolean;
}
