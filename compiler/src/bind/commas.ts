import type { Node } from '@pgsql/types';
import type { ColumnRef } from '../plan.js';
import { placeOf, stringOf } from './ast.js';
import type { BindContext, Location } from './context.js';
import type { BoundFrom, BoundItem } from './from.js';
import { joined, keyEquality, refuseTwice, sidesOf } from './join.js';
import { innerScope, lookUp, referenceOf, resolveColumn, type ScopeItem } from './scope.js';
import { sealedHint } from './subquery.js';

interface Placed {
  readonly bound: BoundItem;
  readonly location: Location;
}

interface Link {
  readonly node: Node;
  readonly sides: readonly [ColumnRef, ColumnRef];
}

/**
 * FROM items that commas separate. Each is joined to one before it by the equalities of sealed keys that WHERE has;
 * those conjuncts are then part of the join.
 */
export function joinCommas(placed: readonly Placed[], where: readonly Node[], ctx: BindContext): BoundFrom {
  const items = placed.flatMap((p) => p.bound.items);
  const using = placed.flatMap((p) => p.bound.using ?? []);
  refuseTwice(items, ctx);
  const [first, ...rest] = placed;
  const keys = new Set<Node>();
  let whole = first?.bound;
  const links = rest.length === 0 ? [] : linksIn(where, items, ctx);
  const waiting = [...rest];
  while (whole !== undefined && waiting.length > 0) {
    const before = whole;
    const next = waiting.find((p) => links.some((l) => connects(l, before, p.bound)));
    if (next === undefined) {
      const detail = 'a comma in FROM joins on no key';
      const hint = `${sealedHint({ scope: innerScope(null, items, new Map()) })}; compare two of them in WHERE`;
      throw ctx.error('unsealedJoin', { detail, hint }, waiting[0]?.location);
    }
    waiting.splice(waiting.indexOf(next), 1);
    const used = links.filter((l) => connects(l, before, next.bound));
    for (const { node } of used) keys.add(node);
    const on = used.map(({ node, sides }) => keyEquality(...sides, items, ctx, placeOf(node)));
    whole = {
      item: joined(before, next.bound, 'inner', on, ctx),
      items: [...before.items, ...next.bound.items],
    };
  }
  if (whole === undefined) throw ctx.error('syntax', { detail: 'FROM is empty' }, undefined);
  return { item: whole.item, items, using, keys };
}

function linksIn(where: readonly Node[], items: readonly ScopeItem[], ctx: BindContext): readonly Link[] {
  return where.flatMap((node) => {
    const [a, b] = sidesOf(node).map((side) => sealedHere(side, items, ctx));
    return a === undefined || a === null || b === undefined || b === null
      ? []
      : [{ node, sides: [a, b] as const }];
  });
}

/** `side` as a sealed column of `items`; null where it is none, or an outer query's. */
function sealedHere(side: Node | undefined, items: readonly ScopeItem[], ctx: BindContext): ColumnRef | null {
  if (side === undefined || !('ColumnRef' in side)) return null;
  const fields = side.ColumnRef.fields ?? [];
  const parts = fields.map(stringOf);
  const reference = fields.some((f) => 'A_Star' in f) ? null : referenceOf(parts, ctx.world);
  const scope = innerScope(null, items, new Map());
  const { location } = side.ColumnRef;
  if (reference === null || lookUp(scope, reference, ctx, location)?.column.sealed !== true) return null;
  return resolveColumn(scope, parts, ctx, location).ref;
}

function connects({ sides: [a, b] }: Link, before: BoundItem, next: BoundItem): boolean {
  const within = (ref: ColumnRef, { items }: BoundItem): boolean =>
    items.some((i) => i.source === ref.source);
  return (within(a, before) && within(b, next)) || (within(b, before) && within(a, next));
}
