import type { ColumnRef, Expr, GovernedScan, Query, SourceId } from '../plan.js';
import { allQueries, childrenOf, exprsOf, leavesOf, queryOf, visitExpr } from '../walk.js';
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
  readonly #reached = new Map<string, ReadonlySet<SourceId>>();
  readonly #outer = new WeakMap<Query, readonly ColumnRef[]>();
  readonly #grounds: Grounds;

  constructor(root: Query, literals: Grounds['literals']) {
    const tables = new Map<number, Query>();
    for (const query of allQueries(root)) {
      if (query.kind !== 'values') for (const t of query.with) tables.set(t.id, t.query);
      if (query.kind !== 'select') continue;
      for (const leaf of leavesOf(query.from)) {
        const behind =
          leaf.kind === 'derived' ? leaf.query : leaf.kind === 'cte' ? tables.get(leaf.table) : undefined;
        if (leaf.kind === 'governed') this.#scans.set(leaf.id, leaf);
        // The rows of a group that may be too small never leave its level, and no condition enters it.
        if (behind !== undefined && !isSealedLevel(behind)) this.#queries.set(leaf.id, behind);
      }
    }
    this.#grounds = {
      literals,
      column: (ref) => this.#isHarmlessColumn(ref),
      // What an aggregate or window call yields exists only after every filter.
      call: () => true,
      // Of several rows one value cannot be made; a figure of them all is one row.
      node: (e) => e.kind === 'scalar_query' && isOneFigure(e.query),
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

  /** The filtered scans whose rows reach `condition`, by the FROM items that it names. */
  reached(condition: Expr): readonly Reached[] {
    const found = new Map<string, Reached>();
    for (const ref of this.#refsIn(condition)) {
      for (const scan of this.#behind(ref)) {
        found.set(`${ref.source} ${scan}`, Object.freeze({ source: ref.source, scan }));
      }
    }
    return [...found.values()].sort((a, b) => a.source - b.source || a.scan - b.scan);
  }

  /** The FROM items that a condition names, in its own level and around it. */
  sources(condition: Expr): ReadonlySet<SourceId> {
    return new Set(this.#refsIn(condition).map((r) => r.source));
  }

  #behind(ref: ColumnRef): ReadonlySet<SourceId> {
    const key = keyOf(ref);
    const known = this.#reached.get(key);
    if (known !== undefined) return known;
    const found = new Set<SourceId>();
    const scan = this.#scans.get(ref.source);
    if (scan !== undefined) {
      if (scan.filter !== null) found.add(scan.id);
    } else {
      for (const inner of this.#definitionsOf(ref).flatMap((e) => this.#refsIn(e))) {
        for (const id of this.#behind(inner)) found.add(id);
      }
    }
    this.#reached.set(key, found);
    return found;
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

  /** The columns that a query reads from around it. */
  outerRefs(query: Query): readonly ColumnRef[] {
    const known = this.#outer.get(query);
    if (known !== undefined) return known;
    const levels = allQueries(query);
    const own = new Set(
      levels.flatMap((q) => (q.kind === 'select' ? leavesOf(q.from).map((l) => l.id) : [])),
    );
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

function keyOf(ref: ColumnRef): string {
  return `${ref.source} ${ref.name}`;
}

/** Whether a level groups rows that may only be aggregated: it is fenced then, whatever its kind. */
export function isSealedLevel(query: Query): boolean {
  return (
    query.kind === 'select' && leavesOf(query.from).some((l) => l.kind === 'governed' && l.minimum !== null)
  );
}

/** Whether a query yields one row, whatever it reads: it aggregates all rows as one group. */
function isOneFigure(query: Query): boolean {
  return query.kind === 'select' && query.grouped && query.groupBy.length === 0 && query.having.length === 0;
}
