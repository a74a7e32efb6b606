import {
  type AttributeMatch,
  couldBe,
  type Expr,
  isNumber,
  type Relation,
  type TypeName,
} from 'osl-compiler';
import type { Fault } from './problems.js';

/** An attribute value of a subject: a list of values, one of which must match, or `any`, which matches everything. */
export type AttributeValue = 'any' | readonly string[];

/** A single attribute value in a policy or claim. */
export type AttributeScalar = string | number | boolean;

/** Returns a scalar, or a list of scalars, as a list; null for anything else. */
export function attributeScalars(value: unknown): readonly AttributeScalar[] | null {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.every(isScalar) ? values : null;
}

function isScalar(value: unknown): value is AttributeScalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/** Converts values to distinct strings, the form in which they are compared; null if a number would lose precision. */
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

/** Cached comparisons, by expression (expressions are immutable) and by the definition of a function or operator. */
const MATCHES = new WeakMap<object, readonly AttributeMatch[]>();

/** Returns the attribute comparisons in an expression. Searches all properties of every node, so none is missed. */
function matchesIn(expression: object): readonly AttributeMatch[] {
  const cached = MATCHES.get(expression);
  if (cached !== undefined) return cached;
  const matches: AttributeMatch[] = [];
  search(expression, matches);
  MATCHES.set(expression, matches);
  return matches;
}

function search(value: object, matches: AttributeMatch[]): void {
  if (isMatch(value)) matches.push(value);
  for (const [key, inner] of Object.entries(value)) {
    if (typeof inner !== 'object' || inner === null) continue;
    if (key === 'definition') matches.push(...matchesIn(inner));
    else search(inner, matches);
  }
}

function isMatch(value: object): value is AttributeMatch {
  return 'kind' in value && value.kind === 'attribute_match';
}

/** A column that a filter compares with an attribute. */
interface AttributeColumn {
  readonly relation: string;
  /** Physical name of the column. */
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

/** Returns the columns, possibly cast, that filters compare with each attribute; other expressions are left out. */
export function comparedColumns(filters: Filters): ReadonlyMap<string, readonly AttributeColumn[]> {
  const columns = new Map<string, AttributeColumn[]>();
  for (const { relation, attribute, arg } of comparisonsIn(filters)) {
    const column = columnIn(arg);
    if (column !== null) columns.set(attribute, [...(columns.get(attribute) ?? []), { relation, column }]);
  }
  return columns;
}

interface FilterComparison extends Pick<AttributeMatch, 'attribute' | 'arg'> {
  /** The role whose grant has the filter; null for an attribute read from an entity, whose filter has no role. */
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

/** Returns the column if `expr` is a column or a cast of one; null for any other expression. */
function columnIn(expr: Expr): string | null {
  if (expr.kind === 'base') return expr.column;
  return expr.kind === 'cast' ? columnIn(expr.arg) : null;
}

const FILTER_ATTRIBUTES = new WeakMap<RoleFilters, ReadonlySet<string>>();

/** Returns the names of the attributes in the grant filters of a policy; only these affect rights. */
export function attributesIn({ roles }: { readonly roles: RoleFilters }): ReadonlySet<string> {
  const cached = FILTER_ATTRIBUTES.get(roles);
  if (cached !== undefined) return cached;
  const names = new Set<string>();
  for (const { grants } of roles.values())
    for (const { filter } of [...grants.values()].flat())
      if (filter !== null) for (const name of attributesOf(filter)) names.add(name);
  FILTER_ATTRIBUTES.set(roles, names);
  return names;
}

/** A filter's comparison of an attribute with a type that its value cannot have. */
interface TypeMismatch {
  readonly relation: string;
  readonly type: TypeName;
}

/** The types with which filters compare attributes. */
export class AttributeTypes {
  /** Attribute → type → role whose filters compare the two → a relation with such a filter. */
  readonly #compared = new Map<string, Map<TypeName, Map<string, string>>>();

  constructor(roles: RoleFilters, tableAttributes: Filters['tableAttributes']) {
    for (const { role, relation, attribute, arg } of comparisonsIn({ roles, tableAttributes }))
      for (const roleName of role === null ? roles.keys() : [role])
        this.#add(attribute, arg.type, roleName, relation);
  }

  /** Finds a filter that compares the attribute with another type; number types count as one. Null if there is none. */
  otherThan(attribute: string, type: TypeName): TypeMismatch | null {
    const isSameType = (other: TypeName): boolean => other === type || (isNumber(other) && isNumber(type));
    for (const [other, relationByRole] of this.#compared.get(attribute) ?? []) {
      const [relation] = relationByRole.values();
      if (!isSameType(other) && relation !== undefined) return { relation, type: other };
    }
    return null;
  }

  /** Finds a filter of `roles` that compares the attribute with a type that `value` cannot have, or returns null. */
  mismatch(roles: ReadonlySet<string>, attribute: string, value: AttributeScalar): TypeMismatch | null {
    for (const [type, relationByRole] of this.#compared.get(attribute) ?? []) {
      if (canHaveType(value, type)) continue;
      const role =
        roles.size < relationByRole.size
          ? [...roles].find((r) => relationByRole.has(r))
          : [...relationByRole.keys()].find((r) => roles.has(r));
      if (role !== undefined) return { relation: relationByRole.get(role) ?? '', type };
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
 * True if `value` can be a value of `type`. A number does not fit string types: `007` and `1.10` lose their zeros as
 * numbers, so they must be quoted.
 */
function canHaveType(value: AttributeScalar, type: TypeName): boolean {
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
  /** The column with the values; null if the value is true whenever `filter` selects a row. */
  readonly column: string | null;
  readonly type: TypeName;
  /** Selects the subject's rows by other attributes of the subject. */
  readonly filter: Expr;
  /** The attributes that `filter` names. */
  readonly needs: ReadonlySet<string>;
  /** Time in ms for which the values may be reused. */
  readonly maxAgeMs: number;
}

/** Attribute values read for the subjects of a chain, root first. An attribute without an entry is missing. */
export interface ReadAttributes {
  /** Equal keys mean equal values. */
  readonly key: string;
  readonly subjects: readonly ReadonlyMap<string, readonly string[]>[];
}
