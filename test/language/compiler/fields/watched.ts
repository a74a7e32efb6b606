/** A tree that notes which of its fields are looked at. */
export interface WatchedTree<T> {
  readonly tree: T;
  /** Fields that are there and that nobody looked at, each as `Type.field`, with the value. */
  unread(): readonly { readonly field: string; readonly value: unknown }[];
  /** True if `type` has nodes whose `field` nobody looked at, there or not. */
  passedOver(type: string, field: string): boolean;
}

/** @param typeOf the type of each field of each node type, as the grammar's own types say it */
export function watched<T extends object>(
  tree: T,
  typeOf: (type: string, field: string) => string | undefined,
): WatchedTree<T> {
  const nodes = new Map<object, { readonly type: string; readonly read: Set<string> }>();
  const proxies = new Map<object, object>();

  const wrap = (value: unknown, type: string | undefined): unknown => {
    if (typeof value !== 'object' || value === null || type === undefined) return value;
    const known = proxies.get(value);
    if (known !== undefined) return known;
    const proxy = Array.isArray(value) ? listOf(value, type) : nodeOf(value, type);
    proxies.set(value, proxy);
    return proxy;
  };

  const listOf = (list: readonly unknown[], type: string): object =>
    list.map((item) => wrap(item, type)) as object;

  const nodeOf = (node: object, type: string): object => {
    const read = new Set<string>();
    // `Node` is an envelope: its one member is named by the node's type, and who opens it has read it.
    if (type !== 'Node') nodes.set(node, { type, read });
    let listed: string | symbol | null = null;
    return new Proxy(node, {
      has: (target, key) => {
        read.add(String(key));
        return Reflect.has(target, key);
      },
      // Whoever lists all members, to copy them or to find a place, does not read them by that.
      getOwnPropertyDescriptor: (target, key) => {
        listed = key;
        return Reflect.getOwnPropertyDescriptor(target, key);
      },
      get: (target, key) => {
        if (listed !== key) read.add(String(key));
        listed = null;
        const field = type === 'Node' ? String(key) : typeOf(type, String(key));
        return wrap(Reflect.get(target, key), field);
      },
    });
  };

  return {
    tree: wrap(tree, 'Node') as T, // a proxy has the shape of what it stands for
    unread: () =>
      [...nodes].flatMap(([node, { type, read }]) =>
        Object.entries(node)
          .filter(([field]) => !read.has(field))
          .map(([field, value]) => ({ field: `${type}.${field}`, value: value as unknown })),
      ),
    passedOver: (wanted, field) =>
      [...nodes.values()].some(({ type, read }) => type === wanted && !read.has(field)),
  };
}
