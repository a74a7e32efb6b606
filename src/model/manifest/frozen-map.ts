/** A map that refuses changes: `Object.freeze` does not protect the entries of a `Map`. */
class FrozenMap<K, V> extends Map<K, V> {
  readonly #sealed: boolean;

  constructor(entries: Iterable<readonly [K, V]>) {
    super(entries);
    this.#sealed = true;
  }

  override set(key: K, value: V): this {
    // `Map`'s constructor calls this before the field exists.
    if (#sealed in this && this.#sealed) throw new TypeError('this map is frozen');
    return super.set(key, value);
  }

  override delete(): boolean {
    throw new TypeError('this map is frozen');
  }

  override clear(): void {
    throw new TypeError('this map is frozen');
  }
}

export function frozenMap<K, V>(entries: Iterable<readonly [K, V]>): ReadonlyMap<K, V> {
  return Object.freeze(new FrozenMap(entries));
}
