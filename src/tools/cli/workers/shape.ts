/** Says whether a value is what it must be: messages of another process are believed only then. */
export type Guard<T> = (value: unknown) => value is T;

export type GuardedBy<G> = G extends Guard<infer T> ? T : never;

export const text: Guard<string> = (value) => typeof value === 'string';
export const flag: Guard<boolean> = (value) => typeof value === 'boolean';
export const number: Guard<number> = (value): value is number =>
  typeof value === 'number' && !Number.isNaN(value);
export const bytes: Guard<Uint8Array> = (value) => value instanceof Uint8Array;
export const nothing: Guard<null> = (value): value is null => value === null;

export function nullOr<T>(guard: Guard<T>): Guard<T | null> {
  return (value): value is T | null => value === null || guard(value);
}

export function oneOf<const T extends string>(...words: readonly T[]): Guard<T> {
  return (value): value is T => words.some((word) => word === value);
}

export function listOf<T>(guard: Guard<T>): Guard<readonly T[]> {
  return (value): value is readonly T[] => Array.isArray(value) && value.every((item) => guard(item));
}

/** An object with these members; further ones are let pass. */
export function record<const F extends Readonly<Record<string, Guard<unknown>>>>(
  fields: F,
): Guard<{ readonly [K in keyof F]: GuardedBy<F[K]> }> {
  const members = Object.entries(fields);
  return (value): value is { readonly [K in keyof F]: GuardedBy<F[K]> } =>
    typeof value === 'object' &&
    value !== null &&
    members.every(([name, guard]) => guard(Reflect.get(value, name)));
}

/** An object that the same code made in the other process, whose members nobody looks at here. */
export function made<T extends object>(): Guard<T> {
  return (value): value is T => typeof value === 'object' && value !== null;
}
