import { createHash } from 'node:crypto';

/** Schema of all stores and their control tables. */
export const STORE_SCHEMA = 'osl_content';

const BITS = '__bits';
const DERIVED = '__derived';
const WORDS = '__words';

/**
 * Number of bytes available for a name in a Postgres identifier. Postgres truncates longer identifiers silently, which
 * could give two stores the same table.
 */
const LONGEST = 63 - DERIVED.length;

const encoder = new TextEncoder();

/** Returns the table of a facet version: `<facet>__<version>`, or a hashed name if that is too long or ambiguous. */
export function storeTable(facet: string, version: string): string {
  const plain = `${facet}__${version}`;
  const clear =
    !facet.includes('.') &&
    !facet.includes('__') &&
    !version.includes('__') &&
    !facet.endsWith('_') &&
    !version.startsWith('_');
  if (clear && encoder.encode(plain).length <= LONGEST) return plain;
  const hash = createHash('sha256')
    .update(JSON.stringify([facet, version]))
    .digest('hex')
    .slice(0, 24);
  // No unhashed name contains three underscores in a row.
  const start = String.fromCharCode(...encoder.encode(facet).subarray(0, 27));
  return `${start.replace(/\W/g, '')}___${hash}`;
}

/**
 * Returns the narrow table with the sign bits of the vectors in a dense facet version's store. Its name ends in a
 * second `__` suffix, which no store's name has.
 */
export function bitsTable(facet: string, version: string): string {
  return `${storeTable(facet, version)}${BITS}`;
}

/** Returns the table that counts, for each word, the passages of a lexical facet version that contain it. */
export function wordsTable(facet: string, version: string): string {
  return `${storeTable(facet, version)}${WORDS}`;
}

/** Returns the table of the attributes derived from a facet version. */
export function derivedTable(facet: string, version: string): string {
  return `${storeTable(facet, version)}${DERIVED}`;
}

const OWN_COLUMNS = [
  'chunk_id',
  'doc_id',
  'source',
  'entity_key',
  'ordinal',
  'start_char',
  'end_char',
  'text',
  'sha256',
  'redacted_fields',
  'length',
  'terms',
  'lex',
  'dense',
  'embedding',
  'bits',
] as const;

/**
 * Returns the column of a metadata field: the field's name, prefixed with two underscores if one of the built-in
 * columns of stores has that name.
 */
export function metadataColumn(field: string): string {
  return OWN_COLUMNS.some((own) => own === field) ? `__${field}` : field;
}
