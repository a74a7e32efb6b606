/** Names come from a file: `__proto__` is one like any other. */
export function members<T>(entries: readonly (readonly [string, T])[]): Record<string, T> {
  const out: Record<string, T> = Object.create(null);
  for (const [name, value] of entries) out[name] = value;
  return out;
}
