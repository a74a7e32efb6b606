import type { Manifest } from './manifest.js';

const MOST_NAMED = 10;

/** What is said once of entities that have no primary key; null where all have one. */
export function keylessEntities({ catalog }: Pick<Manifest, 'catalog'>): string | null {
  const names = [...catalog.relations.values()]
    .filter((r) => r.kind === 'entity' && r.primaryKey.length === 0)
    .map((r) => `\`${r.name}\``);
  if (names.length === 0) return null;
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : '';
  const listed = names.slice(0, MOST_NAMED).join(', ');
  return `no primary key: ${listed}${more}; no TRAVERSE, no evidence, no order among equal rows`;
}
