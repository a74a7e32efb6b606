/** Tolerant readers for JSON from third parties: a value of an unexpected type is read as null. */
import { isObject } from '../../src/base/is-object.js';

export type UncheckedObject = Readonly<Record<string, unknown>>;

export function objectAt(value: unknown, key: string): UncheckedObject | null {
  return asObject(memberOf(value, key));
}

/** Text without NUL, which Postgres cannot store; null if it is absent, blank or not text. */
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

/** Returns a list unchanged, any other value as a one-element list, and an empty list if the key is missing. */
export function listAt(value: unknown, key: string): readonly unknown[] {
  const member = memberOf(value, key);
  if (member === undefined || member === null) return [];
  return Array.isArray(member) ? member : [member];
}

/** The object encoded in `text`; null if it is anything else. */
export function parseObject(text: string): UncheckedObject | null {
  try {
    return asObject(JSON.parse(text.replace(/^\ufeff/, '')));
  } catch {
    return null;
  }
}
