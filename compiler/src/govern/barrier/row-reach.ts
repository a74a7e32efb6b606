import type { ColumnRef, Expr, GovernedScan, Query, Select, SourceId } from '../../plan/plan.js';
import { Levels } from '../../plan/query-tree.js';
import {
  allQueries,
  childrenOf,
  conditionsOf,
  exprsOf,
  leavesOf,
  nestingIn,
  nodesIn,
  partsOf,
  queriesIn,
  queryOf,
  sortExprs,
} from '../../plan/walk.js';
import { outputsAt } from '../lineage.js';
import { isOneRow } from './constants.js';
import { type HarmlessContext, isHarmless, isHarmlessQuery } from './harmless.js';

/** A scan whose rows reach an expression, through FROM item `source` of the expression's scope. */
export interface ReachingScan {
  readonly source: SourceId;
  /** Null stands for any scan that the item reads, if there are too many to track. */
  readonly scan: SourceId | null;
}

/** Maximum number of scans tracked individually behind a FROM item: each needs its own visibility column. */
const MOST_SCANS = 8;

/**
 * The rows that can reach each expression of a governed statement, given that the planner may merge its levels.
 * Derived columns are traced to their source, since a condition on one becomes a condition on its source.
 */
export class RowReach {
  readonly #scans = new Map<SourceId, GovernedScan>();
  readonly #queries = new Map<SourceId, Query>();
  readonly #judged = new Map<Expr, boolean>();
  readonly #harmless = new Map<string, boolean>();
  readonly #limited = new Map<string, boolean>();
  readonly #reached = new Map<string, readonly ReachingScan[]>();
  readonly #levels: Levels;
  /** Conditions of queries that are evaluated after GROUP BY, with the enclosing grouped levels. */
  readonly #settled = new Map<Expr, GroupedLevels>();
  readonly #outer = new WeakMap<Query, readonly ColumnRef[]>();
  readonly #context: HarmlessContext;

  constructor(root: Query, literals: HarmlessContext['literals']) {
    const tables = new Map<number, Query>();
    for (const query of allQueries(root)) {
      // No condition is pushed into a recursive table: its rows are computed before anything reads them.
      if (query.kind !== 'values')
        for (const t of query.with) if (t.recursive !== true) tables.set(t.id, t.query);
      if (query.kind !== 'select') continue;
      for (const leaf of leavesOf(query.from)) {
        const behind =
          leaf.kind === 'derived' ? leaf.query : leaf.kind === 'cte' ? tables.get(leaf.table) : undefined;
        if (leaf.kind === 'governed') this.#scans.set(leaf.id, leaf);
        // No condition is pushed into a sealed level (see `isSealedLevel`), and its rows never leave it.
        if (behind !== undefined && !isSealedLevel(behind)) this.#queries.set(leaf.id, behind);
      }
    }
    this.#levels = new Levels(root);
    this.#settle(root, null);
    this.#context = {
      literals,
      column: (ref) => this.#isHarmlessColumn(ref),
      // Aggregates and window calls are computed after every filter.
      call: () => true,
      isLimited: (text) => this.#isLimited(text),
      // A scalar query fails if it yields several rows.
      node: (e) => e.kind === 'scalar_query' && (isOneFigure(e.query) || isOneRow(e.query, literals)),
      queries: new WeakMap(),
    };
  }

  get filtered(): readonly GovernedScan[] {
    return [...this.#scans.values()].filter((s) => s.filter !== null);
  }

  /** True if a condition cannot fail on any row, whatever its columns are derived from. */
  isHarmless(condition: Expr): boolean {
    const known = this.#judged.get(condition);
    if (known !== undefined) return known;
    const isList = condition.kind === 'and' || condition.kind === 'or' || condition.kind === 'not';
    const harmless = isList
      ? childrenOf(condition).every((c) => this.isHarmless(c))
      : isHarmless(condition, this.#context);
    this.#judged.set(condition, harmless);
    return harmless;
  }

  /** True if nothing evaluated in a query inside a condition can fail. */
  isHarmlessQuery(query: Query): boolean {
    return isHarmlessQuery(query, this.#context);
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

  /** True if a text is a stored column whose type limits its length, or passes on such a column from another level. */
  #isLimited(text: Expr): boolean {
    if (text.kind === 'base') return text.characters !== undefined;
    if (text.kind !== 'column') return false;
    const key = keyOf(text);
    const known = this.#limited.get(key);
    if (known !== undefined) return known;
    const column = this.#scans.get(text.source)?.columns.find((c) => c.name === text.name);
    const definitions = column === undefined ? this.#definitionsOf(text) : [column.expr];
    const found = definitions.length > 0 && definitions.every((e) => this.#isLimited(e));
    this.#limited.set(key, found);
    return found;
  }

  /**
   * Returns the filtered scans whose rows reach `condition`, with the FROM items that pass them on: the items it
   * references, and the items that a referenced LATERAL item depends on.
   */
  reached(condition: Expr): readonly ReachingScan[] {
    const settled = this.#settled.get(condition) ?? null;
    const found = unique(this.#refsIn(condition).flatMap((ref) => this.#behind(ref)));
    return found
      .filter((r) => !this.#isSettled(r.source, settled))
      .sort((a, b) => a.source - b.source || (a.scan ?? -1) - (b.scan ?? -1));
  }

  /**
   * Records the conditions that run above the groups of an enclosing level: they see groups of shown rows only and need
   * no guard.
   *
   * @param around the enclosing levels that are grouped before `level` runs
   */
  #settle(level: Query, around: GroupedLevels | null): void {
    if (level.kind === 'select' && around !== null)
      for (const condition of [...level.where, ...level.having, ...conditionsOf(level.from)])
        this.#settled.set(condition, around);
    for (const part of partsOf(level)) this.#settle(part, around);
    const nesting = nestingIn(level);
    if (nesting.length === 0) return;
    const above = queriesAboveGroups(level);
    for (const { query } of nesting)
      this.#settle(query, level.kind === 'select' && above.has(query) ? { level, around } : around);
  }

  #isSettled(source: SourceId, settled: GroupedLevels | null): boolean {
    for (let at = settled; at !== null; at = at.around) if (this.#levels.isOwn(at.level, source)) return true;
    return false;
  }

  /** Returns the FROM items that a condition references, in its own level and in outer ones. */
  sources(condition: Expr): ReadonlySet<SourceId> {
    return new Set(this.#refsIn(condition).map((r) => r.source));
  }

  #behind(ref: ColumnRef): readonly ReachingScan[] {
    const key = keyOf(ref);
    const known = this.#reached.get(key);
    if (known !== undefined) return known;
    const found: ReachingScan[] = [];
    const scan = this.#scans.get(ref.source);
    const query = this.#queries.get(ref.source);
    if (scan !== undefined) {
      if (scan.filter !== null) found.push(Object.freeze({ source: ref.source, scan: scan.id }));
    } else if (query !== undefined) {
      const own = (source: SourceId): boolean => this.#levels.holds(query, source);
      for (const inner of this.#definitionsOf(ref).flatMap((e) => this.#refsIn(e))) {
        for (const r of this.#behind(inner))
          found.push(own(r.source) ? Object.freeze({ source: ref.source, scan: r.scan }) : r);
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

  /** Returns the columns of this level and outer ones that `expr` reads, also through queries in it. */
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

  /** Returns the columns of outer levels that a query reads. */
  outerRefs(query: Query): readonly ColumnRef[] {
    let known = this.#outer.get(query);
    if (known === undefined) {
      known = this.outerRefsOf(query, query);
      this.#outer.set(query, known);
    }
    return known;
  }

  /** Returns the columns outside `whole` that `part` reads; `part` is `whole` without some of its expressions. */
  outerRefsOf(part: Query, whole: Query): readonly ColumnRef[] {
    const found = new Map<string, ColumnRef>();
    const note = (ref: ColumnRef): void => {
      if (!this.#levels.holds(whole, ref.source)) found.set(keyOf(ref), ref);
    };
    const exprs = exprsOf(part);
    nodesIn(exprs, 'column').forEach(note);
    for (const inner of [...queriesIn(exprs), ...partsOf(part)]) this.outerRefs(inner).forEach(note);
    return [...found.values()];
  }
}

/** The enclosing levels that are grouped before a condition runs, nearest first. */
export interface GroupedLevels {
  readonly level: Select;
  readonly around: GroupedLevels | null;
}

/** Returns the queries inside expressions that are evaluated after the level's GROUP BY. */
function queriesAboveGroups(level: Query): ReadonlySet<Query> {
  if (level.kind !== 'select' || !level.grouped) return new Set();
  // A query among the grouping keys also runs only on rows that have passed the filter.
  const above = [...level.groupBy, ...level.outputs.map((o) => o.expr), ...level.having];
  return new Set(queriesIn([...above, ...level.distinctOn, ...sortExprs(level.orderBy)]));
}

/** Deduplicates `rows`; an item with too many scans gets one entry for all of them. */
function unique(rows: readonly ReachingScan[]): readonly ReachingScan[] {
  const bySource = new Map<SourceId, Map<SourceId | null, ReachingScan>>();
  for (const row of rows) {
    const scans = bySource.get(row.source) ?? new Map<SourceId | null, ReachingScan>();
    bySource.set(row.source, scans.set(row.scan, row));
  }
  return [...bySource].flatMap(([source, scans]) =>
    scans.has(null) || scans.size > MOST_SCANS
      ? [Object.freeze({ source, scan: null })]
      : [...scans.values()],
  );
}

function keyOf(ref: ColumnRef): string {
  return `${ref.source} ${ref.name}`;
}

/** True if a level has several grouping sets, or rows that may only be aggregated. Such a level is fenced. */
export function isSealedLevel(query: Query): boolean {
  return (
    query.kind === 'select' &&
    (query.groupingSets !== null ||
      leavesOf(query.from).some((l) => l.kind === 'governed' && l.minimum !== null))
  );
}

/** True if a query aggregates all rows as one group, and so yields exactly one row. */
function isOneFigure(query: Query): boolean {
  return (
    query.kind === 'select' &&
    query.grouped &&
    query.groupBy.length === 0 &&
    query.groupingSets === null &&
    query.having.length === 0
  );
}
