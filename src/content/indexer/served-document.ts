import { createHash, createHmac } from 'node:crypto';
import type { Facet } from '../../model/manifest/index.js';
import { MASK } from '../redact/matcher.js';
import type { RedactionCounts, Redactor } from '../redact/redactors.js';
import type { SourceRow } from './source.js';

/** A document as served by a facet version, after redaction. */
export interface ServedDocument {
  readonly id: string;
  readonly key: string | null;
  readonly text: string;
  readonly metadata: readonly (string | null)[];
  /** Names of the redacted fields: the entity key first, then metadata in the order of `facet.metadata`. */
  readonly redactedFields: readonly string[];
}

/**
 * Applies a version's redaction to a whole document. The entity key is kept unless its own column has a label: it
 * links the passage to an entity whose key column is itself subject to policy.
 */
export function serveDocument(
  facet: Facet,
  document: SourceRow,
  redactor: Redactor,
  pseudonymKey: string,
  counts: RedactionCounts,
): ServedDocument {
  const fields: string[] = [];
  const hidden = isLabelled(facet.entityKey.sensitivity, redactor);
  if (hidden) fields.push(facet.entityKey.name);
  const metadata = facet.metadata.map((column, i) => {
    const value = document.metadata[i] ?? null;
    const served = serveField(column, value, redactor, counts);
    if (served !== value || isLabelled(column.sensitivity, redactor)) fields.push(column.name);
    return served;
  });
  return {
    id: servedId(facet, document.id, redactor, pseudonymKey),
    key: hidden ? null : document.key,
    text: serveText(facet, document.text, redactor, counts),
    metadata,
    redactedFields: fields,
  };
}

/** Returns the document id, or a pseudonym that is stable within this store if the id would have to be redacted. */
export function servedId(facet: Facet, id: string, redactor: Redactor, pseudonymKey: string): string {
  const clear =
    !isLabelled(facet.documentId.sensitivity, redactor) && !redactor.redact(id, new Map()).changed;
  if (clear) return id;
  return `redacted-${createHmac('sha256', pseudonymKey).update(id).digest('hex').slice(0, 24)}`;
}

/** Redacts the text. If the text column has a label, the whole text is masked. */
function serveText(facet: Facet, text: string, redactor: Redactor, counts: RedactionCounts): string {
  if (!isLabelled(facet.text.sensitivity, redactor)) return redactor.redact(text, counts).text;
  return text === '' ? '' : MASK;
}

function serveField(
  column: Facet['text'],
  value: string | null,
  redactor: Redactor,
  counts: RedactionCounts,
): string | null {
  if (value === null) return null;
  const isText = column.type === 'text' || column.type === 'bpchar';
  if (column.sensitivity !== null && isLabelled(column.sensitivity, redactor)) {
    counts.set(column.sensitivity, (counts.get(column.sensitivity) ?? 0) + 1);
    return isText ? MASK : null;
  }
  const { text, changed } = redactor.redact(value, counts);
  if (!changed) return value;
  return isText ? text : null;
}

function isLabelled(sensitivity: string | null, redactor: Redactor): boolean {
  return sensitivity !== null && redactor.labels.has(sensitivity);
}

/** Hash of the source row and the dictionary. If it is unchanged, everything derived from them is unchanged too. */
export function contentHash(document: SourceRow, redactor: Redactor): string {
  const { id, key, text, metadata } = document;
  return hashOf([id, key, metadata, text, redactor.dictionaryHash]);
}

/** Hash of the served document. If it is unchanged, the chunks are kept. */
export function servedHash({ id, key, text, metadata, redactedFields }: ServedDocument): string {
  return hashOf([id, key, metadata, redactedFields, text]);
}

function hashOf(value: unknown): string {
  return createHash('sha256').update(JSON.stringify(value)).digest('hex').slice(0, 40);
}
