import type { LiteralSlots } from '../../bind/index.js';
import type { Expr, FromItem, Query, Select, SourceId } from '../../plan/plan.js';
import { isVolatile } from '../../plan/relations-read.js';
import {
  allQueries,
  childrenOf,
  conditionsOf,
  leavesOf,
  mapQuery,
  nestingIn,
  queryOf,
  someExpr,
} from '../../plan/walk.js';
import { outputsAt } from '../lineage.js';
import { pushPredicates } from '../push.js';
import type { GovernedSlots } from '../slots.js';
import { type Guards, guarded } from './guard.js';
import { RowReach } from './reach.js';

/**
 * The statement in such a form that nothing in it can fail on a row before the row filter has hidden it, whatever
 * order the planner chooses: what is proved harmless stays as it is and may use an index; every other condition
 * asks first whether the rows are shown (`guard.ts`); where no such question can stand, all scans are fenced.
 *
 * Conditions are what matters: what a select list computes runs on rows that have passed the filter. But a condition
 * on a derived column counts as one on the expression behind it, since the planner merges levels.
 */
export function behindBarrier(root: Query, literals: LiteralSlots, slots: GovernedSlots): Query {
  const reach = new RowReach(root, literals);
  if (reach.filtered.length === 0) return root;
  const found = new Findings(reach);
  for (const query of allQueries(root)) found.look(query);
  // A generator that hidden rows draw from as well tells how many there are to whoever knows its state.
  if (isVolatile(root)) found.fenced = true;
  const query = found.isEmpty ? root : guarded(root, found, slots);
  if (!found.fenced) return query;
  const guardedReach = new RowReach(query, literals);
  return pushPredicates(query, (e) => guardedReach.isHarmless(e));
}

/** The guards that the conditions of a statement need. */
class Findings implements Guards {
  readonly reach: RowReach;
  readonly conditions = new Set<Expr>();
  readonly sealed = new Set<Query>();
  fenced = false;

  constructor(reach: RowReach) {
    this.reach = reach;
  }

  get isEmpty(): boolean {
    return this.conditions.size === 0 && this.sealed.size === 0 && !this.fenced;
  }

  look(query: Query): void {
    for (const nesting of nestingIn(query)) this.#lookAtOutput(nesting);
    if (query.kind !== 'select') return;
    const links = new JoinedItems(query, this.reach);
    for (const c of query.where) if (!this.#becomesJoin(c, links)) this.#judge(c, links);
    for (const c of query.having) if (!isOfGroups(c)) this.#judge(c, links);
    if (query.from?.kind === 'join') this.#lookAtJoins(query.from, links, 0);
  }

  /**
   * Looks at an output. The values that IN compares with are conditions too, on rows of the query inside, unless they
   * are computed there.
   */
  #lookAtOutput(expr: Expr): void {
    if (expr.kind !== 'in_query') return;
    if (!outputsAt(expr.query, 0).every((e) => this.reach.isHarmless(e))) this.sealed.add(expr.query);
  }

  /**
   * @param first the place of the first leaf of `item` in the FROM of its level
   * @returns the place behind its last one
   */
  #lookAtJoins(item: FromItem, links: JoinedItems, first: number): number {
    if (item.kind !== 'join') return first + 1;
    const next = this.#lookAtJoins(item.right, links, this.#lookAtJoins(item.left, links, first));
    // Whether it hangs, by a LATERAL item, on rows of an item beside the join, which ON cannot ask.
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

  #fenceUnlessHarmless(condition: Expr): void {
    if (!this.reach.isHarmless(condition)) this.fenced = true;
  }

  /**
   * True if a condition equates values of two FROM items, or of one item without a filter to ask about. Joins need it
   * in that form, and the planner may use either side in place of anything equal to it, in any scan. Items that are
   * already joined by something harmless do not need it.
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
   * True if Postgres always makes a join of a condition with a query inside, so that the query never runs for a hidden
   * row. Failures inside it are checked there.
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
    const correlated = this.reach.outerRefs(query);
    if (correlated.length === 0 || !correlated.every((r) => places.has(r.source))) return false;
    // The rest of the query must not depend on queries around it.
    const bare: Select = { ...query, where: [], outputs: [], distinctOn: [], orderBy: [] };
    return this.reach.outerRefsOf(bare, query).length === 0;
  }
}

/** The FROM items of a level that harmless equalities join: hash and merge joins can be made on those. */
class JoinedItems {
  readonly #query: Select;
  readonly #reach: RowReach;
  #group: ((item: SourceId) => SourceId) | null = null;
  #places: ReadonlyMap<SourceId, number> | null = null;

  constructor(query: Select, reach: RowReach) {
    this.#query = query;
    this.#reach = reach;
  }

  /** The FROM items of the level, from left to right. */
  get places(): ReadonlyMap<SourceId, number> {
    return (this.#places ??= new Map(leavesOf(this.#query.from).map((l, place) => [l.id, place])));
  }

  /** True if they join all of `items` with each other. */
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

/** True if a condition of HAVING depends on an aggregate, so that it cannot move below the groups. */
function isOfGroups(condition: Expr): boolean {
  const visit = (e: Expr): boolean =>
    e.kind === 'aggregate' || e.kind === 'grouping' || childrenOf(e).some(visit);
  return visit(condition);
}

/**
 * A fence around every level of several grouping sets: no condition from outside runs before the groups are made. One
 * on a key could not ask whether the rows below are shown, for the set without keys has a row where there is none.
 */
export function fenceGroupingSets(root: Query, slots: GovernedSlots): Query {
  return mapQuery(root, {
    query: (q) =>
      q.kind === 'select' && q.groupingSets !== null && q.offset === null
        ? Object.freeze({ ...q, offset: slots.literal('0', 'int8') })
        : q,
  });
}
