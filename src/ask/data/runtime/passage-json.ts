import { setImmediate } from 'node:timers/promises';
import { type GovernedStore, ORDINAL, type Retrieval, type TypeName } from 'osl-compiler';
import type { StoredPassage } from '../content-plane.js';
import { jsonValue } from './constants.js';
import { shownScore } from './page.js';
import { citeOf } from './passage.js';

/** Passages between two yields to the event loop. */
const SLICE = 250;

/**
 * JSON array of passages for the statement, with the columns that it uses.
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
