import type { BoundItem } from './bound-from.js';
import type { BindContext } from './context.js';
import type { Environment, Look } from './environment.js';
import type { Outer } from './outward.js';
import type { Scope } from './scope.js';

/** Whether every query between `scope` and the one `level` around it is LATERAL, or sees what a LATERAL one sees. */
export function seesOutward(scope: Scope, level: number): boolean {
  let at = scope.parent;
  for (let i = 0; i < level; i++) {
    if (at === null || (at.lateral !== true && at.items.length > 0)) return false;
    at = at.parent;
  }
  return level > 0;
}

/** Whether nothing with FROM items of its own stands between `scope` and the one `level` around it. */
export function reachesNext(scope: Scope, level: number): boolean {
  let at = scope.parent;
  for (let i = 1; i < level; i++) {
    if (at === null || at.items.length > 0) return false;
    at = at.parent;
  }
  return true;
}

/**
 * Whether `outer` may be named in the place of `env`, in a LATERAL query, where it is no equality of sealed keys. The
 * content of an entity may not: whoever reads it names the keys that it is read for.
 */
export function seesBeside({ scope, look }: Environment, { item, column, level }: Outer): boolean {
  if (look === undefined || column.source !== undefined || !seesOutward(scope, level)) return false;
  if (look === 'all') return true;
  return item.content !== true && (look === 'free' || item.relation === null);
}

/**
 * What the conditions of a LATERAL query may name of the items around it. It joins them to what stands in its own FROM,
 * as ON does: what queries have worked out on any predicate, entities beside an equality of sealed keys.
 *
 * @param keyed whether one of them is such an equality
 */
export function conditionsLook(from: BoundItem | null, keyed: boolean, ctx: BindContext): Look | undefined {
  if (ctx.world === 'physical' || from === null) return 'free';
  if (from.content) return undefined;
  return !from.named || keyed || ctx.catalog.joins === 'any' ? 'free' : 'made';
}
