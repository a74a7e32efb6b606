import type { TypeName } from '../types/types.js';

/**
 * Postgres' polymorphic types. `anyelement`, `anynonarray` and `anyarray` share one element type per call; `anyrange`
 * and `anymultirange` are ranges of it; `anycompatible` and `anycompatiblearray` share the common type of all such
 * arguments.
 */
type PolymorphicType =
  | 'anyelement'
  | 'anynonarray'
  | 'anyarray'
  | 'anyrange'
  | 'anymultirange'
  | 'anycompatible'
  | 'anycompatiblearray';

/** Declared type of an argument; `any` accepts each argument's own type. */
export type ArgumentType = TypeName | PolymorphicType | 'any';
export type ResultType = TypeName | PolymorphicType;

/** One overload of a function. Emitted as `pg_catalog.<name>(…)`. */
export interface FunctionDefinition {
  readonly name: string;
  /** `rows`: a set-returning function; see `rows.ts` for its columns. */
  readonly kind: 'scalar' | 'aggregate' | 'ordered_set' | 'window' | 'rows';
  /** Of an ordered-set aggregate: direct arguments, then the aggregated one. */
  readonly arguments: readonly ArgumentType[];
  readonly variadic: ArgumentType | null;
  /** For a set-returning function with several columns: type of the last one. */
  readonly result: ResultType;
  readonly volatility: 'immutable' | 'stable' | 'volatile';
  readonly leakproof: boolean;
  /**
   * Positions of arguments whose literal is part of the plan's shape and emitted as text, with the allowed lower-case
   * values (the unit of `date_trunc`).
   */
  readonly structural: ReadonlyMap<number, ReadonlySet<string>>;
}

/** One overload of an operator; `left` is null for a prefix operator. */
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
  /** As `pg_cast.castcontext`: where the cast applies without CAST or `::`. */
  readonly context: 'implicit' | 'assignment' | 'explicit';
  readonly leakproof: boolean;
}
