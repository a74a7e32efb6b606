import { InternalError } from '../errors/errors.js';
import type { TypeName } from '../types/types.js';
import { AGGREGATE_FUNCTIONS, WINDOW_FUNCTIONS } from './aggregate.js';
import {
  bindPolymorphic,
  type Category,
  categoryOf,
  concreteType,
  convertsImplicitly,
  isPolymorphic,
  isPreferred,
  type Operand,
} from './conversions.js';
import { DATETIME_FUNCTIONS } from './datetime.js';
import {
  type ArgumentType,
  type FunctionDefinition,
  groupBy,
  type OperatorDefinition,
  type ResultType,
} from './define.js';
import { OPERATORS } from './operators.js';
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
 * Resolves a function call by the types of its arguments. A null type means a literal of unknown type or an untyped
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
 * Resolves operator `name`. `left` is undefined for a prefix operator. Null stands for an operand of unknown type,
 * which is first assumed to have the type of the other operand. `argumentTypes` has one type per operand.
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

/** An overload that takes as many arguments as the call has. */
export interface OverloadCandidate<Definition> {
  readonly definition: Definition;
  readonly arguments: readonly ArgumentType[];
  readonly polymorphic: boolean;
  /** Result of resolving the call to this overload, if it does not depend on the arguments; otherwise null. */
  readonly concrete: ResolvedOverload<Definition> | null;
}

/** A resolved call. `argumentTypes` are the types to which the arguments must be converted. */
export interface ResolvedOverload<Definition> {
  readonly definition: Definition;
  readonly argumentTypes: readonly TypeName[];
  readonly result: TypeName;
}

export function candidate<D extends { readonly result: ResultType }>(
  definition: D,
  args: readonly ArgumentType[],
): OverloadCandidate<D> {
  const { result } = definition;
  const concrete = args.every(isConcrete) && isConcrete(result);
  return Object.freeze({
    definition,
    arguments: args,
    polymorphic: args.some(isPolymorphic),
    concrete: concrete ? Object.freeze({ definition, argumentTypes: args, result }) : null,
  });
}

function isConcrete(type: ArgumentType): type is TypeName {
  return type !== 'any' && !isPolymorphic(type);
}

function accepts(to: OverloadCandidate<unknown>, actual: readonly Operand[]): boolean {
  const declared = to.arguments;
  for (let i = 0; i < actual.length; i++) {
    const given = actual[i];
    const type = declared[i];
    if (type === undefined) return false;
    if (given === null || given === undefined || type === given || type === 'any' || isPolymorphic(type)) {
      continue;
    }
    // All types except `any` and the polymorphic ones are concrete.
    if (!convertsImplicitly(given, type as TypeName)) return false;
  }
  return !to.polymorphic || bindPolymorphic(declared, actual) !== null;
}

function best<D>(
  list: readonly OverloadCandidate<D>[],
  score: (c: OverloadCandidate<D>) => number,
): readonly OverloadCandidate<D>[] {
  let kept: OverloadCandidate<D>[] = [];
  let highest = -1;
  for (const each of list) {
    const points = score(each);
    if (points > highest) {
      kept = [each];
      highest = points;
    } else if (points === highest) {
      kept.push(each);
    }
  }
  return kept;
}

function count(
  actual: readonly Operand[],
  declared: readonly ArgumentType[],
  fits: (given: TypeName, type: ArgumentType) => boolean,
): number {
  let total = 0;
  for (let i = 0; i < actual.length; i++) {
    const given = actual[i];
    const type = declared[i];
    if (given !== null && given !== undefined && type !== undefined && fits(given, type)) total++;
  }
  return total;
}

function isExact(given: TypeName, type: ArgumentType): boolean {
  return given === type;
}

function isExactOrPreferred(given: TypeName, type: ArgumentType): boolean {
  return given === type || (isPreferred(type) && categoryOf(type) === categoryOf(given));
}

interface ArgumentSlot {
  readonly position: number;
  readonly category: Category;
  readonly preferred: boolean;
}

/** Returns the category at `position`: the one that all candidates share, else text if any has it, else null. */
function slotAt(position: number, list: readonly OverloadCandidate<unknown>[]): ArgumentSlot | null {
  let category: Category | null = null;
  let preferred = false;
  let conflict = false;
  for (const each of list) {
    const type = each.arguments[position];
    if (type === undefined) continue;
    const own = categoryOf(type);
    if (category === null) {
      category = own;
      preferred = isPreferred(type);
    } else if (own === category) {
      preferred ||= isPreferred(type);
    } else if (own === 'S') {
      category = own;
      preferred = isPreferred(type);
    } else {
      conflict = true;
    }
  }
  return category === null || (conflict && category !== 'S') ? null : { position, category, preferred };
}

/** Keeps the candidates whose types for unknown arguments are in the categories that `slotAt` finds, or else all. */
function byCategory<D>(
  list: readonly OverloadCandidate<D>[],
  actual: readonly Operand[],
): readonly OverloadCandidate<D>[] {
  const slots: ArgumentSlot[] = [];
  for (const [position, given] of actual.entries()) {
    if (given !== null) continue;
    const slot = slotAt(position, list);
    if (slot === null) return list;
    slots.push(slot);
  }
  const kept = list.filter((each) =>
    slots.every(({ position, category, preferred }) => {
      const type = each.arguments[position];
      return type !== undefined && categoryOf(type) === category && (!preferred || isPreferred(type));
    }),
  );
  return kept.length === 0 ? list : kept;
}

function onlyType(actual: readonly Operand[]): TypeName | null {
  let only: Operand = null;
  for (const given of actual) {
    if (given === null) continue;
    if (only !== null && only !== given) return null;
    only = given;
  }
  return only;
}

/**
 * Chooses an overload as Postgres does if none matches exactly (see the manual, "Operator Type Resolution" and
 * "Function Type Resolution"). Each step applies only while several candidates are left.
 */
export function selectCandidate<D>(
  all: readonly OverloadCandidate<D>[],
  actual: readonly Operand[],
): OverloadCandidate<D> | 'none' | 'ambiguous' {
  let list = all.filter((each) => accepts(each, actual));
  if (list.length <= 1) return list[0] ?? 'none';

  const narrow = (next: readonly OverloadCandidate<D>[]): OverloadCandidate<D> | undefined => {
    list = [...next];
    return list.length === 1 ? list[0] : undefined;
  };
  let chosen =
    narrow(best(list, (each) => count(actual, each.arguments, isExact))) ??
    narrow(best(list, (each) => count(actual, each.arguments, isExactOrPreferred)));
  if (chosen !== undefined) return chosen;
  if (!actual.includes(null)) return 'ambiguous';

  chosen = narrow(byCategory(list, actual));
  if (chosen !== undefined) return chosen;

  const only = onlyType(actual);
  if (only === null) return 'ambiguous';
  const assumed = actual.map(() => only);
  chosen = narrow(list.filter((each) => accepts(each, assumed)));
  return chosen ?? 'ambiguous';
}
