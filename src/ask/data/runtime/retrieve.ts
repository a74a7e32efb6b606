import {
  type GovernedPlan,
  type GovernedRuntime,
  type GovernedStore,
  ORDINAL,
  type Position,
  queryError,
  type Retrieval,
  type TypeName,
} from 'osl-compiler';
import type { OperatorCall, StoredPassage } from '../content-plane.js';
import type { RuntimeInput } from '../parts.js';
import { constantValue, jsonValue, textValue, wholeNumber } from './constants.js';
import { nearest } from './nearest.js';
import { citeOf, passageOf } from './passage.js';
import { step } from './step.js';
import { NOTHING, type RuntimeRows } from './types.js';
import { unlessStopped } from './unless-stopped.js';
import { workedArguments } from './worked-arguments.js';

/**
 * Finds the passages, and works out the operators over them.
 *
 * @throws QueryError E0515 where the statement joins on a field that is redacted in one of them
 */
export async function retrieve(
  { relation, store, checkedKeys }: Extract<GovernedRuntime, { kind: 'retrieval' }>,
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const { content } = input.parts;
  const query = textValue(relation.query, input);
  const topK = wholeNumber(textValue(relation.topK, input));
  if (query === null || query.trim() === '')
    throw queryError('typeMismatch', { detail: '`query` is empty', hint: null });
  if (!Number.isInteger(topK) || topK < 1 || topK > relation.facet.maxTopK) {
    throw queryError('typeMismatch', {
      detail: `\`top_k\` is a whole number from 1 to ${relation.facet.maxTopK}`,
      hint: null,
    });
  }
  const calls = relation.operators.map((use) => callOf(use, query, relation.facet.name, input));
  for (const call of calls) content.check(call);
  if (store === null) return NOTHING;
  const epoch = await unlessStopped(content.ready(store.facet.name, store.version), input.signal);
  const passages = await best(store, query, topK, epoch, input);
  requireClear(passages, checkedKeys);
  return passageRows(relation, store, passages, query, calls, input);
}

/** The cleartext gate. Source: contract, cross-modal join execution order (2). */
function requireClear(passages: readonly StoredPassage[], keys: ReadonlyMap<string, Position | null>): void {
  for (const [column, position] of keys) {
    if (passages.some((p) => p.redactedFields.includes(column)))
      throw queryError('keyNotClear', { column }, position);
  }
}

/** Each word costs one look-up, if in one statement. */
const MAX_TERMS = 128;

/** The best passages that the caller may see, best first. */
async function best(
  store: GovernedStore,
  query: string,
  topK: number,
  epoch: string,
  input: RuntimeInput,
): Promise<readonly StoredPassage[]> {
  const { content } = input.parts;
  const limit = String(topK);
  if (store.counts === null) {
    const vector = await unlessStopped(content.embedQuery(store.facet.name, query), input.signal);
    const rows = await nearest(store, vector, topK, epoch, input);
    return rows.map((row) => passageOf(row, store));
  }
  const lexical = content.lexicalQuery(query);
  if (lexical.terms.length === 0) return [];
  if (lexical.terms.length > MAX_TERMS)
    throw queryError('tooLarge', { what: 'the number of distinct words in `query`', limit: MAX_TERMS });
  const documents = await count(store.counts.all, new Map(), input);
  const frequencies = await frequenciesOf(lexical.terms, store.counts, input);
  const weighted = lexical.weighted(documents, frequencies);
  if (weighted === null) return [];
  const given = new Map([
    ['vector', weighted.vector],
    ['terms', `{${weighted.terms.join(',')}}`],
    ['limit', limit],
  ]);
  const { rows } = await step(store.passages, given, input, topK);
  return rows.map((row) => passageOf(row, store));
}

/** In how many passages that the caller may see each word stands. */
async function frequenciesOf(
  terms: readonly number[],
  { ofTerms: { asked, plan } }: NonNullable<GovernedStore['counts']>,
  input: RuntimeInput,
): Promise<readonly number[]> {
  if (asked === 'one by one') {
    const found: number[] = [];
    for (const term of terms) found.push(await count(plan, new Map([['term', `{${term}}`]]), input));
    return found;
  }
  const words = JSON.stringify(terms.map((term) => ({ term: [term] })));
  const { rows } = await step(plan, new Map([['words', words]]), input, terms.length + 1);
  const counts = new Map(rows.map((r) => [r.get('term'), Number(r.get('count'))]));
  return terms.map((term) => counts.get(`{${term}}`) ?? 0);
}

async function count(
  plan: GovernedPlan,
  given: ReadonlyMap<string, string>,
  input: RuntimeInput,
): Promise<number> {
  const { rows } = await step(plan, given, input, 1);
  return Number(rows[0]?.get('count') ?? 0);
}

async function passageRows(
  relation: Retrieval,
  store: GovernedStore,
  passages: readonly StoredPassage[],
  query: string,
  calls: readonly OperatorCall[],
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const results = new Map<string, ReadonlyMap<string, unknown>>();
  const errors: { chunkId: string; reason: string }[] = [];
  const sorted = [...passages].sort((a, b) => (a.chunkId < b.chunkId ? -1 : a.chunkId > b.chunkId ? 1 : 0));
  for (const call of calls) {
    const result = await input.parts.content.run(relation.facet.name, call, query, sorted, input.signal);
    results.set(call.use.column, new Map(sorted.map((p, i) => [p.chunkId, result.values[i] ?? null])));
    errors.push(...result.errors);
  }
  const rows = passages.map((p, i) => ({
    ...Object.fromEntries(
      [...p.fields].map(([name, value]) => [name, jsonValue(value, typeOfColumn(relation, name))]),
    ),
    ...Object.fromEntries([...results].map(([column, values]) => [column, values.get(p.chunkId) ?? null])),
    text: p.text,
    score: Number(p.score.toFixed(6)),
    cite: citeOf(p, store),
    redacted_fields: p.redactedFields,
    [ORDINAL]: i + 1,
  }));
  return {
    json: JSON.stringify(rows),
    keys: (column) => [...new Set(passages.map((p) => p.fields.get(column) ?? null))],
    clip: null,
    redactedFields: [...new Set(passages.flatMap((p) => p.redactedFields))].sort(),
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

function typeOfColumn(relation: Retrieval, name: string): TypeName {
  return relation.columns.find((c) => c.name === name)?.type ?? 'text';
}
