import { attributeScalars, attributeTexts } from '../attributes.js';
import { isName } from '../is-name.js';
import type { JsonObject } from '../tokens/strict-json.js';

/** Values of one claim that are looked at; who is in more groups than that is in none of them here. */
const MAX_VALUES = 256;

/** The claim of this name, or, where it begins with `/`, what the JSON pointer leads to (`/realm_access/roles`). */
export function claimAt(claims: JsonObject, path: string): unknown {
  if (!path.startsWith('/')) return claims.get(path);
  const [first = '', ...rest] = path
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'));
  return rest.reduce<unknown>(memberOf, claims.get(first));
}

function memberOf(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined;
  return Object.hasOwn(value, key) ? Reflect.get(value, key) : undefined;
}

/** The texts of a claim: one, or a list of them. Null for anything else: no value is made of what is none. */
export function textsOf(value: unknown): readonly string[] | null {
  if (typeof value === 'string') return isName(value) ? [value] : null;
  if (!Array.isArray(value) || value.length > MAX_VALUES) return null;
  const list: readonly unknown[] = value;
  return list.every(isName) ? [...new Set(list)] : null;
}

/** The values of a claim as an attribute has them: numbers and truth values are written out. Null for anything else. */
export function attributeIn(value: unknown): readonly string[] | null {
  const scalars = attributeScalars(value);
  return scalars === null ? null : textsOf(attributeTexts(scalars));
}

/** The text of a claim that has one; a whole number is written out. */
export function valueIn(value: unknown): string | null {
  if (typeof value === 'number') return Number.isSafeInteger(value) ? String(value) : null;
  return isName(value) ? value : null;
}

/** Whether `text` holds at least one claim between braces, and no brace beside. */
export function isTemplate(text: string): boolean {
  return /\{[^{}]+\}/.test(text) && !/[{}]/.test(text.replaceAll(/\{[^{}]+\}/g, ''));
}
