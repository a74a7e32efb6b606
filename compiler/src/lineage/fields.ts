import type { Relation } from '../catalog/catalog.js';
import { InternalError } from '../errors/errors.js';

/** A column as the semantic graph names it. */
export interface Field {
  readonly object: string;
  readonly column: string;
}

/** What a facet's store keeps of a passage, by what readers know it as; everything else in it is made from its text. */
const STORED: ReadonlyMap<string, string> = new Map([
  ['chunk_id', 'cite'],
  ['doc_id', 'cite'],
  ['source', 'cite'],
  ['start_char', 'cite'],
  ['end_char', 'cite'],
  ['sha256', 'cite'],
  ['redacted_fields', 'redacted_fields'],
]);

function objectOf(relation: Relation): string {
  return relation.kind === 'facet' ? `osl.facets.${relation.name}` : `osl.entities.${relation.name}`;
}

/** The field behind the upstream column `physical` of `relation`. */
export function fieldOf(relation: Relation, physical: string): Field {
  const object = objectOf(relation);
  const declared = relation.columns.find((c) => c.physical === physical && !c.name.startsWith('#'));
  if (declared !== undefined) return { object, column: declared.name };
  if (relation.kind === 'facet') return { object, column: STORED.get(physical) ?? 'text' };
  throw new InternalError(`column ${physical} of ${relation.name} is not declared`);
}
