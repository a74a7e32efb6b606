import type { ExchangedMember } from '../identity.js';
import { isName, refuse } from '../tokens/token-fault.js';

/** Maximum number of attributes per subject, and of values in each list. */
const MAX_ATTRIBUTES = 64;
const MAX_VALUES = 256;

/** Builds the `exchange` claim of an exchanged token, with one entry per subject of the chain. */
export function membersClaim(members: readonly ExchangedMember[]): readonly object[] {
  return members.map(({ rule, roles, attributes, from = [] }) => ({
    ...(rule !== null && { rule }),
    roles: [...roles],
    ...(attributes.size > 0 && { attributes: Object.fromEntries(attributes) }),
    ...(from.length > 0 && { from: [...from] }),
  }));
}

/** Parses the `exchange` claim of a token that the exchange signed. Throws E3001. */
export function readMembers(value: unknown, chainLength: number): readonly ExchangedMember[] {
  if (!Array.isArray(value) || value.length !== chainLength) refuse('exchange');
  const members: readonly unknown[] = value;
  return Object.freeze(members.map(readMember));
}

function readMember(value: unknown): ExchangedMember {
  if (typeof value !== 'object' || value === null) refuse('exchange');
  const rule: unknown = Reflect.get(value, 'rule') ?? null;
  const roles = namesIn(Reflect.get(value, 'roles'));
  if (rule !== null && !isName(rule)) refuse('exchange');
  const attributes = readAttributes(Reflect.get(value, 'attributes') ?? {});
  return Object.freeze({ rule, roles, attributes, from: namesIn(Reflect.get(value, 'from') ?? []) });
}

function readAttributes(value: unknown): ReadonlyMap<string, readonly string[]> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) refuse('exchange');
  const entries: readonly (readonly [string, unknown])[] = Object.entries(value);
  if (entries.length > MAX_ATTRIBUTES) refuse('exchange');
  return new Map(entries.map(([name, values]) => [name, namesIn(values)]));
}

function namesIn(value: unknown): readonly string[] {
  if (!Array.isArray(value) || value.length > MAX_VALUES) refuse('exchange');
  const names: readonly unknown[] = value;
  if (!names.every(isName)) refuse('exchange');
  return Object.freeze([...names]);
}
