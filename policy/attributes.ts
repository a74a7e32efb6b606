import type { Expr } from 'osl-compiler';

/**
 * Names of the attributes that a predicate refers to. Looks into everything that the predicate is made of, whatever
 * its kind, so that no node can hide one.
 */
export function attributesOf(predicate: Expr): ReadonlySet<string> {
  const found = new Set<string>();
  collect(predicate, found);
  return found;
}

function collect(value: unknown, found: Set<string>): void {
  if (typeof value !== 'object' || value === null) return;
  if ('kind' in value && value.kind === 'attribute_match' && 'attribute' in value)
    found.add(String(value.attribute));
  for (const part of Object.values(value)) collect(part, found);
}
