import { createHash } from 'node:crypto';

/** The schema of all stores and of their control tables. */
export const STORE_SCHEMA = 'osl_content';

/** Suffixes of the names of the tables beside a store. */
const BITS = '__bits';
const DERIVED = '__derived';
const WORDS = '__words';

/** Bytes of a Postgres identifier; a longer one would be cut in silence, and two stores become one. */
const LONGEST = 63 - DERIVED.length;

/**
 * The table of one facet version: `<facet>__<version>`, or a hashed name where that is too long or where
 * another pair could have the same one.
 */
export function storeTable(facet: string, version: string): string {
  const plain = `${facet}__${version}`;
  const clear =
    !facet.includes('.') &&
    !facet.includes('__') &&
    !version.includes('__') &&
    !facet.endsWith('_') &&
    !version.startsWith('_');
  if (clear && Buffer.byteLength(plain) <= LONGEST) return plain;
  const hash = createHash('sha256')
    .update(JSON.stringify([facet, version]))
    .digest('hex')
    .slice(0, 24);
  // Three underscores, which no plain name has.
  return `${Buffer.from(facet).subarray(0, 27).toString('latin1').replace(/\W/g, '')}___${hash}`;
}

/** The narrow table beside the store of a dense facet version: no store's name has its two double underscores. */
export function bitsTable(facet: string, version: string): string {
  return `${storeTable(facet, version)}${BITS}`;
}

/** The table of how many passages of a lexical facet version hold each word, likewise. */
export function wordsTable(facet: string, version: string): string {
  return `${storeTable(facet, version)}${WORDS}`;
}

/** Table of the attributes derived from a facet version, likewise. */
export function derivedTable(facet: string, version: string): string {
  return `${storeTable(facet, version)}${DERIVED}`;
}

/** The columns that every store has, or may have. */
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

/** The column that holds a metadata field: of its name, with two underscores before a name of our own. */
export function metadataColumn(field: string): string {
  return OWN_COLUMNS.some((own) => own === field) ? `__${field}` : field;
}
