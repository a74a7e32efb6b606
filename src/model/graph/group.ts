/** `all` by the key of each, in order. */
export function groupedBy<T>(all: readonly T[], key: (one: T) => string): ReadonlyMap<string, readonly T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const known = groups.get(key(one));
    if (known === undefined) groups.set(key(one), [one]);
    else known.push(one);
  }
  return groups;
}
