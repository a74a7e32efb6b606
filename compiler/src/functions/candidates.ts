import type { TypeName } from '../types/types.js';
import { convertsImplicitly } from './casts.js';
import type { ArgumentType, ResultType } from './define.js';
import {
  bindPolymorphic,
  type Category,
  categoryOf,
  isPolymorphic,
  isPreferred,
  type Operand,
} from './polymorphic.js';

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

/** Returns the category that the candidates agree on at `position`, or text if any has it; null if they disagree. */
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

/** Keeps the candidates whose types for unknown arguments are in the agreed category. */
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
