import { useEffect, useState } from 'react';

/**
 * State for typed and chosen values that survives a reload and a sign-in, because it is stored in the browser tab.
 * Signing out removes it.
 */
export function useKept<T>(name: string, initial: T): readonly [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => stored(keyOf(name), initial));
  useEffect(() => {
    try {
      if (value === initial) sessionStorage.removeItem(keyOf(name));
      else sessionStorage.setItem(keyOf(name), JSON.stringify(value));
    } catch {
      // If storage is full or unavailable, the value is not stored; nothing else depends on it.
    }
  }, [name, value, initial]);
  return [value, setValue];
}

function keyOf(name: string): string {
  return `osl.kept.${name}`;
}

/** Returns the stored value; `initial` if there is none, or if its shape is that of another version of the page. */
function stored<T>(key: string, initial: T): T {
  try {
    const read: unknown = JSON.parse(sessionStorage.getItem(key) ?? 'null');
    return hasShape(read, initial) ? read : initial;
  } catch {
    return initial;
  }
}

function hasShape<T>(value: unknown, like: T): value is T {
  if (typeof like !== 'object' || like === null) return typeof value === typeof like;
  if (typeof value !== 'object' || value === null) return false;
  const members = new Map<string, unknown>(Object.entries(value));
  const known = Object.entries(like);
  return (
    members.size === known.length && known.every(([name, one]) => typeof members.get(name) === typeof one)
  );
}
