/**
 * A read-only map with known keys whose values are computed on first access. A caller may have ten thousand relations,
 * while a query typically uses three.
 */
export class LazyMap<K, V> implements ReadonlyMap<K, V> {
  readonly #keys: ReadonlySet<K>;
  readonly #make: (key: K) => V;
  readonly #cache = new Map<K, V>();

  constructor(keys: ReadonlySet<K>, make: (key: K) => V) {
    this.#keys = keys;
    this.#make = make;
  }

  get size(): number {
    return this.#keys.size;
  }

  has(key: K): boolean {
    return this.#keys.has(key);
  }

  get(key: K): V | undefined {
    return this.#keys.has(key) ? this.#valueOf(key) : undefined;
  }

  keys(): SetIterator<K> {
    return this.#keys.values();
  }

  *entries(): Generator<[K, V], undefined, unknown> {
    for (const key of this.#keys) yield [key, this.#valueOf(key)];
  }

  *values(): Generator<V, undefined, unknown> {
    for (const key of this.#keys) yield this.#valueOf(key);
  }

  [Symbol.iterator](): Generator<[K, V], undefined, unknown> {
    return this.entries();
  }

  forEach(f: (value: V, key: K, map: ReadonlyMap<K, V>) => void): void {
    for (const [key, value] of this) f(value, key, this);
  }

  #valueOf(key: K): V {
    const cached = this.#cache.get(key);
    if (cached !== undefined) return cached;
    const value = this.#make(key);
    this.#cache.set(key, value);
    return value;
  }
}
