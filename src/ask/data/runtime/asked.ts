import { setImmediate } from 'node:timers/promises';
import type { Retrieval } from 'osl-compiler';
import { stopError } from '../../../engine/index.js';
import type { RuntimeInput } from '../parts.js';
import { scoreParts, type WrittenQuery } from './score-parts.js';
import type { FoundPassage } from './why.js';

/** Characters that are looked through before others get their turn. */
const SLICE = 4_096;

const NOTHING_WRITTEN: WrittenQuery['written'] = new Map();

/**
 * The columns that a search was asked for beside what every passage has, and that its statement uses: by column and
 * chunk id. They are made of the text that this caller is shown, and of counts over what it may see.
 */
export async function askedColumns(
  { facet, asked, columns, page }: Retrieval,
  passages: readonly FoundPassage[],
  query: string,
  input: RuntimeInput,
): Promise<ReadonlyMap<string, ReadonlyMap<string, unknown>>> {
  const used = asked.filter((name) => columns.some((c) => c.name === name));
  const found = new Map(used.map((name) => [name, new Map<string, unknown>()]));
  if (used.length === 0) return found;
  const lexical = await input.parts.content.lexicalQuery(facet.name, query);
  const written = used.includes('score_parts') ? await lexical.written() : NOTHING_WRITTEN;
  const words: WrittenQuery = { occurrences: (text) => lexical.occurrences(text), written };
  let looked = query.length;
  for (const passage of passages) {
    if (looked > SLICE) {
      looked = 0;
      await setImmediate();
      if (input.signal?.aborted === true) throw stopError(input.signal);
    }
    looked += passage.text.length;
    for (const [name, values] of found) values.set(passage.chunkId, askedValue(name, passage, words, page));
  }
  return found;
}

function askedValue(
  name: Retrieval['asked'][number],
  passage: FoundPassage,
  query: WrittenQuery,
  { per }: Retrieval['page'],
): unknown {
  switch (name) {
    case 'highlights':
      return query.occurrences(passage.text).spans;
    case 'score_parts':
      return scoreParts(passage, query, per === 'document');
  }
}
