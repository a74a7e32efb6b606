import { safeText } from '../names.js';
import type { Part } from '../part.js';
import { NoMapping } from '../sql/expression.js';

/** Rejects unknown and empty keys, because they could stand for any restriction. */
export function mustKnow(part: Part, keys: readonly string[]): void {
  for (const key of part.keys()) {
    if (!keys.includes(key))
      throw new NoMapping(`\`${safeText(key)}\` of an access policy has no counterpart`);
    if (!part.has(key)) throw new NoMapping(`its \`${key}\` is empty`);
  }
}
