import {
  type AttributeMatch,
  couldBe,
  type Expr,
  isNumber,
  type Relation,
  type TypeName,
} from 'osl-compiler';
import type { Fault } from './problems.js';

/** An attribute value of a subject: a list, of which one must match, or `any`, which matches everything. */
export type AttributeValue = 'any' | readonly string[];

/** A single attribute value in a policy or claim. */
export type AttributeScalar = string | number | boolean;

/** The values of a scalar or a list of scalars; null for anything else. */
export function attributeScalars(value: unknown): readonly AttributeScalar[] | null {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.every(isScalar) ? values : null;
}

function isScalar(value: unknown): value is AttributeScalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/** The distinct values as strings, the form in which they are compared; null if a number would lose precision. */
export function attributeTexts(values: readonly AttributeScalar[]): readonly string[] | null {
  return values.every(isExact) ? Object.freeze([...new Set(values.map(String))]) : null;
}

/** False for a number whose digits a double may not preserve: an unsafe integer, or over 15 significant digits. */
function isExact(value: AttributeScalar): boolean {
  if (typeof value !== 'number') return true;
  if (Number.isInteger(value)) return Number.isSafeInteger(value);
  return Number.isFinite(value) && String(value).replace(/e.*$|\D/g, '').length <= 15;
}

export function attributesOf(predicate: Expr): ReadonlySet<string> {
  return new Set(matchesIn(predicate).map((m) => m.attribute));
}

/** Results by expression, which is immutable, and by definition of a function or operator. */
const MATCHES = new WeakMap<object, readonly AttributeMatch[]>();

/** The attribute comparisons in an expression. Searches all properties of every node kind, so that none is missed. */
function matchesIn(expression: object): readonly AttributeMatch[] {
  const known = MATCHES.get(expression);
  if (known !== undefined) return known;
  const found: AttributeMatch[] = [];
  search(expression, found);
  MATCHES.set(expression, found);
  return found;
}

function search(value: object, found: AttributeMatch[]): void {
  if (isMatch(value)) found.push(value);
  for (const [key, inner] of Object.entries(value)) {
    if (typeof inner !== 'object' || inner === null) continue;
    if (key === 'definition') found.push(...matchesIn(inner));
    else search(inner, found);
  }
}

function isMatch(value: object): value is AttributeMatch {
  return 'kind' in value && value.kind === 'attribute_match';
}

/** A column that a filter compares with an attribute. */
interface AttributeColumn {
  readonly relation: string;
  /** Its physical name. */
  readonly column: string;
}

type RoleFilters = ReadonlyMap<
  string,
  { readonly grants: ReadonlyMap<string, readonly { readonly filter: Expr | null }[]> }
>;

interface Filters {
  readonly roles: RoleFilters;
  readonly tableAttributes: ReadonlyMap<
    string,
    { readonly relation: { readonly name: string }; readonly filter: Expr }
  >;
}

/** The columns that filters of a policy compare with each attribute, by its name. Expressions over columns are left out. */
export function comparedColumns(filters: Filters): ReadonlyMap<string, readonly AttributeColumn[]> {
  const found = new Map<string, AttributeColumn[]>();
  for (const { relation, attribute, arg } of comparisonsIn(filters)) {
    const column = columnIn(arg);
    if (column !== null) found.set(attribute, [...(found.get(attribute) ?? []), { relation, column }]);
  }
  return found;
}

interface FilterComparison extends Pick<AttributeMatch, 'attribute' | 'arg'> {
  /** Null for a filter that selects a subject's rows of an entity, whatever roles the subject has. */
  readonly role: string | null;
  readonly relation: string;
}

/** The comparisons with attributes in all filters of a policy. */
function* comparisonsIn({ roles, tableAttributes }: Filters): Generator<FilterComparison> {
  for (const [role, { grants }] of roles)
    for (const [relation, list] of grants)
      for (const { filter } of list)
        if (filter !== null)
          for (const { attribute, arg } of matchesIn(filter)) yield { role, relation, attribute, arg };
  for (const { relation, filter } of tableAttributes.values())
    for (const { attribute, arg } of matchesIn(filter))
      yield { role: null, relation: relation.name, attribute, arg };
}

/** The column that an expression is, through casts; null for any other. */
function columnIn(expr: Expr): string | null {
  if (expr.kind === 'base') return expr.column;
  return expr.kind === 'cast' ? columnIn(expr.arg) : null;
}

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
interface TypeMismatch {
  readonly relation: string;
  readonly type: TypeName;
}

/** The types that filters compare attributes with. */
export class AttributeTypes {
  /** Attribute → type → role whose filters compare the two → a relation with such a filter. */
  readonly #compared = new Map<string, Map<TypeName, Map<string, string>>>();

  constructor(roles: RoleFilters, tableAttributes: Filters['tableAttributes']) {
    for (const { role, relation, attribute, arg } of comparisonsIn({ roles, tableAttributes }))
      for (const one of role === null ? roles.keys() : [role]) this.#add(attribute, arg.type, one, relation);
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

/** An attribute whose values are read from an entity for each subject. Frozen. */
export interface TableAttribute {
  readonly name: string;
  readonly relation: Relation;
  /** Null: the value is true if there is a row. */
  readonly column: string | null;
  readonly type: TypeName;
  /** Selects the subject's rows by other attributes of the subject. */
  readonly filter: Expr;
  /** The attributes that `filter` names. */
  readonly needs: ReadonlySet<string>;
  /** Time in ms for which values may be used again. */
  readonly maxAgeMs: number;
}

/** Values read for the subjects of a chain, root first; a missing name is a missing attribute. */
export interface ReadAttributes {
  /** Equal keys mean equal values. */
  readonly key: string;
  readonly subjects: readonly ReadonlyMap<string, readonly string[]>[];
}
