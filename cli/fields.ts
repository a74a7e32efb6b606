import { visible } from './output.js';

export type ReplyFields = Readonly<Record<string, unknown>>;

/** The objects in a list that a server sent; none where it sent something else. */
export function membersOf(value: unknown): readonly ReplyFields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

export function fieldsOf(value: unknown): ReplyFields {
  return typeof value === 'object' && value !== null ? { ...value } : {};
}

/** A value of a server's answer as it may stand on a terminal. */
export function textOf(value: unknown): string {
  return visible(typeof value === 'object' && value !== null ? JSON.stringify(value) : String(value ?? ''));
}

export function listOf(value: unknown): readonly string[] {
  return Array.isArray(value) ? value.map(textOf) : [];
}
