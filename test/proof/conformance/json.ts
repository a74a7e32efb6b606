/** A member of JSON; undefined where there is none. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (v, key) => (typeof v === 'object' && v !== null ? Reflect.get(v, key) : undefined),
    value,
  );
}

/** A list in JSON; throws where there is none, so that no check passes over nothing. */
export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const list = at(value, ...path);
  if (!Array.isArray(list)) throw new Error(`there is no list at ${path.join('.')}`);
  return list;
}
