import { createHash } from 'node:crypto';

/** The schema of all stores and of their control tables. */
export const STORE_SCHEMA = 'osl_content';

/** Bytes of a Postgres identifier; a longer one would be cut in silence, and two stores become one. */
const LONGEST = 63;

/**
 * The table of one facet version: `<facet>__<version>`, or a hashed name where that is too long or where
 * another pair could have the same one.
 */
export function storeTable(facet: string, version: string): string {
  const plain = `${facet}__${version}`;
  const clear = !facet.includes('__') && !version.includes('__') && !facet.endsWith('_') && !version.startsWith('_');
  if (clear && Buffer.byteLength(plain) <= LONGEST) return plain;
  const hash = createHash('sha256').update(JSON.stringify([facet, version])).digest('hex').slice(0, 24);
  // Three underscores, which no plain name has.
  return `${Buffer.from(facet).subarray(0, 30).toString('latin1').replace(/\W/g, '')}___${hash}`;
}

export function quoted(name: string): string {
  return `"${name.replaceAll('"', '""')}"`;
}

/** The column that holds a metadata field, apart from the columns that every store has. */
export function metadataColumn(field: string): string {
  return `m_${field}`;
}
