/** Careful reading of JSON that others wrote: whatever is not what it should be is null. */
import { isObject } from '../../src/base/is-object.js';

export type UncheckedObject = Readonly<Record<string, unknown>>;

export function objectAt(value: unknown, key: string): UncheckedObject | null {
  return asObject(memberOf(value, key));
}

/** Text without NUL, which Postgres cannot hold; null where it is absent, blank or no text. */
export function textAt(value: unknown, key: string): string | null {
  return asText(memberOf(value, key));
}

export function asText(value: unknown): string | null {
  if (typeof value !== 'string') return null;
  const text = value.replaceAll('\0', '').trim();
  return text === '' ? null : text;
}

export function asObject(value: unknown): UncheckedObject | null {
  return isObject(value) ? value : null;
}

export function memberOf(value: unknown, key: string): unknown {
  const object = asObject(value);
  return object !== null && Object.hasOwn(object, key) ? object[key] : undefined;
}

/** The value as a list: itself, or of one element, or empty. */
export function listAt(value: unknown, key: string): readonly unknown[] {
  const member = memberOf(value, key);
  if (member === undefined || member === null) return [];
  return Array.isArray(member) ? member : [member];
}

/** The object that `text` is, or null. */
export function parseObject(text: string): UncheckedObject | null {
  try {
    return asObject(JSON.parse(text.replace(/^\ufeff/, '')));
  } catch {
    return null;
  }
}
