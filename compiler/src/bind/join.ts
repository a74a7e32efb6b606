import type { JoinExpr, Node } from '@pgsql/types';
import { equatesColumns } from '../key-equality.js';
import type { ColumnRef, Expr, FromItem, Join, Operation } from '../plan.js';
import { leavesOf, queryOf, someExpr, visitExpr } from '../walk.js';
import { conjunctsOf, type Location, nameParts, placeOf, stringOf } from './ast.js';
import type { BoundItem } from './bound-from.js';
import type { BindContext } from './context.js';
import { type Environment, plainEnvironment } from './environment.js';
import { bindPredicateNode } from './expression.js';
import { bindItem } from './from.js';
import { infix } from './infix.js';
import { asEquality, nullSafeSides } from './null-safe.js';
import {
  innerScope,
  isNameable,
  resolveColumn,
  type Scope,
  type ScopeColumn,
  type ScopeItem,
  TWICE,
} from './scope.js';
import { sealedColumn, sealedHint } from './subquery.js';

const WRITE_ON = 'write ON with an equality of sealed keys';

/**
 * `left JOIN right` with ON, USING or NATURAL, or CROSS JOIN. What it must join on, `keyRule` says; whatever else
 * stands in ON must hold as well.
 */
export function bindJoin(
  node: JoinExpr,
  ctx: BindContext,
  outer: Scope | null,
  tables: Scope['tables'],
  before: readonly ScopeItem[],
): BoundItem {
  const at = placeOf(node.rarg);
  if (node.alias !== undefined) throw ctx.unsupported('an alias of a join', at, 'name each side');
  const type = joinType(node, ctx, at);
  const byName = node.isNatural === true || node.usingClause !== undefined;
  if (node.larg === undefined || node.rarg === undefined) throw unjoined(ctx, at);
  const left = bindItem(node.larg, ctx, outer, tables, before);
  // As in Postgres, what an outer join may leave out gives a function of the other side nothing.
  const given = type === 'inner' || type === 'left' ? [...before, ...left.items] : before;
  const right = bindItem(node.rarg, ctx, outer, tables, given);
  refuseTwice([...left.items, ...right.items], ctx);
  const rule = keyRule(left, right, ctx);
  if (byName) return joinByName(node, left, right, type, ctx, at);
  if (node.quals === undefined) {
    if (rule !== 'none') throw unjoined(ctx, at);
    return joined(left, right, type, { sealed: false, on: [] });
  }
  const env = onEnvironment([...left.items, ...right.items], ctx, tables);
  const conditions = bindConditions(conjunctsOf(node.quals), left, right, rule, env);
  if (type === 'full') refuseFull(conditions.on, left, right, at, ctx);
  return joined(left, right, type, conditions);
}

function unjoined(ctx: BindContext, at: Location) {
  return ctx.error('unsealedJoin', { detail: 'a join without ON joins on no key', hint: WRITE_ON }, at);
}

/**
 * What a join must equate: `only` sealed keys, one of each side, where passages, a walk or evidence stand on a side;
 * at least `one` pair of them where entities stand on both sides by their names; otherwise, and wherever the manifest
 * lets entities be joined on anything, `none`. Raw SQL has no sealed keys, and rows that functions make of values are
 * no entity's. Source: contract, join rule.
 */
type KeyRule = 'only' | 'one' | 'none';

export function keyRule(left: BoundItem, right: BoundItem, ctx: BindContext): KeyRule {
  if (ctx.world === 'physical' || isMade(left.item) || isMade(right.item)) return 'none';
  if (left.content || right.content) return 'only';
  return ctx.catalog.joins !== 'any' && left.named && right.named ? 'one' : 'none';
}

/** Of joins, which are asked for it again by each join around them. */
const MADE = new WeakMap<Join, boolean>();

/** Whether functions make all of its rows. */
export function isMade(item: FromItem): boolean {
  if (item.kind !== 'join') return item.kind === 'rows';
  const made = MADE.get(item) ?? (isMade(item.left) && isMade(item.right));
  MADE.set(item, made);
  return made;
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
      return 'full';
    default:
      throw ctx.unsupported('this kind of join', at, 'use LEFT JOIN');
  }
}

/** What a join joins on, and whether that has an equality of sealed keys. */
interface Conditions {
  readonly sealed: boolean;
  readonly on: readonly Expr[];
}

/** A RIGHT JOIN is a LEFT JOIN with its sides swapped. */
export function joined(
  left: BoundItem,
  right: BoundItem,
  type: JoinType,
  { sealed, on }: Conditions,
): BoundItem {
  const swapped = type === 'right';
  const item: Join = Object.freeze({
    kind: 'join',
    sealed,
    type: type === 'right' ? 'left' : type,
    left: swapped ? right.item : left.item,
    right: swapped ? left.item : right.item,
    on: Object.freeze(on),
  });
  return {
    item,
    items: [...left.items, ...right.items],
    using: [...(left.using ?? []), ...(right.using ?? [])],
    named: left.named || right.named,
    content: left.content || right.content,
  };
}

// ---- ON

function bindConditions(
  conjuncts: readonly Node[],
  left: BoundItem,
  right: BoundItem,
  rule: KeyRule,
  env: Environment,
): Conditions {
  const keys = conjuncts.map((c) =>
    env.ctx.world === 'physical' ? null : sealedEquality(c, left, right, rule, env),
  );
  const missing = rule === 'only' ? keys.indexOf(null) : keys.every((k) => k === null) ? 0 : -1;
  if (rule !== 'none' && missing >= 0) {
    const detail = 'ON must be an equality of sealed keys, one of each side';
    throw env.ctx.error('unsealedJoin', { detail, hint: sealedHint(env) }, placeOf(conjuncts[missing]));
  }
  return {
    sealed: keys.some((k) => k !== null),
    on: conjuncts.map((c, i) => keys[i] ?? bindCondition(c, left, right, env)),
  };
}

function bindCondition(node: Node, left: BoundItem, right: BoundItem, env: Environment): Expr {
  const { ctx } = env;
  const on = bindPredicateNode(node, env);
  if (!someExpr(on, (e) => queryOf(e) !== null))
    return asEquality(on, [left.item, right.item], placeOf(node), ctx);
  throw ctx.unsupported('a subquery in ON', ctx.locationOf(on), 'put it in WHERE, or join a derived table');
}

/**
 * The engine makes a FULL JOIN by an equality of its sides, whatever else must hold, or of all pairs: it must find the
 * partners of both sides.
 */
function refuseFull(
  on: readonly Expr[],
  left: BoundItem,
  right: BoundItem,
  at: Location,
  ctx: BindContext,
): void {
  const sides = [left, right].map((side) => new Set(leavesOf(side.item).map((l) => l.id)));
  const sideOf = (e: Expr): number => {
    const sources: number[] = [];
    visitExpr(e, (x) => {
      if (x.kind === 'column') sources.push(x.source);
    });
    return sources.length === 0 ? -1 : sides.findIndex((side) => sources.every((s) => side.has(s)));
  };
  const equatesSides = (e: Expr): boolean =>
    e.kind === 'operation' &&
    e.definition.name === '=' &&
    e.left !== null &&
    [sideOf(e.left), sideOf(e.right)].sort().join() === '0,1';
  if (on.some(equatesSides) || on.every((e) => e.kind === 'boolean')) return;
  const construct = 'FULL JOIN on conditions that are neither merge-joinable nor hash-joinable';
  throw ctx.unsupported(construct, at, 'join with = between the two sides');
}

function onEnvironment(items: readonly ScopeItem[], ctx: BindContext, tables: Scope['tables']): Environment {
  return plainEnvironment(ctx, innerScope(null, items, tables), 'ON');
}

/** `node` as an equality of a sealed key of the left side and one of the right side; null where it is none. */
function sealedEquality(
  node: Node,
  left: BoundItem,
  right: BoundItem,
  rule: KeyRule,
  env: Environment,
): Expr | null {
  const { ctx } = env;
  const nullSafe = nullSafeSides(node);
  const sides = (nullSafe ?? sidesOf(node)).map((n) => (n === undefined ? null : sealedColumn(n, env)));
  const [a, b] = sides;
  const belongs = (e: typeof a, { items }: BoundItem): boolean =>
    e?.kind === 'column' && items.some((i) => i.source === e.source);
  const straight = belongs(a, left) && belongs(b, right);
  const crossed = belongs(a, right) && belongs(b, left);
  if (a?.kind !== 'column' || b?.kind !== 'column' || !(straight || crossed)) return null;
  if (nullSafe === null && (rule !== 'none' || a.type === b.type))
    return keyEquality(a, b, env.scope.items, ctx, placeOf(node));
  // Content is joined on what is clear and there.
  if (nullSafe === null || rule === 'only') return null;
  const found = bindCondition(node, left, right, env);
  return equatesColumns(found) ? found : null;
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

/**
 * What a join by names must equate. What NATURAL joins entities or tables on hangs on what the caller may see, so that it
 * must be keys whatever stands on the other side, and raw SQL has none; what queries have worked out has the columns that
 * they list.
 */
function nameRule(
  node: JoinExpr,
  left: BoundItem,
  right: BoundItem,
  ctx: BindContext,
  at: Location,
): KeyRule {
  const listed = [left, right].every((side) => !side.named && !side.content);
  if (node.isNatural !== true || listed) return keyRule(left, right, ctx);
  if (ctx.world === 'physical') throw ctx.unsupported('NATURAL JOIN of tables', at, 'use USING or ON');
  return 'only';
}

/** The names that join: those of USING, or all that both sides show. */
function namesOf(
  node: JoinExpr,
  left: BoundItem,
  right: BoundItem,
  rule: KeyRule,
  ctx: BindContext,
  at: Location,
): readonly string[] {
  if (node.isNatural !== true) return (node.usingClause ?? []).map(stringOf);
  const offered = new Set(shownNames(right));
  const names = [...new Set(shownNames(left))].filter((name) => offered.has(name));
  if (names.length > 0 || rule === 'none') return names;
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
  node: JoinExpr,
  left: BoundItem,
  right: BoundItem,
  type: JoinType,
  ctx: BindContext,
  at: Location,
): BoundItem {
  const rule = nameRule(node, left, right, ctx, at);
  const pairs = namesOf(node, left, right, rule, ctx, at).map((name) => ({
    name,
    a: keyNamed(name, left.items, ctx, at),
    b: keyNamed(name, right.items, ctx, at),
  }));
  const all = [...left.items, ...right.items];
  const unsealed = pairs.filter(({ a, b }) => !a.sealed || !b.sealed);
  const [first] = unsealed;
  if (first !== undefined && (rule === 'only' || (rule === 'one' && unsealed.length === pairs.length))) {
    const hint = sealedHint({ scope: innerScope(null, all, new Map()) });
    const detail = `\`${first.name}\` is not a sealed key on both sides`;
    throw ctx.error('unsealedJoin', { detail, hint }, at);
  }
  const on = pairs.map(({ a, b }) => keyEquality(a.ref, b.ref, all, ctx, at));
  const hidden = new Map<number, Set<string>>();
  for (const { name, a, b } of pairs) {
    for (const { item } of type === 'full' ? [a, b] : [type === 'right' ? a : b])
      hidden.set(item.source, (hidden.get(item.source) ?? new Set()).add(name));
  }
  const items = all.map((item) => {
    const more = hidden.get(item.source);
    return more === undefined ? item : { ...item, joined: new Set([...(item.joined ?? []), ...more]) };
  });
  const both = type === 'full' ? mergedItem(pairs, ctx) : null;
  const kept = pairs.map(({ name, a, b }) => ({
    source: both?.source ?? (type === 'right' ? b : a).item.source,
    name,
  }));
  const sealed = ctx.world === 'semantic' && unsealed.length < pairs.length;
  const whole = joined(left, right, type, { sealed, on });
  return {
    ...whole,
    items: both === null ? items : [...items, both],
    using: [...kept, ...(whole.using ?? [])],
  };
}

interface NamedPair {
  readonly name: string;
  readonly a: ReturnType<typeof keyNamed>;
  readonly b: ReturnType<typeof keyNamed>;
}

/** What stands for the columns of a FULL JOIN by names: of each, the value of the side that has a row. */
function mergedItem(pairs: readonly NamedPair[], ctx: BindContext): ScopeItem {
  const source = ctx.nextSource();
  const columns = new Map(
    pairs.map(({ name, a, b }): [string, ScopeColumn] => [
      name,
      {
        name,
        type: a.ref.type,
        sealed: false,
        denied: false,
        starred: true,
        merged: Object.freeze([a.ref, b.ref] as const),
      },
    ]),
  );
  return { source, alias: `${TWICE}${source}`, columns, relation: null };
}

function keyNamed(name: string, items: readonly ScopeItem[], ctx: BindContext, at: Location) {
  const { ref, column, item } = resolveColumn(innerScope(null, items, new Map()), [name], ctx, at);
  if (column.merged !== undefined) {
    const construct = `\`${name}\`, which a FULL JOIN has merged, in another USING`;
    throw ctx.unsupported(construct, at, 'put the FULL JOIN in a derived table');
  }
  return { ref, item, sealed: column.sealed };
}
