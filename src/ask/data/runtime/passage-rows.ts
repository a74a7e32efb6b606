import { setImmediate } from 'node:timers/promises';
import { type GovernedStore, OPERATORS, type Retrieval, rowBounds } from 'osl-compiler';
import { stopError } from '../../../engine/index.js';
import type { OperatorCall, StoredPassage } from '../content-plane.js';
import type { RuntimeInput, RuntimeRows } from '../parts.js';
import { constantValue, textValue, wholeNumber } from './constants.js';
import { defaultArguments } from './default-arguments.js';
import type { ScoredPassage } from './page.js';
import { passagesJson } from './passage.js';
import { scoreParts, type WrittenQuery } from './score-parts.js';
import { indexName } from './search.js';
import { operatorCallerOf } from './step.js';

export async function passageRows(
  relation: Retrieval,
  store: GovernedStore,
  passages: readonly ScoredPassage[],
  query: string,
  calls: readonly OperatorCall[],
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const errors: { chunkId: string; reason: string }[] = [];
  const sorted = [...passages].sort((a, b) => (a.chunkId < b.chunkId ? -1 : a.chunkId > b.chunkId ? 1 : 0));
  const { content } = input.parts;
  const by = operatorCallerOf(input);
  const first = passages.slice(0, passagesWanted(relation, input));
  const wanted = new Set<StoredPassage>(first);
  const results = new Map(await askedColumns(relation, first, query, input));
  for (const call of calls) {
    const isDecoder = OPERATORS[call.use.operator].class === 'decoder';
    const read = isDecoder ? sorted.filter((p) => wanted.has(p)) : sorted;
    if (!isDecoder) input.spending.addEmbedded(...call.values.values());
    const result = await content.run(indexName(store), call, query, read, by);
    results.set(call.use.column, new Map(read.map((p, i) => [p.chunkId, result.values[i] ?? null])));
    errors.push(...result.errors);
  }
  return {
    json: await passagesJson(relation, store, passages, results),
    keys: (column) => [...new Set(passages.map((p) => p.fields.get(column) ?? null))],
    clip: null,
    redacted: new Set(passages.flatMap((p) => [...p.redactedFields, ...(p.isTextRedacted ? ['text'] : [])])),
    errors,
  };
}

export function callOf(
  use: Retrieval['operators'][number],
  query: string,
  facet: string,
  input: RuntimeInput,
): OperatorCall {
  const values = new Map([...use.arguments].map(([name, e]) => [name, constantValue(e, input)]));
  const labels = input.caller.manifest.facets.get(facet)?.labels ?? [];
  for (const [name, value] of defaultArguments(use.operator, query, labels)) {
    if ((values.get(name) ?? null) === null) values.set(name, value);
  }
  return { use, values };
}

/** Number of passages that can appear in the answer; a model need not process any others. */
function passagesWanted({ source }: Retrieval, input: RuntimeInput): number {
  const rows = rowBounds(input.plan.query, source);
  if (rows === null) return Number.POSITIVE_INFINITY;
  const offset = rows.offset === null ? null : textValue(rows.offset, input);
  const wanted = wholeNumber(textValue(rows.limit, input)) + wholeNumber(offset ?? '0');
  // LIMIT NULL means no limit; the database rejects non-numbers.
  return Number.isNaN(wanted) ? Number.POSITIVE_INFINITY : wanted;
}

/** Number of characters processed between two yields to the event loop. */
const SLICE = 4_096;

const NOTHING_WRITTEN: WrittenQuery['written'] = new Map();

/**
 * `highlights` and `score_parts`, by column and chunk id. They are computed from the text shown to the caller and from
 * counts over permitted passages.
 */
async function askedColumns(
  { facet, asked, columns, page }: Retrieval,
  passages: readonly ScoredPassage[],
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
  passage: ScoredPassage,
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
