import { setImmediate } from 'node:timers/promises';
import {
  type GovernedStore,
  isStored,
  isVisibleFlag,
  ORDINAL,
  REDACTED,
  type Retrieval,
  type StoredName,
  stored,
  type TypeName,
  visibleColumnName,
} from 'osl-compiler';
import type { StoredPassage } from '../content-plane.js';
import { elements, jsonValue } from './constants.js';
import { shownScore } from './page.js';
import type { TextRow } from './step.js';

export function passageOf(row: TextRow, store: GovernedStore): StoredPassage {
  const text = (name: StoredName): string => row.get(stored(name)) ?? '';
  const distance = Number(text('distance'));
  return {
    chunkId: text('chunk_id'),
    docId: text('doc_id'),
    source: text('source'),
    start: Number(text('start_char')),
    end: Number(text('end_char')),
    text: text('text'),
    sha256: text('sha256'),
    redactedFields: redactedIn(row, store),
    isTextRedacted: store.redacts && text('text').includes(REDACTED),
    score: store.counts === null ? 1 - distance : -distance,
    vector: row.get(stored('vector')) ?? null,
    fields: fieldsIn(row),
  };
}

/** The entity key and metadata: all columns except the store's own and policy flags. */
function fieldsIn(row: TextRow): ReadonlyMap<string, string | null> {
  const fields = new Map<string, string | null>();
  for (const [name, value] of row) if (!isStored(name) && !isVisibleFlag(name)) fields.set(name, value);
  return fields;
}

/** The known fields that are masked in this passage, by its version or by policy. */
function redactedIn(row: TextRow, { fields }: GovernedStore): readonly string[] {
  const byVersion = new Set(elements(row.get(stored('redacted_fields')) ?? null));
  const isHidden = (name: string): boolean => (row.get(visibleColumnName(name)) ?? 't') !== 't';
  return fields.shown.filter((n) => fields.masked.has(n) || byVersion.has(n) || isHidden(n));
}

/** A citation, whose offsets and hash refer to the served version. */
export function citeOf(p: StoredPassage, store: GovernedStore) {
  return {
    source: p.source,
    doc_id: p.docId,
    chunk_id: p.chunkId,
    facet: store.facet.name,
    version: store.version,
    start: p.start,
    end: p.end,
    sha256: p.sha256,
  };
}

export function typeNamed(
  columns: readonly { readonly name: string; readonly type: TypeName }[],
  name: string,
): TypeName {
  return columns.find((c) => c.name === name)?.type ?? 'text';
}

/** Number of passages processed between two yields to the event loop. */
const SLICE = 250;

/**
 * Encodes passages as a JSON array for the statement, with the columns that it uses.
 *
 * @param results computed columns, by column and chunk id
 */
export async function passagesJson(
  { columns }: Retrieval,
  store: GovernedStore,
  passages: readonly StoredPassage[],
  results: ReadonlyMap<string, ReadonlyMap<string, unknown>>,
): Promise<string> {
  const slices: string[] = [];
  for (let from = 0; from < passages.length; from += SLICE) {
    if (from > 0) await setImmediate();
    const rows = passages.slice(from, from + SLICE).map((passage, i) => {
      const values = columns.map(({ name, type }) => [
        name,
        cellOf(name, type, passage, from + i, store, results),
      ]);
      return Object.fromEntries(values);
    });
    slices.push(JSON.stringify(rows).slice(1, -1));
  }
  return `[${slices.join(',')}]`;
}

function cellOf(
  name: string,
  type: TypeName,
  passage: StoredPassage,
  place: number,
  store: GovernedStore,
  results: ReadonlyMap<string, ReadonlyMap<string, unknown>>,
): unknown {
  switch (name) {
    case 'text':
      return passage.text;
    case 'score':
      return shownScore(passage.score);
    case 'cite':
      return citeOf(passage, store);
    case 'redacted_fields':
      return passage.redactedFields;
    case ORDINAL:
      return place + 1;
    default: {
      const worked = results.get(name);
      if (worked !== undefined) return worked.get(passage.chunkId) ?? null;
      return jsonValue(passage.fields.get(name) ?? null, type);
    }
  }
}
