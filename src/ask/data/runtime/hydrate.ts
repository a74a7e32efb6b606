import { EVIDENCE, type GovernedRuntime, type GovernedStore, queryError } from 'osl-compiler';
import type { Clip, RuntimeInput, RuntimeRows } from '../parts.js';
import { unlessStopped } from '../question.js';
import { jsonValue } from './constants.js';
import { type ByKey, chooseAttributes } from './derived-attributes.js';
import { citeOf, passageOf, typeNamed } from './passage.js';
import { step } from './step.js';

type HydrationRuntime = Extract<GovernedRuntime, { kind: 'hydration' }>;

/** Maximum number of supporting passages; more are an error, since clipping would give wrong values. */
const DERIVED_ROWS = 50_000;

/** Computes `evidence` and derived attributes for the given entities. */
export async function hydrate(
  { relation, stores }: HydrationRuntime,
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const wantsPassages = relation.columns.some((c) => c.name === EVIDENCE);
  const rows = new Map<string, Record<string, unknown>>();
  const rowOf = (key: string): Record<string, unknown> => {
    const type = typeNamed(relation.columns, 'key');
    const row = rows.get(key) ?? { key: jsonValue(key, type) };
    rows.set(key, row);
    return row;
  };
  const evidence = new Map<string, unknown[]>();
  let isRedacted = false;
  let truncated = false;
  for (const store of stores) {
    const { name } = store.facet;
    const ready = input.parts.content.ready(name, store.version);
    const { indexedAt, since } = await unlessStopped(ready, input.signal);
    input.standby.requireCommitted(since);
    input.indexes.add(name, indexedAt);
    const attributes = await derivedAttributes(store, input);
    for (const [key, values] of attributes) {
      for (const [name, { value }] of values) rowOf(key)[name] = value;
    }
    if (!wantsPassages) continue;
    const result = await passages(store, attributes, input);
    truncated ||= result.truncated;
    isRedacted ||= result.isRedacted;
    for (const [key, list] of result.byKey) evidence.set(key, [...(evidence.get(key) ?? []), ...list]);
  }
  for (const [key, list] of evidence) rowOf(key)[EVIDENCE] = list;
  return {
    json: JSON.stringify([...rows.values()]),
    keys: () => [...rows.keys()],
    clip: truncated ? evidenceClip(input) : null,
    redacted: new Set(isRedacted ? [EVIDENCE] : []),
    errors: [],
  };
}

function evidenceClip({ parts }: RuntimeInput): Clip {
  const limit = parts.caps.evidence;
  return { what: 'the evidence of these keys', limit, unit: 'passages of a facet', hint: 'name fewer keys' };
}

async function derivedAttributes({ derived, facet }: GovernedStore, input: RuntimeInput): Promise<ByKey> {
  if (derived === null) return new Map();
  const args = new Map([['limit', `${DERIVED_ROWS + 1}`]]);
  const { rows } = await step(derived, args, input, DERIVED_ROWS + 1);
  if (rows.length > DERIVED_ROWS) {
    throw queryError('tooLarge', { what: 'what the derived attributes rest on', limit: DERIVED_ROWS });
  }
  return chooseAttributes(rows, facet.entityKey);
}

async function passages(store: GovernedStore, attributes: ByKey, input: RuntimeInput) {
  const limit = input.parts.caps.evidence;
  const args = new Map([['limit', `${limit + 1}`]]);
  const { rows } = await step(store.passages, args, input, limit + 1);
  const byKey = new Map<string, unknown[]>();
  let isRedacted = false;
  for (const row of rows.slice(0, limit)) {
    const passage = passageOf(row, store);
    const key = row.get(store.facet.entityKey) ?? '';
    const supported = [...(attributes.get(key) ?? [])].filter(([, a]) => a.support.has(passage.chunkId));
    const entry = {
      text: passage.text,
      cite: citeOf(passage, store),
      redacted: passage.isTextRedacted,
      supports: supported.map(([name]) => name),
    };
    byKey.set(key, [...(byKey.get(key) ?? []), entry]);
    isRedacted ||= passage.isTextRedacted;
  }
  return { byKey, isRedacted, truncated: rows.length > limit };
}
