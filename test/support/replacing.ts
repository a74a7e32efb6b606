/** `original` with some of its operations replaced; the others, and what they keep private, stay its own. */
export function replacing<T extends object>(original: T, operations: Partial<T>): T {
  return new Proxy(original, {
    get(target, key) {
      const value: unknown = Reflect.get(key in operations ? operations : target, key);
      return typeof value === 'function' && !(key in operations) ? value.bind(target) : value;
    },
  });
}
