import type { ColumnRef, Expr, GovernedScan, Query, SourceId } from '../plan.js';
import {
  allQueries,
  childrenOf,
  conditionsOf,
  exprsOf,
  leavesOf,
  queryOf,
  sortExprs,
  visitExpr,
} from '../walk.js';
import { isOneRow } from './constants.js';
import { type Grounds, isHarmless, isHarmlessQuery } from './harmless.js';
import { outputsAt } from './lineage.js';

/** A scan whose rows reach an expression, and the FROM item in the expression's scope that they come through. */
export interface Reached {
  readonly source: SourceId;
  readonly scan: SourceId;
}

/**
 * What rows reach the expressions of a governed statement while the planner is free to merge its levels: derived
 * columns are looked through, since a condition on one becomes a condition on what is behind it.
 */
export class Reach {
  readonly #scans = new Map<SourceId, GovernedScan>();
  readonly #queries = new Map<SourceId, Query>();
  readonly #harmless = new Map<string, boolean>();
  readonly #reached = new Map<string, readonly Reached[]>();
  readonly #within = new WeakMap<Query, ReadonlySet<SourceId>>();
  /** Of conditions within queries above groups: the items that were grouped. */
  readonly #settled = new Map<Expr, ReadonlySet<SourceId>>();
  readonly #outer = new WeakMap<Query, readonly ColumnRef[]>();
  readonly #grounds: Grounds;

  constructor(root: Query, literals: Grounds['literals']) {
    const tables = new Map<number, Query>();
    for (const query of allQueries(root)) {
      // No condition enters a recursive table: its rows are worked out before anything reads them.
      if (query.kind !== 'values')
        for (const t of query.with) if (t.recursive !== true) tables.set(t.id, t.query);
      if (query.kind !== 'select') continue;
      for (const leaf of leavesOf(query.from)) {
        const behind =
          leaf.kind === 'derived' ? leaf.query : leaf.kind === 'cte' ? tables.get(leaf.table) : undefined;
        if (leaf.kind === 'governed') this.#scans.set(leaf.id, leaf);
        // The rows of a group that may be too small never leave its level, and no condition enters it.
        if (behind !== undefined && !isSealedLevel(behind)) this.#queries.set(leaf.id, behind);
      }
    }
    for (const query of allQueries(root)) this.#settle(query);
    this.#grounds = {
      literals,
      column: (ref) => this.#isHarmlessColumn(ref),
      // What an aggregate or window call yields exists only after every filter.
      call: () => true,
      // Of several rows one value cannot be made; a figure of them all is one row.
      node: (e) => e.kind === 'scalar_query' && (isOneFigure(e.query) || isOneRow(e.query, literals)),
      queries: new WeakMap(),
    };
  }

  /** The scans with a row filter. */
  get filtered(): readonly GovernedScan[] {
    return [...this.#scans.values()].filter((s) => s.filter !== null);
  }

  /** Whether a condition can fail on no row, whatever stands behind its columns. */
  isHarmless(condition: Expr): boolean {
    return isHarmless(condition, this.#grounds);
  }

  /** Whether nothing that is evaluated of a query inside a condition can fail. */
  isHarmlessQuery(query: Query): boolean {
    return isHarmlessQuery(query, this.#grounds);
  }

  #isHarmlessColumn(ref: ColumnRef): boolean {
    const key = keyOf(ref);
    const known = this.#harmless.get(key);
    if (known !== undefined) return known;
    const column = this.#scans.get(ref.source)?.columns.find((c) => c.name === ref.name);
    const found =
      column === undefined
        ? this.#definitionsOf(ref).every((e) => this.isHarmless(e))
        : this.isHarmless(column.expr);
    this.#harmless.set(key, found);
    return found;
  }

  /**
   * The filtered scans whose rows reach `condition`, by the FROM items that they come through: those which it names, and
   * those which a LATERAL item that it names looks out to.
   */
  reached(condition: Expr): readonly Reached[] {
    const settled = this.#settled.get(condition);
    const found = unique(this.#refsIn(condition).flatMap((ref) => this.#behind(ref)));
    return found
      .filter((r) => settled?.has(r.source) !== true)
      .sort((a, b) => a.source - b.source || a.scan - b.scan);
  }

  /** What stands above the groups of a level runs on groups of shown rows: conditions in it need not ask about these. */
  #settle(level: Query): void {
    if (level.kind !== 'select' || !level.grouped) return;
    // A query among the keys runs on rows that the filter has let through, and stands above the groups again.
    const above = [...level.groupBy, ...level.outputs.map((o) => o.expr), ...level.having];
    const own = leavesOf(level.from).map((l) => l.id);
    for (const expr of [...above, ...level.distinctOn, ...sortExprs(level.orderBy)]) {
      visitExpr(expr, (e) => {
        for (const condition of conditionsWithin(queryOf(e)))
          this.#settled.set(condition, new Set([...(this.#settled.get(condition) ?? []), ...own]));
      });
    }
  }

  /** The FROM items that a condition names, in its own level and around it. */
  sources(condition: Expr): ReadonlySet<SourceId> {
    return new Set(this.#refsIn(condition).map((r) => r.source));
  }

  #behind(ref: ColumnRef): readonly Reached[] {
    const key = keyOf(ref);
    const known = this.#reached.get(key);
    if (known !== undefined) return known;
    const found: Reached[] = [];
    const scan = this.#scans.get(ref.source);
    const query = this.#queries.get(ref.source);
    if (scan !== undefined) {
      if (scan.filter !== null) found.push(Object.freeze({ source: ref.source, scan: scan.id }));
    } else if (query !== undefined) {
      const own = this.#itemsWithin(query);
      for (const inner of this.#definitionsOf(ref).flatMap((e) => this.#refsIn(e))) {
        for (const r of this.#behind(inner))
          found.push(own.has(r.source) ? Object.freeze({ source: ref.source, scan: r.scan }) : r);
      }
    }
    const once = unique(found);
    this.#reached.set(key, once);
    return once;
  }

  #definitionsOf(ref: ColumnRef): readonly Expr[] {
    const query = this.#queries.get(ref.source);
    return query === undefined ? [] : outputsAt(query, Number(ref.name.slice(1)) - 1);
  }

  /** The columns in `expr` of its own level and of levels around it, also those that queries in it read. */
  #refsIn(expr: Expr): readonly ColumnRef[] {
    const found: ColumnRef[] = [];
    const visit = (e: Expr): void => {
      if (e.kind === 'aggregate' || e.kind === 'window') return;
      if (e.kind === 'column') found.push(e);
      const inner = queryOf(e);
      if (inner !== null) found.push(...this.outerRefs(inner));
      childrenOf(e).forEach(visit);
    };
    visit(expr);
    return found;
  }

  /** The FROM items of a query and of those in it. */
  #itemsWithin(query: Query): ReadonlySet<SourceId> {
    const known = this.#within.get(query);
    if (known !== undefined) return known;
    const levels = allQueries(query);
    const own = new Set(
      levels.flatMap((q) => (q.kind === 'select' ? leavesOf(q.from).map((l) => l.id) : [])),
    );
    this.#within.set(query, own);
    return own;
  }

  /** The columns that a query reads from around it. */
  outerRefs(query: Query): readonly ColumnRef[] {
    const known = this.#outer.get(query);
    if (known !== undefined) return known;
    const levels = allQueries(query);
    const own = this.#itemsWithin(query);
    const found = new Map<string, ColumnRef>();
    for (const expr of levels.flatMap(exprsOf)) {
      visitExpr(expr, (e) => {
        if (e.kind === 'column' && !own.has(e.source)) found.set(keyOf(e), e);
      });
    }
    const refs = [...found.values()];
    this.#outer.set(query, refs);
    return refs;
  }
}

function conditionsWithin(query: Query | null): readonly Expr[] {
  if (query === null) return [];
  return allQueries(query).flatMap((q) =>
    q.kind === 'select' ? [...q.where, ...q.having, ...conditionsOf(q.from)] : [],
  );
}

/** Each of `rows` once. */
function unique(rows: readonly Reached[]): readonly Reached[] {
  return [...new Map(rows.map((r) => [`${r.source} ${r.scan}`, r])).values()];
}

function keyOf(ref: ColumnRef): string {
  return `${ref.source} ${ref.name}`;
}

/** Whether a level groups rows that may only be aggregated, or by several sets of keys: it is fenced then. */
export function isSealedLevel(query: Query): boolean {
  return (
    query.kind === 'select' &&
    (query.groupingSets !== null ||
      leavesOf(query.from).some((l) => l.kind === 'governed' && l.minimum !== null))
  );
}

/** Whether a query yields one row, whatever it reads: it aggregates all rows as one group. */
function isOneFigure(query: Query): boolean {
  return (
    query.kind === 'select' &&
    query.grouped &&
    query.groupBy.length === 0 &&
    query.groupingSets === null &&
    query.having.length === 0
  );
}
