import type { JoinExpr, Node } from '@pgsql/types';
import type { ColumnRef, Join, Operation } from '../plan.js';
import { conjunctsOf, type Location, nameParts, placeOf, stringOf } from './ast.js';
import type { BoundItem } from './bound-from.js';
import type { BindContext } from './context.js';
import type { Environment } from './environment.js';
import { bindItem } from './from.js';
import { infix } from './infix.js';
import { freeJoin } from './physical.js';
import {
  innerScope,
  isNameable,
  resolveColumn,
  type Scope,
  type ScopeItem,
  type UsingColumn,
} from './scope.js';
import { sealedColumn, sealedHint } from './subquery.js';

const WRITE_ON = 'write ON with an equality of sealed keys';

/**
 * `left JOIN right` with ON, USING or NATURAL: always an equality of sealed keys, one of each side. In raw SQL ON may
 * hold any predicate, and all columns are keys.
 */
export function bindJoin(
  node: JoinExpr,
  ctx: BindContext,
  outer: Scope | null,
  tables: Scope['tables'],
): BoundItem {
  const at = placeOf(node.rarg);
  if (node.alias !== undefined) throw ctx.unsupported('an alias of a join', at, 'name each side');
  const type = joinType(node, ctx, at);
  const byName = node.isNatural === true || node.usingClause !== undefined;
  const physical = ctx.world === 'physical';
  if (physical && byName) refuseByName(node, type, ctx, at);
  const joinsOn = node.quals !== undefined || byName || physical;
  if (node.larg === undefined || node.rarg === undefined || !joinsOn) {
    const detail = 'a join without ON joins on no key';
    throw ctx.error('unsealedJoin', { detail, hint: WRITE_ON }, at);
  }
  const left = bindItem(node.larg, ctx, outer, tables);
  const right = bindItem(node.rarg, ctx, outer, tables);
  refuseTwice([...left.items, ...right.items], ctx);
  if (byName) return joinByName(namesOf(node, left, right, ctx, at), left, right, type, ctx, at);
  const items = [...left.items, ...right.items];
  if (physical) {
    const env = onEnvironment(items, ctx, tables);
    return { item: freeJoin(node.quals, type, left, right, env, at), items, using: usingOf(left, right) };
  }
  const on = bindCondition(node.quals, left.items, right.items, ctx, tables);
  return { item: joinItems(left, right, type, on, ctx), items, using: usingOf(left, right) };
}

/** What NATURAL joins on would hang on what the caller may see; a column of a FULL USING is of neither side. */
function refuseByName(node: JoinExpr, type: JoinType, ctx: BindContext, at: Location): void {
  if (node.isNatural === true) throw ctx.unsupported('NATURAL JOIN of tables', at, 'use USING or ON');
  if (type === 'full') throw ctx.unsupported('FULL JOIN with USING', at, 'use ON');
}

/** Before ON is read, which could not tell the two from each other. */
export function refuseTwice(items: readonly ScopeItem[], ctx: BindContext): void {
  const seen = new Set<string>();
  for (const { alias, location } of items) {
    if (seen.has(alias)) throw ctx.error('duplicateAlias', { alias }, location);
    seen.add(alias);
  }
}

type JoinType = 'inner' | 'left' | 'right' | 'full';

function joinType(node: JoinExpr, ctx: BindContext, at: Location): JoinType {
  switch (node.jointype) {
    case 'JOIN_INNER':
      return 'inner';
    case 'JOIN_LEFT':
      return 'left';
    case 'JOIN_RIGHT':
      return 'right';
    case 'JOIN_FULL':
      if (ctx.world === 'physical') return 'full';
      throw ctx.unsupported('FULL JOIN', at, 'use LEFT JOIN');
    default:
      throw ctx.unsupported('this kind of join', at, 'use LEFT JOIN');
  }
}

/** A RIGHT JOIN is a LEFT JOIN with its sides swapped. */
export function joinItems(
  left: BoundItem,
  right: BoundItem,
  type: JoinType,
  on: readonly Operation[],
  ctx: BindContext,
): Join {
  const swapped = type === 'right';
  const sides = {
    kind: 'join',
    type: type === 'inner' ? 'inner' : 'left',
    left: swapped ? right.item : left.item,
    right: swapped ? left.item : right.item,
    on: Object.freeze(on),
  } as const;
  return Object.freeze(ctx.world === 'physical' ? { ...sides, sealed: false } : { ...sides, sealed: true });
}

function usingOf(left: BoundItem, right: BoundItem): readonly UsingColumn[] {
  return [...(left.using ?? []), ...(right.using ?? [])];
}

// ---- ON

/** ON: one or more equalities of a sealed key of the left side and one of the right side. */
function bindCondition(
  quals: Node | undefined,
  left: readonly ScopeItem[],
  right: readonly ScopeItem[],
  ctx: BindContext,
  tables: Scope['tables'],
): readonly Operation[] {
  const env = onEnvironment([...left, ...right], ctx, tables);
  return conjunctsOf(quals).map((c) => sealedEquality(c, left, right, env));
}

function onEnvironment(items: readonly ScopeItem[], ctx: BindContext, tables: Scope['tables']): Environment {
  return {
    ctx,
    scope: innerScope(null, items, tables),
    clause: 'ON',
    aggregates: false,
    windows: false,
    namedWindows: new Map(),
    policy: false,
  };
}

function sealedEquality(
  node: Node,
  left: readonly ScopeItem[],
  right: readonly ScopeItem[],
  env: Environment,
): Operation {
  const { ctx } = env;
  const at = placeOf(node);
  const [a, b] = sidesOf(node).map((side) => (side === undefined ? null : sealedColumn(side, env)));
  const belongs = (e: typeof a, items: readonly ScopeItem[]): boolean =>
    e?.kind === 'column' && items.some((i) => i.source === e.source);
  const straight = belongs(a, left) && belongs(b, right);
  const crossed = belongs(a, right) && belongs(b, left);
  if (a?.kind !== 'column' || b?.kind !== 'column' || !(straight || crossed)) {
    const detail = 'ON must be an equality of sealed keys, one of each side';
    throw ctx.error('unsealedJoin', { detail, hint: sealedHint(env) }, at);
  }
  return keyEquality(a, b, env.scope.items, ctx, at);
}

/** Both sides of `a = b`; neither where `node` is something else. */
export function sidesOf(node: Node): readonly [Node | undefined, Node | undefined] {
  const expr = 'A_Expr' in node ? node.A_Expr : null;
  const isEquality = expr?.kind === 'AEXPR_OP' && nameParts(expr.name).join('.') === '=';
  return isEquality ? [expr.lexpr, expr.rexpr] : [undefined, undefined];
}

export function keyEquality(
  a: ColumnRef,
  b: ColumnRef,
  items: readonly ScopeItem[],
  ctx: BindContext,
  at: Location,
): Operation {
  const equality = infix('=', a, b, at, ctx);
  if (equality.kind === 'operation' && equality.left?.kind === 'column' && equality.right.kind === 'column')
    return equality;
  if (ctx.world === 'physical') {
    const construct = `USING over columns of types ${a.type} and ${b.type}`;
    throw ctx.unsupported(construct, at, 'use ON');
  }
  const detail = `keys of types ${a.type} and ${b.type} cannot be joined`;
  throw ctx.error(
    'unsealedJoin',
    { detail, hint: sealedHint({ scope: innerScope(null, items, new Map()) }) },
    at,
  );
}

// ---- USING and NATURAL

/** The names that join: those of USING, or all that both sides show. */
function namesOf(
  node: JoinExpr,
  left: BoundItem,
  right: BoundItem,
  ctx: BindContext,
  at: Location,
): readonly string[] {
  if (node.isNatural !== true) return (node.usingClause ?? []).map(stringOf);
  const offered = new Set(shownNames(right));
  const names = [...new Set(shownNames(left))].filter((name) => offered.has(name));
  if (names.length > 0) return names;
  throw ctx.error(
    'unsealedJoin',
    { detail: 'NATURAL JOIN finds no column on both sides', hint: WRITE_ON },
    at,
  );
}

function shownNames({ items }: BoundItem): readonly string[] {
  return items.flatMap((item) =>
    [...item.columns]
      .filter(([shown, c]) => c.starred && isNameable(shown) && item.joined?.has(shown) !== true)
      .map(([shown]) => shown),
  );
}

/** The column that is kept stands for both; the other one only a qualified name means. */
function joinByName(
  names: readonly string[],
  left: BoundItem,
  right: BoundItem,
  type: JoinType,
  ctx: BindContext,
  at: Location,
): BoundItem {
  const pairs = names.map((name) => ({
    name,
    a: keyNamed(name, left.items, ctx, at),
    b: keyNamed(name, right.items, ctx, at),
  }));
  const all = [...left.items, ...right.items];
  const on = pairs.map(({ name, a, b }) => {
    if (a.sealed && b.sealed) return keyEquality(a.ref, b.ref, all, ctx, at);
    const hint = sealedHint({ scope: innerScope(null, all, new Map()) });
    throw ctx.error('unsealedJoin', { detail: `\`${name}\` is not a sealed key on both sides`, hint }, at);
  });
  const hidden = new Map<number, Set<string>>();
  for (const { name, a, b } of pairs) {
    const source = (type === 'right' ? a : b).item.source;
    hidden.set(source, (hidden.get(source) ?? new Set()).add(name));
  }
  const items = all.map((item) => {
    const more = hidden.get(item.source);
    return more === undefined ? item : { ...item, joined: new Set([...(item.joined ?? []), ...more]) };
  });
  const kept = pairs.map(({ name, a, b }) => ({ source: (type === 'right' ? b : a).item.source, name }));
  return { item: joinItems(left, right, type, on, ctx), items, using: [...kept, ...usingOf(left, right)] };
}

function keyNamed(name: string, items: readonly ScopeItem[], ctx: BindContext, at: Location) {
  const { ref, column, item } = resolveColumn(innerScope(null, items, new Map()), [name], ctx, at);
  return { ref, item, sealed: column.sealed };
}
