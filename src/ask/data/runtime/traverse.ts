import { arrayText, type GovernedPlan, type GovernedRuntime, mostPerHop, type TypeName } from 'osl-compiler';
import type { RuntimeInput } from '../parts.js';
import { slices } from '../slices.js';
import { arrayValue, elements, jsonValue } from './constants.js';
import { typeNamed } from './passage.js';
import { textParameter } from './slot-values.js';
import { step } from './step.js';
import { type Clip, NOTHING, type RuntimeRows } from './types.js';

type TraversalRuntime = Extract<GovernedRuntime, { kind: 'traversal' }>;

/**
 * Breadth first, one bounded equality look-up a hop, each under the caller's policy. A key is reported once, at its
 * least depth, and the anchors never. Behind a clipped hop a depth could be more than the least, so that a link that
 * is walked again and again is walked no further then.
 */
export async function traverse(
  { relation, hops }: TraversalRuntime,
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const { type: keyType } = relation.keys;
  const anchors = elements(arrayValue(relation.keys, input)).map((k) => canonicalKey(k, keyType));
  const repeated = relation.repeats ? Array.from({ length: relation.maxHops }, () => hops[0]) : hops;
  const found = new Map<string, number>();
  let frontier: readonly string[] = [...new Set(anchors)];
  let clipped = false;
  const seen = new Set(frontier);
  for (const [i, hop] of repeated.entries()) {
    if (hop === undefined || frontier.length === 0) break;
    const reached = await oneHop(hop, frontier, relation.perHop, input);
    clipped ||= reached.clipped;
    const fresh = relation.repeats ? reached.targets.filter((k) => !seen.has(k)) : reached.targets;
    if (relation.repeats || i === hops.length - 1) for (const key of fresh) found.set(key, i + 1);
    for (const key of fresh) seen.add(key);
    frontier = fresh;
    if (clipped && (relation.repeats || relation.clipping === 'refused')) break;
  }
  const type = typeNamed(relation.columns, 'key');
  const parts: string[] = [];
  for await (const part of slices([...found]))
    parts.push(part.map(([key, depth]) => JSON.stringify({ key: jsonValue(key, type), depth })).join());
  return {
    ...NOTHING,
    json: `[${parts.join()}]`,
    keys: () => [...found.keys()],
    clip: clipped ? clipOf(relation, input) : null,
  };
}

function clipOf({ perHop }: TraversalRuntime['relation'], { caller }: RuntimeInput): Clip {
  const most = mostPerHop(caller.manifest.catalog);
  const fewer = 'start from fewer keys';
  const hint = perHop < most ? `raise per_hop, to ${most} at most, or ${fewer}` : fewer;
  return { what: 'a hop of TRAVERSE', limit: perHop, unit: 'rows (`per_hop`)', hint };
}

/** A caller's key as Postgres writes it, so that the walk knows its anchors again: `007` is 7. */
function canonicalKey(text: string, type: TypeName): string {
  if (/^int[248]\[\]$/.test(type) && /^[+-]?\d+$/.test(text.trim())) return BigInt(text.trim()).toString();
  if (type === 'bpchar[]') return withoutBlanks(text);
  if (type !== 'uuid[]') return text;
  const digits = text.toLowerCase().replace(/[^0-9a-f]/g, '');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Blanks at the end of a `char(n)` are none of its value. */
function withoutBlanks(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === ' ') end--;
  return text.slice(0, end);
}

/** `$1` the keys, `$2` rows of one source, `$3` rows in all: one more than the cap, so that a clipped hop shows. */
async function oneHop(hop: GovernedPlan, keys: readonly string[], cap: number, input: RuntimeInput) {
  const parameters = [arrayText(keys), String(cap + 1), String(cap + 1)].map(textParameter);
  const own = { ...input, plan: hop, parameters };
  const { rows } = await step(hop, new Map(), own, cap + 1);
  const padded = hop.outputs.find((o) => o.name === 'target')?.type === 'bpchar';
  const perSource = new Map<string, number>();
  let clipped = rows.length > cap;
  const targets = new Set<string>();
  for await (const part of slices(rows.slice(0, cap))) {
    for (const row of part) {
      const source = row.get('source') ?? '';
      const n = (perSource.get(source) ?? 0) + 1;
      perSource.set(source, n);
      if (n > cap) clipped = true;
      else targets.add(padded ? withoutBlanks(row.get('target') ?? '') : (row.get('target') ?? ''));
    }
  }
  return { targets: [...targets], clipped };
}
