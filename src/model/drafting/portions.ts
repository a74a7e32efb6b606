import { setImmediate } from 'node:timers/promises';
import { frozenMap } from '../manifest/index.js';

/**
 * Encodes plain data for transfer between threads, in portions that can each be decoded quickly: decoding a compiled
 * manifest of thousands of entities in one go would block the thread. Frozen objects stay frozen, and shared objects
 * stay shared.
 *
 * A portion is a JSON array of nodes, each preceded by the nodes it contains. A node is its kind followed by its
 * parts. A part is a value, or a node's number in brackets; empty brackets stand for `undefined`, and a string in
 * brackets for a number that JSON cannot represent.
 */
const KINDS = ['object', 'bare', 'array', 'map', 'set'] as const;

type NodeKind = (typeof KINDS)[number];
type EncodedPart = string | number | boolean | null | readonly [] | readonly [number | string];
type EncodedNode = readonly [kind: number, frozen: 0 | 1, ...parts: EncodedPart[]];

/** Approximate size of a portion, in UTF-16 code units. */
const PORTION = 65_536;

/** Encodes `value` in portions. @throws TypeError for cycles, and for values that are not plain data */
export function* portionsOf(value: object): Generator<string> {
  const numbers = new Map<object, number>();
  const begun = new Set<object>();
  const waiting: object[] = [value];
  let nodes: string[] = [];
  let units = 0;
  for (let at = waiting.at(-1); at !== undefined; at = waiting.at(-1)) {
    const inside = numbers.has(at) ? [] : objectsIn(at).filter((o) => !numbers.has(o));
    if (inside.length > 0) {
      if (begun.has(at)) throw new TypeError('a circle has no end');
      begun.add(at);
      for (const object of inside) waiting.push(object);
      continue;
    }
    waiting.pop();
    if (numbers.has(at)) continue;
    const node = JSON.stringify(nodeOf(at, numbers));
    numbers.set(at, numbers.size);
    nodes.push(node);
    units += node.length;
    if (units < PORTION) continue;
    yield `[${nodes.join(',')}]`;
    [nodes, units] = [[], 0];
  }
  yield `[${nodes.join(',')}]`;
}

function kindOf(value: object): NodeKind {
  if (Array.isArray(value)) return 'array';
  if (value instanceof Map) return 'map';
  if (value instanceof Set) return 'set';
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === null) return 'bare';
  if (prototype === Object.prototype) return 'object';
  throw new TypeError('only plain data crosses threads');
}

function partsOf(value: object): readonly unknown[] {
  if (Array.isArray(value)) return value;
  if (value instanceof Map) return [...value].flatMap(([key, held]) => [nameOf(key), held]);
  if (value instanceof Set) return [...value];
  return Object.entries(value).flat();
}

function nameOf(key: unknown): string {
  if (typeof key === 'string') return key;
  throw new TypeError('only plain data crosses threads');
}

function objectsIn(value: object): readonly object[] {
  return partsOf(value).filter((part) => typeof part === 'object' && part !== null);
}

function nodeOf(value: object, numbers: ReadonlyMap<object, number>): EncodedNode {
  const parts = partsOf(value).map((part): EncodedPart => {
    switch (typeof part) {
      case 'string':
      case 'boolean':
        return part;
      case 'undefined':
        return [];
      case 'number':
        return Number.isFinite(part) ? part : [String(part)];
      case 'object': {
        if (part === null) return null;
        const number = numbers.get(part);
        if (number !== undefined) return [number];
      }
    }
    throw new TypeError('only plain data crosses threads');
  });
  return [KINDS.indexOf(kindOf(value)), Object.isFrozen(value) ? 1 : 0, ...parts];
}

/** Decodes the portions that `portionsOf` produces. */
export class Portions {
  readonly #nodes: unknown[] = [];

  add(portion: string): void {
    const nodes = JSON.parse(portion) as readonly EncodedNode[]; // cast: written by `portionsOf`
    for (const node of nodes) this.#nodes.push(this.#built(node));
  }

  /** The message, once its last portion has arrived; the receiver knows its type. */
  whole<T>(): T {
    return this.#nodes.at(-1) as T;
  }

  #built([kind, frozen, ...parts]: EncodedNode): unknown {
    const values = parts.map((part) => (Array.isArray(part) ? this.#partAt(part[0]) : part));
    const made = madeOf(KINDS[kind] ?? 'bare', values, frozen === 1);
    return frozen === 1 ? Object.freeze(made) : made;
  }

  #partAt(at: number | string | undefined): unknown {
    return typeof at === 'number' ? this.#nodes[at] : at === undefined ? undefined : Number(at);
  }
}

function madeOf(kind: NodeKind, values: readonly unknown[], frozen: boolean): object {
  switch (kind) {
    case 'array':
      return [...values];
    case 'set':
      return new Set(values);
    case 'map':
      return frozen ? frozenMap(pairs(values)) : new Map(pairs(values));
    case 'object':
      // `__proto__` is an ordinary name here.
      return Object.fromEntries(pairs(values));
    case 'bare':
      return Object.assign(Object.create(null), Object.fromEntries(pairs(values)));
  }
}

function pairs(values: readonly unknown[]): readonly (readonly [string, unknown])[] {
  return Array.from({ length: values.length / 2 }, (_, i) => [`${values[2 * i]}`, values[2 * i + 1]]);
}

/** Sends `value` in portions, yielding to other work in between. */
export async function inPortions(
  value: object,
  say: (portion: string, last: boolean) => void,
): Promise<void> {
  let before: string | null = null;
  for (const portion of portionsOf(value)) {
    if (before !== null) {
      say(before, false);
      await setImmediate();
    }
    before = portion;
  }
  say(before ?? '[]', true);
}
