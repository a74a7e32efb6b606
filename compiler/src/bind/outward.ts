import type { BindContext } from './context.js';
import { joinsAnywhere, type Scope, type ScopeColumn, type ScopeItem } from './scope.js';

/** A column of a query around, `level` levels up. */
export interface Outer {
  readonly item: ScopeItem;
  readonly column: ScopeColumn;
  readonly level: number;
}

/**
 * Whether a query inside another may name `outer` wherever it likes, and not beside `=` and a sealed key alone. In raw
 * SQL it may; so it may where the manifest lets entities be joined on anything and no content stands between the two;
 * and where nothing is joined at all, since the query has no FROM.
 */
export function looksOutFreely(scope: Scope, { item, column, level }: Outer, ctx: BindContext): boolean {
  if (ctx.world === 'physical') return true;
  // The content of an entity: whoever reads it names the keys that it is read for.
  if (column.source !== undefined) return false;
  const between: ScopeItem[] = [];
  let at: Scope | null = scope;
  for (let i = 0; i < level && at !== null; i++, at = at.parent) between.push(...at.items);
  return between.length === 0 || [item, ...between].every((i) => joinsAnywhere(i, ctx));
}
