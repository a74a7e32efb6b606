import {
  arrayText,
  type GovernedPlan,
  type GovernedRuntime,
  type Hop,
  InternalError,
  mostPerHop,
  PATH,
  queryError,
  type TypeName,
  walkedKey,
} from 'osl-compiler';
import type { RuntimeInput } from '../parts.js';
import { type Clip, NO_ROWS, type RuntimeRows } from '../parts.js';
import { arrayValue, elementsOrNull, jsonValue } from './constants.js';
import { typeNamed } from './passage.js';
import { textParameter } from './slot-values.js';
import { slices, step, type TextRow } from './step.js';

/** Identifies a key: the text of a single column, or a JSON array of the columns of a composite key. */
type KeyIdentity = string;

/** Keys by their identity, each with the texts of its columns. */
type Keys = ReadonlyMap<KeyIdentity, readonly string[]>;

function identityOf(parts: readonly string[]): KeyIdentity {
  const [only, ...more] = parts;
  return only !== undefined && more.length === 0 ? only : JSON.stringify(parts);
}

/** Keys reached by a hop, each with a key that it was reached from. */
interface HopResult {
  readonly targets: Keys;
  readonly parents: ReadonlyMap<KeyIdentity, KeyIdentity>;
}

/** A step of a path: the anchor, or the target of an edge. */
interface TrailStep {
  readonly edge?: string;
  readonly entity: string;
  /** The text of the key, or of each of its columns. */
  readonly key: string | readonly string[];
}

/** Records how rows were reached. Contains the anchors, and keys returned by hops, which the caller may see. */
class Trail {
  readonly #anchor: string;
  readonly #anchors: Keys;
  readonly #hops: { readonly hop: Hop; readonly reached: HopResult }[] = [];

  constructor(anchor: string, anchors: Keys) {
    this.#anchor = anchor;
    this.#anchors = anchors;
  }

  add(hop: Hop | undefined, reached: HopResult): void {
    if (hop !== undefined) this.#hops.push({ hop, reached });
  }

  /** Returns a shortest path to `key` at `depth`; of several, the first when keys are compared from the end. */
  pathTo(key: KeyIdentity, depth: number): readonly TrailStep[] {
    const path: TrailStep[] = [];
    let at = key;
    for (let i = depth - 1; i >= 0; i--) {
      const level = this.#hops[i];
      if (level === undefined) break;
      const { hop, reached } = level;
      path.push({ edge: hop.edge, entity: hop.to, key: displayKey(reached.targets.get(at), at) });
      at = reached.parents.get(at) ?? at;
    }
    path.push({ entity: this.#anchor, key: displayKey(this.#anchors.get(at), at) });
    return path.reverse();
  }
}

function displayKey(parts: readonly string[] | undefined, identity: KeyIdentity): string | readonly string[] {
  return parts === undefined || parts.length === 1 ? (parts?.[0] ?? identity) : parts;
}

type TraversalRuntime = Extract<GovernedRuntime, { kind: 'traversal' }>;

interface TraversalStep {
  readonly plan: GovernedPlan;
  readonly widths: Pick<Hop, 'sourceWidth' | 'targetWidth'>;
}

interface ReachedKey {
  readonly parts: readonly string[];
  readonly depth: number;
}

/**
 * Breadth-first search with one bounded, governed look-up per hop. Reports each key once, at its smallest depth. If the
 * hops are repeated, the keys that the search started from are not reported, and the search stops after the round in
 * which a hop was clipped, since later depths could be wrong.
 */
export async function traverse(
  { relation, start, hops }: TraversalRuntime,
  input: RuntimeInput,
): Promise<RuntimeRows> {
  const steps = hops.flatMap((plan, i) => {
    const widths = relation.hops[i];
    return widths === undefined ? [] : [{ plan, widths }];
  });
  const rounds = relation.repeats ? Math.floor(relation.maxHops / steps.length) : 1;
  const reachedKeys = new Map<KeyIdentity, ReachedKey>();
  let frontier = start === null ? await anchorsOf(relation, input) : await startKeysOf(start, input);
  let clipped = false;
  // Keys visited at each step. The anchors count as visited at the last step, whose keys start the next round.
  const seen = steps.map((_, i) => new Set(i === steps.length - 1 ? frontier.keys() : []));
  const trail = relation.columns.some((c) => c.name === PATH) ? new Trail(relation.anchor, frontier) : null;
  for (let i = 0; i < rounds * steps.length && frontier.size > 0; i++) {
    const stepIndex = i % steps.length;
    const [hop, visited] = [steps[stepIndex], seen[stepIndex]];
    if (hop === undefined || visited === undefined) break;
    const reached = await runHop(hop, frontier, relation.perHop, input);
    clipped ||= reached.clipped;
    trail?.add(relation.hops[stepIndex], reached);
    const newKeys = new Map([...reached.targets].filter(([k]) => !relation.repeats || !visited.has(k)));
    const isEnd = stepIndex === steps.length - 1;
    if (isEnd) for (const [key, parts] of newKeys) reachedKeys.set(key, { parts, depth: i + 1 });
    for (const key of newKeys.keys()) visited.add(key);
    frontier = newKeys;
    if (clipped && (relation.clipping === 'refused' || (relation.repeats && isEnd))) break;
  }
  const width = steps.at(-1)?.widths.targetWidth ?? 1;
  const names = Array.from({ length: width }, (_, i) => walkedKey(i, width));
  return {
    ...NO_ROWS,
    json: await encodeKeys(reachedKeys, names, relation, trail),
    keys: (column) => {
      const index = names.indexOf(column);
      return [...reachedKeys.values()].map(({ parts }) => parts[index] ?? null);
    },
    clip: clipped ? clipOf(relation, input) : null,
  };
}

/** Encodes keys with their depths as a JSON array of objects. */
async function encodeKeys(
  reachedKeys: ReadonlyMap<KeyIdentity, ReachedKey>,
  names: readonly string[],
  { columns }: TraversalRuntime['relation'],
  trail: Trail | null,
): Promise<string> {
  const types = names.map((name) => typeNamed(columns, name));
  const rows: string[] = [];
  for await (const slice of slices([...reachedKeys.values()])) {
    const texts = slice.map(({ parts, depth }) => {
      const key = names.map((name, i) => [name, jsonValue(parts[i] ?? null, types[i] ?? 'text')] as const);
      const path = trail === null ? {} : { [PATH]: trail.pathTo(identityOf(parts), depth) };
      return JSON.stringify({ ...Object.fromEntries(key), depth, ...path });
    });
    rows.push(texts.join());
  }
  return `[${rows.join()}]`;
}

/** Returns the keys to start from, except those with a NULL column. */
async function anchorsOf({ keys }: TraversalRuntime['relation'], input: RuntimeInput): Promise<Keys> {
  const columns = keys.map((expr) => ({
    type: expr.type,
    texts: elementsOrNull(arrayValue(expr, input)),
  }));
  const anchors = new Map<KeyIdentity, readonly string[]>();
  for await (const rows of slices([...(columns[0]?.texts.keys() ?? [])])) {
    for (const row of rows) {
      const parts = columns.flatMap(({ type, texts }) => {
        const text = texts[row] ?? null;
        return text === null ? [] : [canonicalKey(text, type)];
      });
      if (parts.length === columns.length) anchors.set(identityOf(parts), parts);
    }
  }
  return anchors;
}

/** Maximum number of start keys. More are refused, since using only some of them would change results. */
const MAX_ANCHORS = 100_000;

/** Reads start keys with a governed subquery. */
async function startKeysOf(start: GovernedPlan, input: RuntimeInput): Promise<Keys> {
  const { rows } = await step(start, new Map(), { ...input, plan: start }, MAX_ANCHORS + 1);
  if (rows.length > MAX_ANCHORS)
    throw queryError('tooLarge', { what: 'the number of keys that a walk starts from', limit: MAX_ANCHORS });
  const padded = start.outputs.map((o) => o.type === 'bpchar');
  const anchors = new Map<KeyIdentity, readonly string[]>();
  for await (const slice of slices(rows)) {
    for (const row of slice) {
      const texts = start.outputs.map((o, i) => {
        const text = row.get(o.name) ?? null;
        return text !== null && padded[i] === true ? withoutBlanks(text) : text;
      });
      const parts = texts.filter((text) => text !== null);
      if (parts.length === texts.length) anchors.set(identityOf(parts), parts);
    }
  }
  return anchors;
}

function clipOf({ perHop }: TraversalRuntime['relation'], { caller }: RuntimeInput): Clip {
  const max = mostPerHop(caller.manifest.catalog);
  const fewer = 'start from fewer keys';
  const hint = perHop < max ? `raise per_hop, to ${max} at most, or ${fewer}` : fewer;
  return { what: 'a hop of TRAVERSE', limit: perHop, unit: 'keys (`per_hop`)', hint };
}

/** Returns a key's canonical text, so that a start key equals the same key read from the database: `007` becomes 7. */
function canonicalKey(text: string, type: TypeName): string {
  if (/^int[248]\[\]$/.test(type) && /^[+-]?\d+$/.test(text.trim())) return BigInt(text.trim()).toString();
  if (type === 'bpchar[]') return withoutBlanks(text);
  if (type !== 'uuid[]') return text;
  const digits = text.toLowerCase().replace(/[^0-9a-f]/g, '');
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Removes trailing spaces, which are insignificant in a `char(n)`. */
function withoutBlanks(text: string): string {
  let end = text.length;
  while (end > 0 && text[end - 1] === ' ') end--;
  return text.slice(0, end);
}

/** Runs a hop; requests one row more than the cap to detect clipping. */
async function runHop({ plan, widths }: TraversalStep, keys: Keys, cap: number, input: RuntimeInput) {
  const { sourceWidth, targetWidth } = widths;
  const from = [...keys.values()];
  const keyArrays = Array.from({ length: sourceWidth }, (_, i) =>
    arrayText(from.map((parts) => parts[i] ?? null)),
  );
  const parameters = [...keyArrays, String(cap + 1)].map(textParameter);
  const { rows } = await step(plan, new Map(), { ...input, plan, parameters }, cap + 1);
  const columns = plan.outputs.map(({ name, type }) => ({ name, padded: type === 'bpchar' }));
  const [source, target] = [columns.slice(0, sourceWidth), columns.slice(sourceWidth)];
  if (target.length !== targetWidth) throw new InternalError('a hop has other columns than its keys');
  const targets = new Map<KeyIdentity, readonly string[]>();
  const parents = new Map<KeyIdentity, KeyIdentity>();
  for await (const slice of slices(rows.slice(0, cap))) {
    for (const row of slice) {
      const targetKey = keyIn(row, target);
      const id = identityOf(targetKey);
      targets.set(id, targetKey);
      parents.set(id, identityOf(keyIn(row, source)));
    }
  }
  return { targets, parents, clipped: rows.length > cap };
}

interface ReadKeyColumn {
  readonly name: string;
  readonly padded: boolean;
}

function keyIn(row: TextRow, columns: readonly ReadKeyColumn[]): readonly string[] {
  return columns.map(({ name, padded }) => {
    const text = row.get(name) ?? '';
    return padded ? withoutBlanks(text) : text;
  });
}
