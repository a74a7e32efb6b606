/**
 * The names of common tables that hide relations at one place of a statement: the first `count` of a WITH clause, and
 * those around it. Clauses are linked, not copied, so that a long one costs what it says.
 */
export interface CommonNames {
  readonly order: ReadonlyMap<string, number>;
  readonly count: number;
  readonly around: CommonNames | null;
}

/** Whether `name` means a common table where `scope` holds. */
export function isCommon(name: string, scope: CommonNames | null): boolean {
  for (let at = scope; at !== null; at = at.around) {
    if ((at.order.get(name) ?? at.count) < at.count) return true;
  }
  return false;
}

/** A WITH clause: what holds in its table `index`, and behind it. */
export function withClauseNames(names: readonly string[], recursive: boolean, around: CommonNames | null) {
  const order = new Map<string, number>();
  for (const [i, name] of names.entries()) if (!order.has(name)) order.set(name, i);
  const first = (count: number): CommonNames => ({ order, count, around });
  return {
    within: (index: number): CommonNames => first(recursive ? names.length : index),
    behind: first(names.length),
  };
}
