import { couldBe, type Expr, isNumber, type TypeName } from 'osl-compiler';
import { type AttributeScalar, attributesOf, matchesIn } from './attributes.js';
import type { Fault } from './problems.js';
import type { TableAttribute } from './table-attribute.js';

type RoleFilters = ReadonlyMap<
  string,
  { readonly grants: ReadonlyMap<string, readonly { readonly filter: Expr | null }[]> }
>;

const NAMED = new WeakMap<RoleFilters, ReadonlySet<string>>();

/** The names of the attributes that the filters of a policy refer to; only these affect rights. */
export function attributesIn({ roles }: { readonly roles: RoleFilters }): ReadonlySet<string> {
  const known = NAMED.get(roles);
  if (known !== undefined) return known;
  const found = new Set<string>();
  for (const { grants } of roles.values())
    for (const { filter } of [...grants.values()].flat())
      if (filter !== null) for (const name of attributesOf(filter)) found.add(name);
  NAMED.set(roles, found);
  return found;
}

/** A filter's comparison of an attribute with a type that its value cannot have. */
export interface TypeMismatch {
  readonly relation: string;
  readonly type: TypeName;
}

/** The types that filters compare attributes with. */
export class AttributeTypes {
  /** Attribute → type → role whose filters compare the two → a relation with such a filter. */
  readonly #compared = new Map<string, Map<TypeName, Map<string, string>>>();

  constructor(roles: RoleFilters, tableAttributes: ReadonlyMap<string, TableAttribute>) {
    for (const [role, { grants }] of roles)
      for (const [relation, list] of grants)
        for (const { filter } of list)
          if (filter !== null)
            for (const { attribute, arg } of matchesIn(filter))
              this.#add(attribute, arg.type, role, relation);
    // Those that select a subject's rows of an entity concern whatever roles the subject has.
    for (const { filter, relation } of tableAttributes.values())
      for (const { attribute, arg } of matchesIn(filter)) {
        for (const role of roles.keys()) this.#add(attribute, arg.type, role, relation.name);
      }
  }

  /** Finds a filter that compares the attribute with another type than `type`. */
  otherThan(attribute: string, type: TypeName): TypeMismatch | null {
    const alike = (other: TypeName): boolean => other === type || (isNumber(other) && isNumber(type));
    for (const [other, comparing] of this.#compared.get(attribute) ?? []) {
      const [relation] = comparing.values();
      if (!alike(other) && relation !== undefined) return { relation, type: other };
    }
    return null;
  }

  /** Finds a filter of `roles` that compares the attribute with a type that `value` cannot have. */
  mismatch(roles: ReadonlySet<string>, attribute: string, value: AttributeScalar): TypeMismatch | null {
    for (const [type, comparing] of this.#compared.get(attribute) ?? []) {
      if (fits(value, type)) continue;
      const role =
        roles.size < comparing.size
          ? [...roles].find((r) => comparing.has(r))
          : [...comparing.keys()].find((r) => roles.has(r));
      if (role !== undefined) return { relation: comparing.get(role) ?? '', type };
    }
    return null;
  }

  #add(attribute: string, type: TypeName, role: string, relation: string): void {
    const types = this.#compared.get(attribute) ?? new Map<TypeName, Map<string, string>>();
    this.#compared.set(attribute, types);
    const roles = types.get(type) ?? new Map<string, string>();
    types.set(type, roles.set(role, relation));
  }
}

/**
 * A string fits any type whose values can be written as strings. A number does not fit string types, so that `007` and
 * `1.10` cannot be confused with other values.
 */
function fits(value: AttributeScalar, type: TypeName): boolean {
  if (typeof value === 'boolean') return type === 'bool';
  if (typeof value === 'number' && !isNumber(type)) return false;
  return couldBe(String(value), type);
}

export function mismatchFault(
  attribute: string,
  value: AttributeScalar,
  { relation, type }: TypeMismatch,
): Fault {
  const isGivenNumber = typeof value === 'number';
  if (typeof value === 'string' || (isGivenNumber && isNumber(type)))
    return {
      message: `a value of attribute \`${attribute}\` is no ${type}, which \`${relation}\` compares it with`,
    };
  return {
    message: `attribute \`${attribute}\` is ${isGivenNumber ? 'a number' : 'true or false'}, and \`${relation}\` compares it with ${type}`,
    hint: couldBe(String(value), type)
      ? 'put the value between quotes, as it is written in the database'
      : null,
  };
}
