import { visible } from './output.js';

export type Fields = Readonly<Record<string, unknown>>;

/** The objects in a list that a server sent; none where it sent something else. */
export function membersOf(value: unknown): readonly Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

export function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** A value of a server's answer as it may stand on a terminal. */
export function textOf(value: unknown): string {
  return visible(typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? ''));
}

export function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}
