import type { TypeName } from '../types/types.js';

/** Like `Map.groupBy`, which not all supported runtimes have. */
export function groupBy<K, T>(items: Iterable<T>, key: (item: T) => K): Map<K, T[]> {
  const groups = new Map<K, T[]>();
  for (const item of items) {
    const of = key(item);
    const group = groups.get(of);
    if (group === undefined) groups.set(of, [item]);
    else group.push(item);
  }
  return groups;
}

/** Deviations of an overload from the defaults: immutable, not leakproof, not variadic, no structural literal. */
export interface Traits {
  readonly stable?: boolean;
  readonly volatile?: boolean;
  readonly leakproof?: boolean;
  /** The type of each additional argument, if the function is variadic. */
  readonly variadic?: ArgumentType;
  /** Allowed values of the first argument, which makes it a structural literal. */
  readonly unit?: ReadonlySet<string>;
}

export const STABLE: Traits = Object.freeze({ stable: true });
export const LEAKPROOF: Traits = Object.freeze({ leakproof: true });

export const VOLATILE: Traits = Object.freeze({ volatile: true });

const PLAIN: Traits = Object.freeze({});
const NO_STRUCTURAL: ReadonlyMap<number, ReadonlySet<string>> = Object.freeze(new Map());

type Constructor = (
  name: string,
  args: readonly ArgumentType[],
  result: ResultType,
  traits?: Traits,
) => FunctionDefinition;

function constructorOf(kind: FunctionDefinition['kind']): Constructor {
  return (name, args, result, traits = PLAIN) =>
    Object.freeze({
      name,
      kind,
      arguments: Object.freeze([...args]),
      variadic: traits.variadic ?? null,
      result,
      volatility: traits.volatile === true ? 'volatile' : traits.stable === true ? 'stable' : 'immutable',
      leakproof: traits.leakproof === true,
      structural: traits.unit === undefined ? NO_STRUCTURAL : Object.freeze(new Map([[0, traits.unit]])),
    });
}

export const scalar = constructorOf('scalar');
export const aggregate = constructorOf('aggregate');
/** Defines an ordered-set aggregate (WITHIN GROUP), with the direct arguments before the aggregated one. */
export const orderedSet = constructorOf('ordered_set');
export const windowed = constructorOf('window');
export const setReturning = constructorOf('rows');

/** Defines scalar functions that have the same signature. */
export function scalars(
  names: readonly string[],
  args: readonly ArgumentType[],
  result: ResultType,
  traits?: Traits,
): readonly FunctionDefinition[] {
  return names.map((name) => scalar(name, args, result, traits));
}

/** Defines overloads that take `args` alone, or `args` and the first few of `further`. */
export function withOptional(
  name: string,
  args: readonly ArgumentType[],
  further: readonly ArgumentType[],
  result: ResultType,
  traits: Traits = PLAIN,
): readonly FunctionDefinition[] {
  return [args, ...further.map((_, i) => [...args, ...further.slice(0, i + 1)])].map((all) =>
    scalar(name, all, result, traits),
  );
}

export function infix(
  left: ArgumentType,
  name: string,
  right: ArgumentType,
  result: ResultType,
  traits: Traits = PLAIN,
): OperatorDefinition {
  return Object.freeze({ name, left, right, result, leakproof: traits.leakproof === true });
}

export function prefix(name: string, right: ArgumentType, result: ResultType): OperatorDefinition {
  return Object.freeze({ name, left: null, right, result, leakproof: false });
}

export function cast(
  from: TypeName,
  to: TypeName,
  context: CastDefinition['context'],
  traits: Traits = PLAIN,
): CastDefinition {
  return Object.freeze({ from, to, context, leakproof: traits.leakproof === true });
}

/**
 * Postgres' polymorphic types. `anyelement`, `anynonarray` and `anyarray` share one element type per call; `anyrange`
 * and `anymultirange` are ranges over it; `anycompatible` and `anycompatiblearray` use the common type of all such
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

/** The declared type of an argument. `any` accepts an argument of any type. */
export type ArgumentType = TypeName | PolymorphicType | 'any';
export type ResultType = TypeName | PolymorphicType;

/** One overload of a function. It is emitted as `pg_catalog.<name>(…)`. */
export interface FunctionDefinition {
  readonly name: string;
  /** `rows`: a set-returning function; see `set-returning.ts` for its columns. */
  readonly kind: 'scalar' | 'aggregate' | 'ordered_set' | 'window' | 'rows';
  /** For an ordered-set aggregate, the direct arguments come before the aggregated one. */
  readonly arguments: readonly ArgumentType[];
  readonly variadic: ArgumentType | null;
  /** For a set-returning function with several columns, the type of the last one. */
  readonly result: ResultType;
  readonly volatility: 'immutable' | 'stable' | 'volatile';
  readonly leakproof: boolean;
  /**
   * Positions of arguments that must be literals, such as the unit of `date_trunc`, with the allowed lower-case
   * values. They are part of the plan's shape and emitted as text.
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
  /** Contexts in which the cast applies without CAST or `::`, as in `pg_cast.castcontext`. */
  readonly context: 'implicit' | 'assignment' | 'explicit';
  readonly leakproof: boolean;
}
