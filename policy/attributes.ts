import type { AttributeMatch, Expr } from 'osl-compiler';

/** Value of a subject's attribute: a list of which one must match, or `any`, which matches everything. */
export type AttributeValue = 'any' | readonly string[];

/** One value of an attribute, as a policy or a claim has it. */
export type AttributeScalar = string | number | boolean;

/** The values of an attribute that is a value or a list of them; null for anything else. */
export function attributeScalars(value: unknown): readonly AttributeScalar[] | null {
  const values: readonly unknown[] = Array.isArray(value) ? value : [value];
  return values.every(isScalar) ? values : null;
}

function isScalar(value: unknown): value is AttributeScalar {
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
}

/** The distinct texts of `values`, as they are compared; null where a number has more digits than were read exactly. */
export function attributeTexts(values: readonly AttributeScalar[]): readonly string[] | null {
  return values.every(isExact) ? Object.freeze([...new Set(values.map(String))]) : null;
}

/** A number of at most 15 significant digits is the one that was written; of a longer one nobody knows. */
function isExact(value: AttributeScalar): boolean {
  if (typeof value !== 'number') return true;
  if (Number.isInteger(value)) return Number.isSafeInteger(value);
  return Number.isFinite(value) && String(value).replace(/e.*$|\D/g, '').length <= 15;
}

/** Names of the attributes that a predicate refers to. */
export function attributesOf(predicate: Expr): ReadonlySet<string> {
  return new Set(matchesIn(predicate).map((m) => m.attribute));
}

/** Looks into everything that the predicate is made of, whatever its kind, so that no node can hide one. */
export function matchesIn(value: unknown): readonly AttributeMatch[] {
  if (typeof value !== 'object' || value === null) return [];
  const inner = Object.values(value).flatMap(matchesIn);
  return isMatch(value) ? [value, ...inner] : inner;
}

function isMatch(value: object): value is AttributeMatch {
  return 'kind' in value && value.kind === 'attribute_match';
}
