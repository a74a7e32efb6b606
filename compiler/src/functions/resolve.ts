import { InternalError } from '../errors/errors.js';
import type { TypeName } from '../types/types.js';
import { AGGREGATE_FUNCTIONS, WINDOW_FUNCTIONS } from './aggregate.js';
import { candidate, type OverloadCandidate, type ResolvedOverload, selectCandidate } from './candidates.js';
import { DATETIME_FUNCTIONS } from './datetime.js';
import {
  type ArgumentType,
  type FunctionDefinition,
  groupBy,
  type OperatorDefinition,
  type ResultType,
} from './define.js';
import { OPERATORS } from './operators.js';
import { bindPolymorphic, concreteType, type Operand } from './polymorphic.js';
import { FORMAT_FUNCTIONS, MATH_FUNCTIONS, REGEXP_FUNCTIONS, STRING_FUNCTIONS } from './scalar.js';
import { ARRAY_FUNCTIONS, CONDITIONAL_FUNCTIONS, ROW_FUNCTIONS } from './set-returning.js';
import { JSON_FUNCTIONS, PLACE_FUNCTIONS } from './special-types.js';

export const FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...STRING_FUNCTIONS,
  ...REGEXP_FUNCTIONS,
  ...MATH_FUNCTIONS,
  ...DATETIME_FUNCTIONS,
  ...FORMAT_FUNCTIONS,
  ...CONDITIONAL_FUNCTIONS,
  ...ARRAY_FUNCTIONS,
  ...JSON_FUNCTIONS,
  ...PLACE_FUNCTIONS,
  ...AGGREGATE_FUNCTIONS,
  ...WINDOW_FUNCTIONS,
  ...ROW_FUNCTIONS,
]);

export type FunctionResolution = ResolvedOverload<FunctionDefinition> | 'none' | 'ambiguous';
export type OperatorResolution = ResolvedOverload<OperatorDefinition> | 'none' | 'ambiguous';

function resolveCandidate<D extends { readonly result: ResultType }>(
  chosen: OverloadCandidate<D> | 'none' | 'ambiguous',
  actual: readonly Operand[],
): ResolvedOverload<D> | 'none' | 'ambiguous' {
  if (chosen === 'none' || chosen === 'ambiguous') return chosen;
  if (chosen.concrete !== null) return chosen.concrete;
  const binding = bindPolymorphic(chosen.arguments, actual);
  if (binding === null) return 'none';
  const result = concreteType(chosen.definition.result, binding);
  if (result === null) return 'none';
  const argumentTypes: TypeName[] = [];
  for (const [i, declared] of chosen.arguments.entries()) {
    const type = declared === 'any' ? (actual[i] ?? 'text') : concreteType(declared, binding);
    if (type === null) return 'none';
    argumentTypes.push(type);
  }
  return { definition: chosen.definition, argumentTypes, result };
}

function matches(declared: readonly ArgumentType[], actual: readonly Operand[]): boolean {
  for (let i = 0; i < declared.length; i++) if (declared[i] !== actual[i]) return false;
  return true;
}

interface NamedFunctions {
  readonly overloads: readonly FunctionDefinition[];
  readonly fixed: ReadonlyMap<number, readonly OverloadCandidate<FunctionDefinition>[]>;
  readonly variadic: readonly FunctionDefinition[];
}

const NO_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([]);
const NO_CANDIDATES: readonly OverloadCandidate<FunctionDefinition>[] = Object.freeze([]);

const FUNCTIONS_BY_NAME: ReadonlyMap<string, NamedFunctions> = new Map(
  [...groupBy(FUNCTIONS, (f) => f.name)].map(([name, overloads]) => {
    const candidates = overloads.filter((f) => f.variadic === null).map((f) => candidate(f, f.arguments));
    return [
      name,
      {
        overloads: Object.freeze(overloads),
        fixed: groupBy(candidates, (c) => c.arguments.length),
        variadic: overloads.filter((f) => f.variadic !== null),
      },
    ];
  }),
);

/** Returns the overloads of `name`, which must be in lower case; empty if there is no such function. */
export function functionsNamed(name: string): readonly FunctionDefinition[] {
  return FUNCTIONS_BY_NAME.get(name)?.overloads ?? NO_FUNCTIONS;
}

/** Returns the overloads that accept `arity` arguments, expanding variadic ones. */
function callable(named: NamedFunctions, arity: number): readonly OverloadCandidate<FunctionDefinition>[] {
  const fixed = named.fixed.get(arity) ?? NO_CANDIDATES;
  if (named.variadic.length === 0) return fixed;
  const expanded: OverloadCandidate<FunctionDefinition>[] = [];
  for (const definition of named.variadic) {
    const { arguments: declared, variadic } = definition;
    if (variadic === null || declared.length > arity) continue;
    const further = new Array<ArgumentType>(arity - declared.length).fill(variadic);
    expanded.push(candidate(definition, [...declared, ...further]));
  }
  return [...fixed, ...expanded];
}

/**
 * Resolves a function call by the types of its arguments. Null means a literal of unknown type or an untyped
 * parameter. Pass the direct arguments of an ordered-set aggregate before the aggregated one. Returns `none` if no
 * overload fits, and `ambiguous` if several fit equally well.
 */
export function resolveFunction(
  name: string,
  argTypes: readonly Operand[],
  kind?: FunctionDefinition['kind'],
): FunctionResolution {
  const named = FUNCTIONS_BY_NAME.get(name);
  if (named === undefined) return 'none';
  const all = callable(named, argTypes.length);
  const list = kind === undefined ? all : all.filter((c) => c.definition.kind === kind);
  const exact = list.find((c) => matches(c.arguments, argTypes));
  return resolveCandidate(exact ?? selectCandidate(list, argTypes), argTypes);
}

interface NamedOperators {
  readonly prefix: readonly OverloadCandidate<OperatorDefinition>[];
  readonly infix: readonly OverloadCandidate<OperatorDefinition>[];
  /** All overloads by their operand types; see `declaredFor`. */
  readonly exact: ReadonlyMap<string, OverloadCandidate<OperatorDefinition>>;
}

function declaredFor(left: ArgumentType | null, right: ArgumentType | null): string {
  return `${left} ${right}`;
}

const OPERATORS_BY_NAME: ReadonlyMap<string, NamedOperators> = new Map(
  [...groupBy(OPERATORS, (o) => o.name)].map(([name, overloads]) => {
    const prefix: OverloadCandidate<OperatorDefinition>[] = [];
    const infix: OverloadCandidate<OperatorDefinition>[] = [];
    for (const o of overloads) {
      if (o.left === null) prefix.push(candidate(o, [o.right]));
      else infix.push(candidate(o, [o.left, o.right]));
    }
    const exact = new Map(
      [...prefix, ...infix].map((c) => [declaredFor(c.definition.left, c.definition.right), c]),
    );
    return [name, { prefix, infix, exact }];
  }),
);

/**
 * Resolves operator `name`. `left` is undefined for a prefix operator. Null is an operand of unknown type, which is
 * first assumed to have the type of the other one. `argumentTypes` has one type per operand.
 */
export function resolveOperator(name: string, left: Operand | undefined, right: Operand): OperatorResolution {
  const named = OPERATORS_BY_NAME.get(name);
  if (named === undefined) return 'none';
  const exact = named.exact.get(
    left === undefined ? declaredFor(null, right) : declaredFor(left ?? right, right ?? left),
  );
  const list = left === undefined ? named.prefix : named.infix;
  const actual = left === undefined ? [right] : [left, right];
  return resolveCandidate(exact ?? selectCandidate(list, actual), actual);
}

/** Resolves a function call that the compiler generates. @throws InternalError if there is no such overload */
export function requireFunction(
  name: string,
  types: readonly TypeName[],
): ResolvedOverload<FunctionDefinition> {
  const found = resolveFunction(name, types);
  if (typeof found === 'string') throw new InternalError(`${name}(${types.join(', ')}) is ${found}`);
  return found;
}

/** Resolves an infix operator that the compiler generates. @throws InternalError if there is no such overload */
export function requireOperator(name: string, left: TypeName, right: TypeName): OperatorDefinition {
  const found = resolveOperator(name, left, right);
  if (typeof found === 'string') throw new InternalError(`${left} ${name} ${right} is ${found}`);
  return found.definition;
}
