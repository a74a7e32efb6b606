import {
  arrayText,
  type Expr,
  emit,
  type GovernedPlan,
  type GovernedRuntime,
  type GovernedStore,
  InternalError,
  isArray,
  isStored,
  OPERATORS,
  ORDINAL,
  queryError,
  type Retrieval,
  type Slot,
  type StoredName,
  stored,
  type TypeName,
  valuesOf,
} from 'osl-compiler';
import type { BoundValue, Engine } from '../engine/index.js';
import type { Service } from '../service.js';
import { type CollectLimits, collect, type TextRow } from './collect.js';
import type { OperatorCall, StoredPassage } from './content-plane.js';
import type { Caller } from './index.js';

/** What one statement's runtime relations need beside their plans. */
export interface RuntimeInput {
  readonly service: Service;
  readonly caller: Caller;
  readonly plan: GovernedPlan;
  /** Values of the caller's `$1 …`. */
  readonly parameters: readonly BoundValue[];
  readonly signal: AbortSignal | null;
}

/** The rows of one runtime relation, and what its reader must be told of them. */
export interface RuntimeRows {
  /** A JSON array of objects. */
  readonly json: string;
  /** A cap held rows back. */
  readonly truncated: boolean;
  readonly redactedFields: readonly string[];
  /** Rows of a decoder operator that failed. */
  readonly errors: readonly { readonly chunkId: string; readonly reason: string }[];
}

/** Works out the runtime relations of `plan`, in order. */
export async function runtimeRows(input: RuntimeInput): Promise<readonly RuntimeRows[]> {
  const rows: RuntimeRows[] = [];
  for (const runtime of input.plan.runtime) rows.push(await rowsOf(runtime, input));
  return rows;
}

function rowsOf(runtime: GovernedRuntime, input: RuntimeInput): Promise<RuntimeRows> {
  switch (runtime.kind) {
    case 'retrieval':
      return retrieve(runtime.relation, runtime.store, input);
    case 'traversal':
      return traverse(runtime, input);
    case 'hydration':
      return hydrate(runtime, input);
    default: {
      const unknown: never = runtime;
      throw new InternalError(`unexpected runtime relation ${String(unknown)}`);
    }
  }
}

const NOTHING: RuntimeRows = Object.freeze({ json: '[]', truncated: false, redactedFields: [], errors: [] });

// ---------------------------------------------------------------- RETRIEVE

async function retrieve(
  relation: Retrieval,
  store: GovernedStore | null,
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const { content } = input.service;
  const decoder = relation.operators.find((o) => OPERATORS[o.operator].class === 'decoder');
  if (decoder !== undefined && !content.hasDecoder)
    throw queryError('noDecoder', { operator: decoder.operator });
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
  const calls = relation.operators.map((use) => callOf(use, input));
  for (const call of calls) content.check(call);
  if (store === null) return NOTHING;
  await content.ready(store.facet.name, store.version);
  const passages = await best(store, query, topK, input);
  return passageRows(relation, store, passages, query, calls, input);
}

/** Each word costs one look-up. */
const MAX_TERMS = 128;

/** The best passages that the caller may see, best first. */
async function best(
  store: GovernedStore,
  query: string,
  topK: number,
  input: RuntimeInput,
): Promise<readonly StoredPassage[]> {
  const { content } = input.service;
  const limit = String(topK);
  const run = async (given: ReadonlyMap<string, string>): Promise<readonly StoredPassage[]> => {
    const { rows } = await step(store.passages, given, input, topK);
    return rows.map((row) => passageOf(row, store));
  };
  if (store.counts === null) {
    return run(
      new Map([
        ['vector', await content.embedQuery(store.facet.name, query)],
        ['limit', limit],
      ]),
    );
  }
  const lexical = content.lexicalQuery(query);
  if (lexical.terms.length === 0) return [];
  if (lexical.terms.length > MAX_TERMS)
    throw queryError('tooLarge', { what: 'the number of distinct words in `query`', limit: MAX_TERMS });
  const documents = await count(store.counts.all, new Map(), input);
  const frequencies: number[] = [];
  for (const term of lexical.terms)
    frequencies.push(await count(store.counts.ofTerm, new Map([['term', `{${term}}`]]), input));
  const weighted = lexical.weighted(documents, frequencies);
  if (weighted === null) return [];
  return run(
    new Map([
      ['vector', weighted.vector],
      ['terms', `{${weighted.terms.join(',')}}`],
      ['limit', limit],
    ]),
  );
}

async function count(
  plan: GovernedPlan,
  given: ReadonlyMap<string, string>,
  input: RuntimeInput,
): Promise<number> {
  const { rows } = await step(plan, given, input, 1);
  return Number(rows[0]?.get('count') ?? 0);
}

function passageOf(row: TextRow, store: GovernedStore): StoredPassage {
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
    redactedFields: elements(row.get(stored('redacted_fields')) ?? null),
    score: store.counts === null ? 1 - distance : -distance,
    vector: row.has(stored('vector'))
      ? Float32Array.from(elements(row.get(stored('vector')) ?? null), Number)
      : null,
    fields: new Map([...row].filter(([name]) => !isStored(name))),
  };
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
    const result = await input.service.content.run(relation.facet.name, call, query, sorted, input.signal);
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
    truncated: false,
    redactedFields: [...new Set(passages.flatMap((p) => p.redactedFields))].sort(),
    errors,
  };
}

function callOf(use: Retrieval['operators'][number], input: RuntimeInput): OperatorCall {
  return { use, values: new Map([...use.arguments].map(([name, e]) => [name, constantValue(e, input)])) };
}

/** Offsets and the hash refer to the version that is served. */
function citeOf(p: StoredPassage, store: GovernedStore) {
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

function typeOfColumn(relation: Retrieval, name: string): TypeName {
  return relation.columns.find((c) => c.name === name)?.type ?? 'text';
}

// ---------------------------------------------------------------- TRAVERSE

type TraversalRuntime = Extract<GovernedRuntime, { kind: 'traversal' }>;

/**
 * Breadth first, one bounded equality look-up a hop, each under the caller's policy. A key is reported once, at its
 * least depth, and the anchors never.
 */
async function traverse({ relation, hops }: TraversalRuntime, input: RuntimeInput): Promise<RuntimeRows> {
  const { type: keyType } = relation.keys;
  const anchors = elements(arrayValue(relation.keys, input)).map((k) => canonicalKey(k, keyType));
  const repeated = relation.repeats ? Array.from({ length: relation.maxHops }, () => hops[0]) : hops;
  const found = new Map<string, number>();
  let frontier: readonly string[] = [...new Set(anchors)];
  let truncated = false;
  const seen = new Set(frontier);
  for (const [i, hop] of repeated.entries()) {
    if (hop === undefined || frontier.length === 0) break;
    const reached = await oneHop(hop, frontier, relation.perHop, input);
    truncated ||= reached.truncated;
    const fresh = relation.repeats ? reached.targets.filter((k) => !seen.has(k)) : reached.targets;
    if (relation.repeats || i === hops.length - 1) for (const key of fresh) found.set(key, i + 1);
    for (const key of fresh) seen.add(key);
    frontier = fresh;
  }
  const type = typeNamed(relation.columns, 'key');
  const rows = [...found].map(([key, depth]) => ({ key: jsonValue(key, type), depth }));
  return { ...NOTHING, json: JSON.stringify(rows), truncated };
}

/** A caller's key as Postgres writes it, so that the walk knows its anchors again: `007` is 7. */
function canonicalKey(text: string, type: TypeName): string {
  if (/^int[248]\[\]$/.test(type) && /^[+-]?\d+$/.test(text.trim())) return BigInt(text.trim()).toString();
  if (type !== 'uuid[]') return text;
  const digits = text.toLowerCase().replace(/[^0-9a-f]/g, '');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

function typeNamed(
  columns: readonly { readonly name: string; readonly type: TypeName }[],
  name: string,
): TypeName {
  return columns.find((c) => c.name === name)?.type ?? 'text';
}

/** `$1` the keys, `$2` rows of one source, `$3` rows in all: one more than the cap, so that a clipped hop shows. */
async function oneHop(hop: GovernedPlan, keys: readonly string[], cap: number, input: RuntimeInput) {
  const parameters = [arrayText(keys), String(cap + 1), String(cap + 1)].map(textParameter);
  const own = { ...input, plan: hop, parameters };
  const { rows } = await step(hop, new Map(), own, cap + 1);
  const perSource = new Map<string, number>();
  let clipped = rows.length > cap;
  const targets = new Set<string>();
  for (const row of rows.slice(0, cap)) {
    const source = row.get('source') ?? '';
    const n = (perSource.get(source) ?? 0) + 1;
    perSource.set(source, n);
    if (n > cap) clipped = true;
    else targets.add(row.get('target') ?? '');
  }
  return { targets: [...targets].sort(), truncated: clipped };
}

// ---------------------------------------------------------------- Joint

type HydrationRuntime = Extract<GovernedRuntime, { kind: 'hydration' }>;

/** Passages of one facet that hydration brings at most, over all keys. */
const EVIDENCE_ROWS = 1_000;

async function hydrate({ relation, stores }: HydrationRuntime, input: RuntimeInput): Promise<RuntimeRows> {
  const byKey = new Map<string, unknown[]>();
  const redacted = new Set<string>();
  let truncated = false;
  for (const store of stores) {
    await input.service.content.ready(store.facet.name, store.version);
    const { rows } = await step(
      store.passages,
      new Map([['limit', String(EVIDENCE_ROWS + 1)]]),
      input,
      EVIDENCE_ROWS + 1,
    );
    truncated ||= rows.length > EVIDENCE_ROWS;
    for (const row of rows.slice(0, EVIDENCE_ROWS)) {
      const passage = passageOf(row, store);
      const key = row.get(store.facet.entityKey) ?? '';
      const evidence = {
        text: passage.text,
        cite: citeOf(passage, store),
        redacted_fields: passage.redactedFields,
      };
      byKey.set(key, [...(byKey.get(key) ?? []), evidence]);
      for (const field of passage.redactedFields) redacted.add(field);
    }
  }
  const type = typeNamed(relation.columns, 'key');
  const rows = [...byKey].map(([key, evidence]) => ({ key: jsonValue(key, type), evidence }));
  return { json: JSON.stringify(rows), truncated, redactedFields: [...redacted].sort(), errors: [] };
}

// ---------------------------------------------------------------- values

/** Runs one step under the caller's rights, with the values that earlier steps give. */
async function step(
  plan: GovernedPlan,
  given: ReadonlyMap<string, string>,
  input: RuntimeInput,
  maxRows: number,
) {
  const { service, signal } = input;
  const limits: CollectLimits = {
    maxRows,
    maxBytes: service.caps.bytes,
    timeoutMs: service.caps.timeoutMs,
    signal,
  };
  return collect(engineOf(service, plan), plan, slotValues(emit(plan).slots, given, input), limits);
}

export function engineOf(service: Service, plan: GovernedPlan): Engine {
  const name = plan.connector ?? service.defaultConnector;
  const engine = service.engines.get(name);
  if (engine === undefined) throw new InternalError(`connector ${name} is not open`);
  return engine;
}

/** Values of `slots`, in order: the caller's, policy's, and what earlier steps give. */
export function slotValues(
  slots: readonly Slot[],
  given: ReadonlyMap<string, string>,
  { service, caller, parameters }: RuntimeInput,
  runtime: readonly RuntimeRows[] = [],
): readonly BoundValue[] {
  return valuesOf<BoundValue>(slots, {
    text: textParameter,
    client: (index) => parameters[index],
    attribute: (subject, name) => caller.access.attributeValues(subject, name),
    pad: (pad, domain) => service.maskKeys.pad(pad, domain),
    given: (name) => {
      const value = given.get(name);
      if (value === undefined) throw new InternalError(`no step gives \`${name}\``);
      return value;
    },
    runtime: (index) => {
      const rows = runtime[index];
      if (rows === undefined) throw new InternalError(`runtime relation ${index} was not worked out`);
      return rows.json;
    },
  });
}

function textParameter(value: string): BoundValue {
  return { format: 0, bytes: Buffer.from(value, 'utf8') };
}

/** The text of a constant: a literal or `$n`. */
function textValue(expr: Expr, input: RuntimeInput): string | null {
  if (expr.kind === 'cast') return textValue(expr.arg, input);
  if (expr.kind === 'null') return null;
  if (expr.kind === 'boolean') return String(expr.value);
  if (expr.kind !== 'parameter') throw new InternalError(`a ${expr.kind} is no constant`);
  const slot = input.plan.slots[expr.slot];
  const value = slot === undefined ? undefined : slotValues([slot], new Map(), input)[0];
  if (value === undefined || value.bytes === null) return null;
  if (value.format === 1)
    throw queryError('typeMismatch', { detail: 'arguments of table functions are sent as text', hint: null });
  return Buffer.from(value.bytes).toString('utf8');
}

/** NaN for what int4 does not read as one: `0x10`, `1e1`, nothing at all. */
function wholeNumber(text: string | null): number {
  return text !== null && /^\s*[+-]?\d+\s*$/.test(text) ? Number(text) : Number.NaN;
}

/** A constant array in Postgres' text format. */
function arrayValue(expr: Expr, input: RuntimeInput): string | null {
  if (expr.kind !== 'array') return textValue(expr, input);
  return arrayText(expr.items.map((i) => textValue(i, input)));
}

/** A constant as JSON sees it. */
function constantValue(expr: Expr, input: RuntimeInput): unknown {
  if (expr.kind === 'array' || isArray(expr.type)) return elements(arrayValue(expr, input));
  const text = textValue(expr, input);
  return text === null ? null : jsonValue(text, expr.type);
}

/** A value in text format as the JSON that `jsonb_to_recordset` turns back into `type`. */
function jsonValue(text: string | null, type: TypeName): unknown {
  if (text === null) return null;
  if (type === 'jsonb') return parsedJson(text);
  if (type === 'bool') return text === 't' || text === 'true';
  // As text where JSON has no such number or NULL would be lost: `jsonb_to_recordset` reads both as Postgres does.
  const number = type === 'int2' || type === 'int4' || type === 'float4' || type === 'float8';
  return number && Number.isFinite(Number(text)) ? Number(text) : text;
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw queryError('invalidLiteral', { type: 'jsonb' });
  }
}

/** The elements of a one-dimensional array in Postgres' text format; NULL elements are left out. */
export function elements(text: string | null): readonly string[] {
  if (text === null || text === '{}') return [];
  const items: string[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|((?:[^,{}"\\]|\\.)+)/gs;
  for (const match of text.slice(1, -1).matchAll(pattern)) {
    const [, quoted, bare] = match;
    if (quoted !== undefined) items.push(quoted.replace(/\\(.)/gs, '$1'));
    const word = bare?.trim() ?? '';
    if (word !== '' && word.toUpperCase() !== 'NULL') items.push(word.replace(/\\(.)/gs, '$1'));
  }
  return items;
}
