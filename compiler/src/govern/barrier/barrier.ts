import type { LiteralSlots } from '../../bind/index.js';
import { InternalError } from '../../errors/errors.js';
import { enumEquality } from '../../plan/keys.js';
import type { Expr, FromItem, GovernedScan, Query, Select, SourceId } from '../../plan/plan.js';
import { isVolatile } from '../../plan/properties.js';
import { mapQuery } from '../../plan/query-tree.js';
import {
  allQueries,
  childrenOf,
  conditionsOf,
  leavesOf,
  mapChildren,
  nestingIn,
  queryOf,
  someExpr,
  visitExpr,
} from '../../plan/walk.js';
import { outputsAt } from '../lineage.js';
import type { GovernedSlots } from '../slots.js';
import { type Guards, guarded } from './guard.js';
import { RowReach } from './row-reach.js';

/**
 * Rewrites a statement so that it cannot raise an error on a row that the row filter hides, whatever evaluation order
 * the planner chooses. Harmless conditions, which never fail, stay unchanged and may use an index. Any other first
 * tests whether its rows are shown (`guard.ts`); if it cannot, all scans are fenced: OFFSET 0 keeps conditions out.
 *
 * Only conditions matter: select lists are computed on rows that have passed the filter. A condition on a derived
 * column is treated as a condition on its definition, since the planner merges levels.
 */
export function withBarrier(root: Query, literals: LiteralSlots, slots: GovernedSlots): Query {
  const reach = new RowReach(root, literals);
  if (reach.filtered.length === 0) return root;
  const found = new GuardCollector(reach);
  for (const query of allQueries(root)) found.look(query);
  // If random numbers are also drawn for hidden rows, the generator's state reveals how many there are.
  if (isVolatile(root)) found.fenced = true;
  const query = found.isEmpty ? root : guarded(root, found, slots);
  if (!found.fenced) return query;
  const guardedReach = new RowReach(query, literals);
  return pushPredicates(query, (e) => guardedReach.isHarmless(e));
}

class GuardCollector implements Guards {
  readonly reach: RowReach;
  readonly conditions = new Set<Expr>();
  readonly aboveGroups = new Set<Expr>();
  readonly sealed = new Set<Query>();
  fenced = false;

  constructor(reach: RowReach) {
    this.reach = reach;
  }

  get isEmpty(): boolean {
    return (
      this.conditions.size === 0 && this.aboveGroups.size === 0 && this.sealed.size === 0 && !this.fenced
    );
  }

  look(query: Query): void {
    for (const nesting of nestingIn(query)) this.#lookAtOutput(nesting);
    if (query.kind !== 'select') return;
    const links = new JoinedItems(query, this.reach);
    for (const c of query.where) if (!this.#becomesJoin(c, links)) this.#judge(c, links);
    for (const c of query.having) {
      const parts = partsBelowGroups(c);
      if (parts[0] === c) this.#judge(c, links);
      else if (parts.some((part) => this.#failsOnHiddenRows(part))) this.aboveGroups.add(c);
    }
    if (query.from?.kind === 'join') this.#lookAtJoins(query.from, links, 0);
  }

  /** IN turns the output of its query into a condition on that query's rows, so output that can fail needs a fence. */
  #lookAtOutput(expr: Expr): void {
    if (expr.kind !== 'in_query') return;
    if (!outputsAt(expr.query, 0).every((e) => this.reach.isHarmless(e))) this.sealed.add(expr.query);
  }

  /**
   * @param first index of the first leaf of `item` in the FROM of its level
   * @returns the index after the last leaf of `item`
   */
  #lookAtJoins(item: FromItem, links: JoinedItems, first: number): number {
    if (item.kind !== 'join') return first + 1;
    const next = this.#lookAtJoins(item.right, links, this.#lookAtJoins(item.left, links, first));
    // True if ON depends, through a LATERAL item, on rows outside the join, whose visibility it cannot test.
    const reachesBeside = (condition: Expr): boolean =>
      this.reach.reached(condition).some(({ source }) => {
        const place = links.places.get(source);
        return place !== undefined && (place < first || place >= next);
      });
    for (const c of item.on) {
      // A FULL JOIN needs its equalities unchanged.
      const keyed = item.type === 'full' && c.kind === 'operation' && c.definition.name === '=';
      if (keyed || reachesBeside(c)) this.#fenceUnlessHarmless(c);
      else this.#judge(c, links);
    }
    return next;
  }

  #judge(condition: Expr, links: JoinedItems): void {
    if (this.reach.isHarmless(condition)) return;
    if (this.#equates(condition, links)) this.fenced = true;
    else if (this.reach.reached(condition).length > 0) this.conditions.add(condition);
  }

  #failsOnHiddenRows(condition: Expr): boolean {
    return !this.reach.isHarmless(condition) && this.reach.reached(condition).length > 0;
  }

  #fenceUnlessHarmless(condition: Expr): void {
    if (!this.reach.isHarmless(condition)) this.fenced = true;
  }

  /**
   * True if a condition equates values of different FROM items, or values that come from no filtered scan. A join needs
   * its equality unchanged, and the planner may replace either side by anything equal to it, in any scan. Items that a
   * harmless equality already joins do not need another.
   */
  #equates(condition: Expr, links: JoinedItems): boolean {
    if (condition.kind !== 'operation' || condition.definition.name !== '=' || condition.left === null)
      return false;
    const [left, right] = [this.reach.sources(condition.left), this.reach.sources(condition.right)];
    if (left.size === 0 || right.size === 0) return false;
    const items = new Set([...left, ...right]);
    return (items.size > 1 && !links.join(items)) || this.reach.reached(condition).length === 0;
  }

  /**
   * True if Postgres always turns a condition with a query inside into a join, so that the query never runs for a
   * hidden row. Conditions inside the query are examined separately.
   */
  #becomesJoin(condition: Expr, links: JoinedItems): boolean {
    if (condition.kind === 'in_query') return this.#joinsIn(condition, links);
    const inner = condition.kind === 'not' ? condition.arg : condition;
    return inner.kind === 'exists' && this.#joinsExists(inner.query, links);
  }

  #joinsIn({ arg, query, negated }: Extract<Expr, { kind: 'in_query' }>, { places }: JoinedItems): boolean {
    const named = [...this.reach.sources(arg)];
    if (negated || named.length === 0 || !named.every((s) => places.has(s))) return false;
    if (someExpr(arg, (e) => queryOf(e) !== null) || this.reach.outerRefs(query).length > 0) return false;
    this.#fenceUnlessHarmless(arg);
    return true;
  }

  #joinsExists(query: Query, { places }: JoinedItems): boolean {
    if (query.kind !== 'select' || query.from === null || query.with.length > 0) return false;
    if (query.grouped || query.having.length > 0 || query.limit !== null || query.offset !== null)
      return false;
    if (query.outputs.some((o) => someExpr(o.expr, (e) => e.kind === 'window'))) return false;
    // EXISTS reads no outputs, so Postgres joins only by an outer column in WHERE; elsewhere there must be none.
    const read: Select = { ...query, outputs: [], distinctOn: [], orderBy: [] };
    const correlated = this.reach.outerRefsOf(read, query);
    if (correlated.length === 0 || !correlated.every((r) => places.has(r.source))) return false;
    return this.reach.outerRefsOf({ ...read, where: [] }, query).length === 0;
  }
}

/** Groups the FROM items of a level that are joined by harmless equalities, which hash and merge joins can use. */
class JoinedItems {
  readonly #query: Select;
  readonly #reach: RowReach;
  #group: ((item: SourceId) => SourceId) | null = null;
  #places: ReadonlyMap<SourceId, number> | null = null;

  constructor(query: Select, reach: RowReach) {
    this.#query = query;
    this.#reach = reach;
  }

  /** Index of each FROM item of the level, from left to right. */
  get places(): ReadonlyMap<SourceId, number> {
    return (this.#places ??= new Map(leavesOf(this.#query.from).map((l, place) => [l.id, place])));
  }

  join(items: Iterable<SourceId>): boolean {
    this.#group ??= this.#grouped();
    return new Set([...items].map(this.#group)).size === 1;
  }

  #grouped(): (item: SourceId) => SourceId {
    const above = new Map<SourceId, SourceId>();
    const group = (item: SourceId): SourceId => {
      let found = item;
      for (let next = above.get(found); next !== undefined; next = above.get(found)) found = next;
      if (found !== item) above.set(item, found);
      return found;
    };
    for (const c of [...this.#query.where, ...conditionsOf(this.#query.from)]) {
      if (c.kind !== 'operation' || c.definition.name !== '=' || c.left === null) continue;
      if (!this.#reach.isHarmless(c)) continue;
      const [left, right] = [[...this.#reach.sources(c.left)], [...this.#reach.sources(c.right)]];
      const [one, other] = [left[0], right[0]];
      if (left.length !== 1 || right.length !== 1 || one === undefined || other === undefined) continue;
      const [from, to] = [group(one), group(other)];
      if (from !== to) above.set(from, to);
    }
    return group;
  }
}

/**
 * Returns the parts of a HAVING condition that Postgres may move below the groups, since they depend on no aggregate:
 * it moves NOT inwards, splits AND, and factors out what the operands of an OR have in common. If no part depends on an
 * aggregate, returns the whole condition.
 */
function partsBelowGroups(condition: Expr): readonly Expr[] {
  const dependent = new Set<Expr>();
  const visit = (e: Expr): boolean => {
    const found = childrenOf(e).filter(visit).length > 0 || e.kind === 'aggregate' || e.kind === 'grouping';
    if (found) dependent.add(e);
    return found;
  };
  visit(condition);
  const parts: Expr[] = [];
  const collect = (e: Expr): void => {
    if (!dependent.has(e)) parts.push(e);
    else if (e.kind === 'and' || e.kind === 'or') for (const arg of e.args) collect(arg);
    else if (e.kind === 'not') collect(e.arg);
  };
  collect(condition);
  return parts;
}

/**
 * Fences every level with several grouping sets, so that no outer condition runs before the groups are made. A
 * condition on a key could not test whether the rows below are shown: the set without keys yields a row even if there
 * are none.
 */
export function fenceGroupingSets(root: Query, slots: GovernedSlots): Query {
  return mapQuery(root, {
    query: (q) =>
      q.kind === 'select' && q.groupingSets !== null && q.offset === null
        ? Object.freeze({ ...q, offset: slots.literal('0', 'int8') })
        : q,
  });
}

/**
 * Moves harmless conjuncts that read only one fenced scan into that scan, next to its filter, so that they can use an
 * index. A conjunct over the nullable side of an outer join stays, since inside the scan its meaning would differ.
 */
function pushPredicates(root: Query, isHarmless: (condition: Expr) => boolean): Query {
  return mapQuery(root, {
    query: (q) => (q.kind === 'select' ? pushed(q, (scan) => scan.fenced, isHarmless) : q),
  });
}

/**
 * Moves equalities between an enum and a value next to the filter of its scan: only there does the column have its
 * original type, which an index on it needs. Equality of enums and of texts never fails.
 */
export function pushEnumEqualities(root: Query): Query {
  return mapQuery(root, {
    query: (q) => (q.kind === 'select' && q.where.length > 0 ? pushed(q, hasEnum, comparesEnum) : q),
  });
}

function hasEnum({ columns, minimum }: GovernedScan): boolean {
  return (
    minimum === null && columns.some(({ expr }) => expr.kind === 'base' && expr.stored?.startsWith('enum '))
  );
}

function comparesEnum(condition: Expr, scan: GovernedScan): boolean {
  if (condition.kind !== 'operation' || condition.definition.name !== '=') return false;
  const asked = overBase(condition, scan);
  return asked.kind === 'operation' && enumEquality(asked) !== null;
}

function pushed(
  query: Select,
  into: (scan: GovernedScan) => boolean,
  isMoved: (condition: Expr, scan: GovernedScan) => boolean,
): Select {
  const scans = new Map(
    strictScans(query.from)
      .filter(into)
      .map((s) => [s.id, s]),
  );
  if (scans.size === 0) return query;
  const moved = new Map<SourceId, Expr[]>();
  const kept = query.where.filter((c) => {
    const scan = soleScan(c, scans);
    if (scan === null || !isMoved(c, scan)) return true;
    moved.set(scan.id, [...(moved.get(scan.id) ?? []), overBase(c, scan)]);
    return false;
  });
  const from = (item: FromItem): FromItem => {
    if (item.kind === 'join')
      return Object.freeze({ ...item, left: from(item.left), right: from(item.right) });
    const mine = item.kind === 'governed' ? moved.get(item.id) : undefined;
    return item.kind === 'governed' && mine !== undefined
      ? Object.freeze({ ...item, pushed: Object.freeze([...item.pushed, ...mine]) })
      : item;
  };
  return Object.freeze({
    ...query,
    where: Object.freeze(kept),
    from: query.from === null ? null : from(query.from),
  });
}

/** Returns the scans in FROM whose rows WHERE filters directly: no outer join replaces them by NULLs. */
function strictScans(item: FromItem | null): readonly GovernedScan[] {
  if (item === null) return [];
  if (item.kind === 'join') {
    if (item.type === 'full') return [];
    return [...strictScans(item.left), ...(item.type === 'inner' ? strictScans(item.right) : [])];
  }
  return item.kind === 'governed' ? [item] : [];
}

function soleScan(expr: Expr, scans: ReadonlyMap<SourceId, GovernedScan>): GovernedScan | null {
  const sources = new Set<SourceId>();
  let plain = true;
  visitExpr(expr, (e) => {
    if (e.kind === 'column') sources.add(e.source);
    if (e.kind === 'scalar_query' || e.kind === 'exists' || e.kind === 'in_query') plain = false;
  });
  const [only] = sources;
  return plain && sources.size === 1 && only !== undefined ? (scans.get(only) ?? null) : null;
}

/** Returns `expr` rewritten over the scan's base columns, each as this caller sees it. */
function overBase(expr: Expr, scan: GovernedScan): Expr {
  if (expr.kind !== 'column')
    return mapChildren(
      expr,
      (e) => overBase(e, scan),
      (q) => q,
    );
  const column = scan.columns.find((c) => c.name === expr.name);
  if (column === undefined)
    throw new InternalError(`scan of ${scan.relation.name} has no column ${expr.name}`);
  return column.expr;
}
