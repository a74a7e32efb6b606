import {
  type GovernedRuntime,
  type GovernedStore,
  OPERATORS,
  type Position,
  queryError,
  type Retrieval,
} from 'osl-compiler';
import type { OperatorCall, StoredPassage } from '../content-plane.js';
import type { RuntimeInput } from '../parts.js';
import { askedColumns } from './asked.js';
import { best, indexName } from './best.js';
import { constantValue, textValue } from './constants.js';
import { diverse, poolOf } from './diverse.js';
import { bestOfBoth } from './hybrid.js';
import { goodEnough, pageValues } from './page.js';
import { passagesJson } from './passage-json.js';
import { candidatesOf, reranked } from './reranked.js';
import { NOTHING, type RuntimeRows } from './types.js';
import { passagesWanted } from './wanted.js';
import type { FoundPassage } from './why.js';
import { workedArguments } from './worked-arguments.js';

/**
 * Finds the passages, and works out the operators over them.
 *
 * @throws QueryError E0515 where the statement joins on a field that is redacted in one of them
 */
export async function retrieve(
  { relation, store, lexical, checkedKeys }: Extract<GovernedRuntime, { kind: 'retrieval' }>,
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const { content } = input.parts;
  const query = textValue(relation.query, input);
  if (query === null || query.trim() === '')
    throw queryError('typeMismatch', { detail: '`query` is empty', hint: null });
  if (query.length > LONGEST_QUERY)
    throw queryError('tooLarge', { what: 'the length of `query`', limit: LONGEST_QUERY });
  const page = pageValues(relation, input);
  const calls = relation.operators.map((use) => callOf(use, query, relation.facet.name, input));
  for (const call of calls) await content.check(call);
  if (store === null) return NOTHING;
  const { rerank } = relation;
  const from = rerank === null ? poolOf(page) : candidatesOf(page, rerank);
  const pool =
    lexical === null
      ? goodEnough(await best(store, query, from, input), from)
      : await bestOfBoth(relation, { dense: store, lexical }, query, from, input);
  const passages =
    rerank === null
      ? await diverse(pool, page, store, query, input)
      : await reranked(pool, page, rerank, query, input);
  requireClear(passages, checkedKeys);
  return passageRows(relation, store, passages, query, calls, input);
}

/** UTF-16 units. A longer one takes more than a turn to be cut into words, and no model reads it to its end. */
const LONGEST_QUERY = 100_000;

/** The cleartext gate. Source: contract, cross-modal join execution order (2). */
function requireClear(passages: readonly StoredPassage[], keys: ReadonlyMap<string, Position | null>): void {
  for (const [column, position] of keys) {
    if (passages.some((p) => p.redactedFields.includes(column)))
      throw queryError('keyNotClear', { column }, position);
  }
}

async function passageRows(
  relation: Retrieval,
  store: GovernedStore,
  passages: readonly FoundPassage[],
  query: string,
  calls: readonly OperatorCall[],
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const errors: { chunkId: string; reason: string }[] = [];
  const sorted = [...passages].sort((a, b) => (a.chunkId < b.chunkId ? -1 : a.chunkId > b.chunkId ? 1 : 0));
  const { content, caps } = input.parts;
  const { subject } = input.caller.identity;
  const { signal, until, spending } = input;
  const by = { subject, timeoutMs: caps.timeoutMs, until, signal, spend: spending.add.bind(spending) };
  const first = passages.slice(0, passagesWanted(relation, input));
  const wanted = new Set<StoredPassage>(first);
  const results = new Map(await askedColumns(relation, first, query, input));
  for (const call of calls) {
    const isDecoder = OPERATORS[call.use.operator].class === 'decoder';
    const read = isDecoder ? sorted.filter((p) => wanted.has(p)) : sorted;
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

function callOf(
  use: Retrieval['operators'][number],
  query: string,
  facet: string,
  input: RuntimeInput,
): OperatorCall {
  const values = new Map([...use.arguments].map(([name, e]) => [name, constantValue(e, input)]));
  const labels = input.caller.manifest.facets.get(facet)?.labels ?? [];
  for (const [name, value] of workedArguments(use.operator, query, labels)) {
    if ((values.get(name) ?? null) === null) values.set(name, value);
  }
  return { use, values };
}
