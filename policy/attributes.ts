import type { AttributeMatch, Expr } from 'osl-compiler';

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
export function matchesIn(expression: object): readonly AttributeMatch[] {
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
interface ComparedColumn {
  readonly relation: string;
  /** Its physical name. */
  readonly column: string;
}

interface Filters {
  readonly roles: ReadonlyMap<
    string,
    { readonly grants: ReadonlyMap<string, readonly { readonly filter: Expr | null }[]> }
  >;
  readonly tableAttributes: ReadonlyMap<
    string,
    { readonly relation: { readonly name: string }; readonly filter: Expr }
  >;
}

/** The columns that filters of a policy compare with each attribute, by its name. Expressions over columns are left out. */
export function comparedColumns({
  roles,
  tableAttributes,
}: Filters): ReadonlyMap<string, readonly ComparedColumn[]> {
  const found = new Map<string, ComparedColumn[]>();
  const add = (relation: string, filter: Expr | null): void => {
    for (const { attribute, arg } of filter === null ? [] : matchesIn(filter)) {
      const column = columnIn(arg);
      if (column !== null) found.set(attribute, [...(found.get(attribute) ?? []), { relation, column }]);
    }
  };
  for (const { grants } of roles.values())
    for (const [relation, list] of grants) for (const { filter } of list) add(relation, filter);
  for (const { relation, filter } of tableAttributes.values()) add(relation.name, filter);
  return found;
}

/** The column that an expression is, through casts; null for any other. */
function columnIn(expr: Expr): string | null {
  if (expr.kind === 'base') return expr.column;
  return expr.kind === 'cast' ? columnIn(expr.arg) : null;
}
