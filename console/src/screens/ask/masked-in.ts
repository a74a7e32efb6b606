import type { Schema } from '../../api/schema.js';
import type { MaskedIn } from './answer-grid.js';

/** How columns of answers are masked, as the schema of this caller says of the columns that they come from. */
export function maskedInSchema(schema: Pick<Schema, 'entities' | 'relationships'> | null): MaskedIn {
  if (schema === null) return () => null;
  const known = new Map<string, 'none' | 'some' | 'all'>();
  for (const { fqn, columns } of schema.entities)
    for (const { name, masked } of columns) known.set(`${fqn}.${name}`, masked);
  for (const { bridge } of schema.relationships)
    for (const { name, masked } of bridge?.columns ?? [])
      known.set(`osl.entities.${bridge?.name ?? ''}.${name}`, masked);
  return ({ source }) => (source === null ? null : (known.get(source) ?? null));
}
