import type { TypeName } from '../types/types.js';

/**
 * Postgres' polymorphic types. `anyelement`, `anynonarray` and `anyarray` bind to one element type per call;
 * `anyrange` and `anymultirange` to the ranges of it; `anycompatible` and `anycompatiblearray` bind to the common type
 * that all such arguments convert to.
 */
type PolymorphicType =
  | 'anyelement'
  | 'anynonarray'
  | 'anyarray'
  | 'anyrange'
  | 'anymultirange'
  | 'anycompatible'
  | 'anycompatiblearray';

/** An argument's declared type; `any` takes each argument's own type. */
export type ArgumentType = TypeName | PolymorphicType | 'any';
export type ResultType = TypeName | PolymorphicType;

/** One overload. Emitted as `pg_catalog.<name>(…)`. */
export interface FunctionDefinition {
  /** Postgres' own name, lower case. */
  readonly name: string;
  /** `rows` makes rows of its arguments; what their columns are called is in `rows.ts`. */
  readonly kind: 'scalar' | 'aggregate' | 'ordered_set' | 'window' | 'rows';
  /** For an ordered-set aggregate: the direct arguments, then the one of WITHIN GROUP. */
  readonly arguments: readonly ArgumentType[];
  /** Type of each further argument, or null where the function takes no more. */
  readonly variadic: ArgumentType | null;
  /** For a function that makes rows of several columns, the type of the last column. */
  readonly result: ResultType;
  /** A volatile function gives another value each time. */
  readonly volatility: 'immutable' | 'stable' | 'volatile';
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
  /** Contexts in which Postgres applies the cast implicitly; `explicit` casts need CAST or `::`. */
  readonly context: 'implicit' | 'assignment' | 'explicit';
  readonly leakproof: boolean;
}
