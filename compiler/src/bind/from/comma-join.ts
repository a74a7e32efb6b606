import type { Node } from '@pgsql/types';
import type { Operation } from '../../plan/plan.js';
import { leavesOf } from '../../plan/walk.js';
import { firstLocation, nameParts, stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import {
  type BoundFrom,
  type BoundItem,
  innerScope,
  lookUp,
  referenceOf,
  resolveColumn,
  type ScopeItem,
} from '../scope.js';
import { isGenerated, joined, plainEquality, refuseDuplicateAliases } from './join.js';

interface CommaItem {
  readonly bound: BoundItem;
  readonly node: Node;
}

interface CommaEquality {
  readonly node: Node;
  readonly order: number;
  readonly equality: Operation;
  readonly sources: readonly number[];
}

/**
 * Joins comma-separated FROM items. WHERE conjuncts that equate sealed keys become join conditions; all others remain
 * filters.
 */
export function joinCommas(
  placed: readonly CommaItem[],
  where: readonly Node[],
  ctx: BindContext,
): BoundFrom {
  const made = placed.some(isLateral) ? [] : placed.filter((p) => isGenerated(p.bound.item));
  if (made.length === 0 || made.length === placed.length) return joinOnKeys(placed, where, ctx);
  // Set-returning functions are joined last.
  const others = joinOnKeys(
    placed.filter((p) => !made.includes(p)),
    where,
    ctx,
  );
  const whole = made.reduce<BoundItem>((all, p) => joined(all, p.bound, 'inner', []), others);
  return { ...others, item: whole.item, items: placed.flatMap((p) => p.bound.items) };
}

/** True if the item may refer to columns of preceding items, in which case the order must not change. */
function isLateral({ bound }: CommaItem): boolean {
  return leavesOf(bound.item).some((l) => l.kind === 'derived' && l.lateral === true);
}

function joinOnKeys(placed: readonly CommaItem[], where: readonly Node[], ctx: BindContext): BoundFrom {
  const items = placed.flatMap((p) => p.bound.items);
  const using = placed.flatMap((p) => p.bound.using ?? []);
  refuseDuplicateAliases(items, ctx);
  const [first, ...rest] = placed;
  if (first === undefined) throw ctx.syntax('FROM is empty', undefined);
  const { named, content } = first.bound;
  if (rest.length === 0) return { item: first.bound.item, items, using, keys: NO_KEYS, named, content };
  const keys = new Set<Node>();
  let whole = first.bound;
  const links = ctx.world === 'physical' ? [] : linksIn(where, items, ctx);
  const near = neighbours(placed, links);
  const joinedSoFar = new Set<number>([0]);
  const reachable = new Set(near.get(0)?.keys());
  const waiting = rest.map((p, i) => ({ p, at: i + 1 }));
  const inOrder = placed.some(isLateral);
  while (waiting.length > 0) {
    const before = whole;
    const eligible = inOrder ? waiting.slice(0, 1) : waiting;
    const linked = eligible.findIndex(({ at }) => reachable.has(at));
    // Prefer items without content, so that an item with content is joined after one that links to it.
    const free = before.content ? -1 : eligible.findIndex(({ p }) => !p.bound.content);
    const [next] = waiting.splice(Math.max(linked >= 0 ? linked : free, 0), 1);
    if (next === undefined) break;
    const used = [...(near.get(next.at) ?? [])].flatMap(([at, found]) => (joinedSoFar.has(at) ? found : []));
    used.sort((a, b) => a.order - b.order);
    joinedSoFar.add(next.at);
    for (const at of near.get(next.at)?.keys() ?? []) reachable.add(at);
    for (const { node } of used) keys.add(node);
    whole = joined(
      before,
      next.p.bound,
      'inner',
      used.map((l) => l.equality),
    );
  }
  return { ...whole, items, using, keys };
}

const NO_KEYS: ReadonlySet<Node> = new Set();

function linksIn(
  where: readonly Node[],
  items: readonly ScopeItem[],
  ctx: BindContext,
): readonly CommaEquality[] {
  return where.flatMap((node, order) => {
    const equality = sealedEquality(node, items, ctx);
    return equality === null ? [] : [{ node, order, ...equality }];
  });
}

/** Parses `node` as an equality of two sealed columns of `items`; null for anything else. */
function sealedEquality(node: Node, items: readonly ScopeItem[], ctx: BindContext) {
  const expr = 'A_Expr' in node ? node.A_Expr : null;
  if (expr?.kind !== 'AEXPR_OP' || nameParts(expr.name).join('.') !== '=') return null;
  const [a, b] = [expr.lexpr, expr.rexpr].map((side) => sealedHere(side, items, ctx));
  if (a === undefined || a === null || b === undefined || b === null) return null;
  const equality = plainEquality(a, b, firstLocation(node), ctx);
  return equality === null ? null : { equality, sources: [a.source, b.source] };
}

/** Resolves `side` to a sealed column of `items`; null for anything else, including outer columns. */
function sealedHere(side: Node | undefined, items: readonly ScopeItem[], ctx: BindContext) {
  if (side === undefined || !('ColumnRef' in side)) return null;
  const fields = side.ColumnRef.fields ?? [];
  const parts = fields.map(stringOf);
  const reference = fields.some((f) => 'A_Star' in f) ? null : referenceOf(parts, ctx.world);
  const scope = innerScope(null, items, new Map());
  const { location } = side.ColumnRef;
  if (reference === null || lookUp(scope, reference, ctx, location)?.column.sealed !== true) return null;
  return resolveColumn(scope, parts, ctx, location).ref;
}

function neighbours(placed: readonly CommaItem[], links: readonly CommaEquality[]) {
  const placeOfSource = new Map(
    placed.flatMap((p, i) => p.bound.items.map((item) => [item.source, i] as const)),
  );
  const near = new Map<number, Map<number, CommaEquality[]>>();
  const note = (from: number, to: number, link: CommaEquality): void => {
    const others = near.get(from) ?? new Map<number, CommaEquality[]>();
    near.set(from, others);
    others.set(to, [...(others.get(to) ?? []), link]);
  };
  for (const link of links) {
    const [a, b] = link.sources.map((source) => placeOfSource.get(source));
    if (a === undefined || b === undefined || a === b) continue;
    note(a, b, link);
    note(b, a, link);
  }
  return near;
}
