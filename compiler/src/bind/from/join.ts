import type { JoinExpr, Node } from '@pgsql/types';
import { columnOf } from '../../catalog/catalog.js';
import { type Position, QueryError, queryError } from '../../errors/errors.js';
import { findUnsealedJoin, type UnsealedJoin } from '../../plan/join-rule.js';
import { equatesColumns, isKeyEquality } from '../../plan/keys.js';
import type { ColumnRef, Expr, FromItem, Join, Logic, Operation, Query, SourceId } from '../../plan/plan.js';
import { leavesOf, queryOf, someExpr, visitExpr } from '../../plan/walk.js';
import { identifier } from '../../text/sql-text.js';
import { conjunctsOf, firstLocation, type Location, stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { bindPredicateNode } from '../expressions/expression.js';
import { infix } from '../expressions/operands.js';
import {
  type BindEnvironment,
  type BoundItem,
  DUPLICATE_MARK,
  innerScope,
  isNameable,
  isSealedIn,
  plainEnvironment,
  resolveColumn,
  type Scope,
  type ScopeColumn,
  type ScopeItem,
} from '../scope.js';
import { bindItem } from './from.js';

/** Binds JOIN with ON, USING or NATURAL, and CROSS JOIN. `requireSealedJoins` checks the join keys later. */
export function bindJoin(
  node: JoinExpr,
  ctx: BindContext,
  outer: Scope | null,
  tables: Scope['tables'],
  before: readonly ScopeItem[],
): BoundItem {
  const at = firstLocation(node.rarg);
  if (node.alias !== undefined) throw ctx.unsupported('an alias of a join', at, 'name each side');
  const type = joinType(node, ctx, at);
  const byName = node.isNatural === true || node.usingClause !== undefined;
  if (node.larg === undefined || node.rarg === undefined) throw ctx.unsupported('this join', at);
  const left = bindItem(node.larg, ctx, outer, tables, before);
  // As in Postgres, function arguments cannot refer to the left side of a RIGHT or FULL join, since it is nullable.
  const given = type === 'inner' || type === 'left' ? [...before, ...left.items] : before;
  const right = bindItem(node.rarg, ctx, outer, tables, given);
  refuseDuplicateAliases([...left.items, ...right.items], ctx);
  if (byName) return joinByName(node, left, right, type, ctx, at);
  const scope = innerScope(outer, [...left.items, ...right.items], tables);
  const env = plainEnvironment(ctx, scope, 'ON');
  const on = conjunctsOf(node.quals).map((c) => bindCondition(c, left, right, env));
  if (type === 'full') refuseFull(on, left, right, at, ctx);
  return joined(left, right, type, on);
}

/** Cached results of `isGenerated`, which every enclosing join needs. */
const GENERATED = new WeakMap<Join, boolean>();

/** True if `item` reads nothing but set-returning functions. */
export function isGenerated(item: FromItem): boolean {
  if (item.kind !== 'join') return item.kind === 'rows';
  const made = GENERATED.get(item) ?? (isGenerated(item.left) && isGenerated(item.right));
  GENERATED.set(item, made);
  return made;
}

/** Refuses duplicate aliases. Must run before ON is bound, where they would be reported as ambiguous. */
export function refuseDuplicateAliases(items: readonly ScopeItem[], ctx: BindContext): void {
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

/** Builds a join. RIGHT JOIN becomes LEFT JOIN with its sides swapped. */
export function joined(
  left: BoundItem,
  right: BoundItem,
  type: JoinType,
  on: readonly Expr[],
  strict = false,
): BoundItem {
  const swapped = type === 'right';
  const item: Join = Object.freeze({
    kind: 'join',
    sealed: on.some((e) => equatesKeys(e, left, right)),
    ...(strict ? { strict } : {}),
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

function equatesKeys(e: Expr, left: BoundItem, right: BoundItem): boolean {
  if (!equatesColumns(e)) return false;
  const isKey = (ref: ColumnRef, { items }: BoundItem): boolean =>
    items.some((i) => i.source === ref.source && isSealedIn(i, ref.name));
  return (isKey(e.left, left) && isKey(e.right, right)) || (isKey(e.left, right) && isKey(e.right, left));
}

function bindCondition(node: Node, left: BoundItem, right: BoundItem, env: BindEnvironment): Expr {
  const { ctx } = env;
  const at = firstLocation(node);
  const on = typed(() => bindPredicateNode(node, env), left, right, at, ctx);
  if (!someExpr(on, (e) => queryOf(e) !== null))
    return joinsOnKeys(left, right, ctx) ? on : asEquality(on, [left.item, right.item], at, ctx);
  throw ctx.unsupported('a subquery in ON', ctx.locationOf(on), 'put it in WHERE, or join a derived table');
}

function joinsOnKeys(left: BoundItem, right: BoundItem, { joins }: BindContext): boolean {
  if (isGenerated(left.item) || isGenerated(right.item)) return false;
  return joins === 'declared' || (joins === 'any' && (left.content || right.content));
}

/**
 * Runs `bind` and, if joins require equality of sealed keys (columns that joins may use), reports an unknown operator
 * as E0514.
 */
function typed<T>(bind: () => T, left: BoundItem, right: BoundItem, at: Location, ctx: BindContext): T {
  try {
    return bind();
  } catch (error) {
    const isUnknown = error instanceof QueryError && error.entry === 'unknownOperator';
    if (!isUnknown || !joinsOnKeys(left, right, ctx)) throw error;
    throw unsealed(left, right, error.message, at, ctx);
  }
}

function unsealed(left: BoundItem, right: BoundItem, because: string, at: Location, ctx: BindContext) {
  return unsealedCondition([...left.items, ...right.items], left.content || right.content, because, at, ctx);
}

/** Refuses a FULL JOIN without an equality between its sides, which Postgres cannot execute. */
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
  if (joinsOnKeys(left, right, ctx)) throw unsealed(left, right, construct, at, ctx);
  throw ctx.unsupported(construct, at, 'join with = between the two sides');
}

/** Compares two columns as `a = b`; null if either column needs a cast. */
export function plainEquality(a: ColumnRef, b: ColumnRef, at: Location, ctx: BindContext): Operation | null {
  const equality = infix('=', a, b, at, ctx);
  const isPlain =
    equality.kind === 'operation' && equality.left?.kind === 'column' && equality.right.kind === 'column';
  return isPlain ? equality : null;
}

/**
 * True for a NATURAL join of entities. The columns that its sides have in common depend on what the caller may see, so
 * they must be sealed keys even under `joins: any`. Derived tables list their columns explicitly.
 */
function isStrict(
  node: JoinExpr,
  left: BoundItem,
  right: BoundItem,
  ctx: BindContext,
  at: Location,
): boolean {
  if (node.isNatural !== true || [left, right].every((side) => !side.named && !side.content)) return false;
  if (ctx.world === 'physical') throw ctx.unsupported('NATURAL JOIN of tables', at, 'use USING or ON');
  return true;
}

function namesOf(
  node: JoinExpr,
  left: BoundItem,
  right: BoundItem,
  ctx: BindContext,
  at: Location,
): readonly string[] {
  if (node.isNatural !== true) {
    const names = (node.usingClause ?? []).map(stringOf);
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    if (twice !== undefined)
      throw ctx.unsupported(`\`${twice}\` twice in USING`, at, 'name each column once');
    return names;
  }
  const offered = new Set(shownNames(right));
  return [...new Set(shownNames(left))].filter((name) => offered.has(name));
}

function shownNames({ items }: BoundItem): readonly string[] {
  return items.flatMap((item) =>
    [...item.columns]
      .filter(([shown, c]) => c.starred && isNameable(shown) && item.joined?.has(shown) !== true)
      .map(([shown]) => shown),
  );
}

/** Joins by column name. The column kept by USING represents both columns; the other one needs a qualified name. */
function joinByName(
  node: JoinExpr,
  left: BoundItem,
  right: BoundItem,
  type: JoinType,
  ctx: BindContext,
  at: Location,
): BoundItem {
  const strict = isStrict(node, left, right, ctx, at);
  const pairs = namesOf(node, left, right, ctx, at).map((name) => ({
    name,
    a: keyNamed(name, left.items, ctx, at),
    b: keyNamed(name, right.items, ctx, at),
  }));
  const all = [...left.items, ...right.items];
  const on = pairs.map(({ a, b }) => {
    const equality = typed(() => plainEquality(a.ref, b.ref, at, ctx), left, right, at, ctx);
    if (equality !== null) return equality;
    const construct = `USING over columns of types ${a.ref.type} and ${b.ref.type}`;
    if (joinsOnKeys(left, right, ctx)) throw unsealed(left, right, construct, at, ctx);
    throw ctx.unsupported(construct, at, 'use ON');
  });
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
  const columns = pairs.map(({ name, a, b }) => ({
    source: both?.source ?? (type === 'right' ? b : a).item.source,
    name,
  }));
  const whole = joined(left, right, type, on, strict);
  const listed = both === null ? items : [...items, both];
  const sources = new Set(listed.map((i) => i.source));
  return { ...whole, items: listed, using: [...(whole.using ?? []), { sources, columns }] };
}

interface NamedPair {
  readonly name: string;
  readonly a: ReturnType<typeof keyNamed>;
  readonly b: ReturnType<typeof keyNamed>;
}

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
  return { source, alias: `${DUPLICATE_MARK}${source}`, columns, relation: null };
}

function keyNamed(name: string, items: readonly ScopeItem[], ctx: BindContext, at: Location) {
  const { ref, column, item } = resolveColumn(innerScope(null, items, new Map()), [name], ctx, at);
  if (column.merged !== undefined) {
    const construct = `\`${name}\`, which a FULL JOIN has merged, in another USING`;
    throw ctx.unsupported(construct, at, 'put the FULL JOIN in a derived table');
  }
  return { ref, item };
}

/**
 * Simplifies a join condition. `a = b or (a is null and b is null)`, as written by Power BI, becomes `a is not
 * distinct from b`. That in turn becomes `a = b`, which can use indexes and hashes, if either column is never NULL.
 *
 * @param sides both sides of the join
 */
function asEquality(condition: Expr, sides: readonly FromItem[], at: Location, ctx: BindContext): Expr {
  const found = condition.kind === 'or' ? nullsOrEqual(condition) : condition;
  if (found?.kind !== 'distinct_test' || !found.negated) return condition;
  const { left, right } = found;
  if (left.kind !== 'column' || right.kind !== 'column') return found;
  const present = [left, right].some((ref) => sides.some((side) => isNeverNull(ref, side)));
  return present ? infix('=', left, right, at, ctx) : found;
}

function nullsOrEqual({ args }: Logic): Expr | null {
  const [equality, nulls, ...more] = args;
  if (equality === undefined || nulls?.kind !== 'and' || more.length > 0) return null;
  if (!isKeyEquality(equality) || nulls.args.length !== 2) return null;
  const { left, right, definition } = equality;
  const isMissing = (ref: ColumnRef): boolean =>
    nulls.args.some((e) => e.kind === 'null_test' && !e.negated && isSame(e.arg, ref));
  if (!isMissing(left) || !isMissing(right)) return null;
  return Object.freeze({
    kind: 'distinct_test',
    equality: definition,
    left,
    right,
    negated: true,
    type: 'bool',
  });
}

function isSame(expr: Expr, ref: ColumnRef): boolean {
  return expr.kind === 'column' && expr.source === ref.source && expr.name === ref.name;
}

/** True if `ref` is a NOT NULL column of an entity in `item`, possibly passed through derived tables. */
function isNeverNull(ref: ColumnRef, item: FromItem): boolean {
  const leaf = leafOf(ref.source, item);
  if (leaf?.kind === 'entity') {
    const { relation } = leaf;
    return relation.primaryKey.includes(ref.name) || columnOf(relation, ref.name)?.nullable === false;
  }
  if (leaf?.kind !== 'derived' || leaf.query.kind !== 'select' || leaf.query.grouped) return false;
  const { outputs, from } = leaf.query;
  const expr = outputs[Number(ref.name.slice(1)) - 1]?.expr;
  return expr?.kind === 'column' && from !== null && isNeverNull(expr, from);
}

/**
 * Returns the leaf `source` of `item`; null if there is no such leaf, or if an outer join may replace its rows with
 * NULLs.
 */
function leafOf(source: SourceId, item: FromItem): FromItem | null {
  if (item.kind !== 'join') return item.id === source ? item : null;
  if (item.type === 'full') return null;
  const left = leafOf(source, item.left);
  return left ?? (item.type === 'inner' ? leafOf(source, item.right) : null);
}

const DETAILS: Readonly<Record<UnsealedJoin['kind'], string>> = {
  condition: 'a join condition must be an equality of sealed keys, one of each side',
  'no condition': 'a join needs an equality of sealed keys, one of each side',
  in: 'IN over a subquery is a join, and both of its sides must be sealed keys',
  exists: 'EXISTS is a join, and needs an equality of sealed keys with the outer query in its WHERE',
  quantified: 'ANY or ALL over a subquery is a join on no sealed key',
  outward:
    'a subquery may name an outer column only in its WHERE, in an equality of sealed keys, one level up',
  rows: 'rows that a function makes of a subquery are a join on no sealed key',
};

const MOST_KEYS = 12;

/** @throws QueryError E0514 for a join that violates the join rule */
export function requireSealedJoins(root: Query, ctx: BindContext): void {
  const found = ctx.joins === null ? null : findUnsealedJoin(root, ctx.joins);
  if (found === null) return;
  throw queryError(
    'unsealedJoin',
    { detail: DETAILS[found.kind], hint: hintOf(found, ctx) },
    faultPlace(found, ctx),
  );
}

/** Returns error E0514 for a condition that cannot be bound because of its types or the kind of join. */
function unsealedCondition(
  items: readonly ScopeItem[],
  always: boolean,
  because: string,
  at: Location,
  ctx: BindContext,
): QueryError {
  ctx.recordItems(items);
  const hint = hintOf({ sides: items.map((i) => i.source), always }, ctx);
  return ctx.error('unsealedJoin', { detail: `${DETAILS.condition}: ${because}`, hint }, at);
}

function faultPlace({ at }: UnsealedJoin, ctx: BindContext): Position | null {
  return typeof at === 'number' ? ctx.positionOfSource(at) : ctx.positionOf(at);
}

/**
 * Returns a hint that lists the available sealed keys, and the manifest setting that allows other conditions, if one
 * does.
 */
function hintOf({ sides, always }: Pick<UnsealedJoin, 'sides' | 'always'>, ctx: BindContext): string {
  const keys = [...new Set(sides)].flatMap((source) => {
    const item = ctx.itemOf(source);
    if (item === undefined || !isNameable(item.alias)) return [];
    return [...item.columns]
      .filter(([shown, c]) => c.sealed && !c.denied && isNameable(shown))
      .map(([shown]) => `${identifier(item.alias)}.${identifier(shown)}`);
  });
  const shown = keys.length > MOST_KEYS ? [...keys.slice(0, MOST_KEYS), '…'] : keys;
  const reach = keys.length === 0 ? 'nothing here has a sealed key' : `sealed keys here: ${shown.join(', ')}`;
  return always
    ? `${reach}; NATURAL, passages, traversals, evidence and operators join on nothing else`
    : `${reach}; \`features.joins: any\` in the manifest allows any condition`;
}
