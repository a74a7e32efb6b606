import { assertNever, InternalError } from '../../errors/errors.js';
import { allOf, caseNode, FALSE, TRUE, truthTest } from '../../plan/nodes.js';
import {
  type CommonTable,
  type Expr,
  type FromItem,
  type GovernedColumn,
  type GovernedScan,
  type PlanOutput,
  type Query,
  type Select,
  type SetOperation,
  SHOWN,
  type SourceId,
  type ValuesList,
} from '../../plan/plan.js';
import {
  allQueries,
  changed,
  leavesOf,
  mapChildren,
  mapped,
  mapSort,
  queryOf,
  someExpr,
} from '../../plan/walk.js';
import { comparison, count } from '../minimum.js';
import type { GovernedSlots } from '../slots.js';
import { isSealedLevel, type RowReach } from './row-reach.js';

/** The expressions of a statement that must not run unguarded on hidden rows. */
export interface Guards {
  readonly reach: RowReach;
  /** Conditions that must first test whether the rows that reach them are shown. */
  readonly conditions: ReadonlySet<Expr>;
  /** HAVING conditions with a part that can fail and that Postgres would move below the groups. */
  readonly aboveGroups: ReadonlySet<Expr>;
  /** Queries whose output must be complete before anything is compared with it. */
  readonly sealed: ReadonlySet<Query>;
  /** True if every scan with a row filter is fenced, so that no outer condition runs inside it. */
  readonly fenced: boolean;
}

/**
 * Replaces each condition by `CASE WHEN <rows are shown> THEN <condition> ELSE false END`. Postgres evaluates WHEN
 * before THEN and moves nothing out of a CASE whose test reads a row, so the condition sees shown rows only, and the
 * scan can still use index conditions and joins. The CASE also keeps the planner from trying the condition on column
 * statistics, which include values of hidden rows.
 */
export function guarded(root: Query, guards: Guards, slots: GovernedSlots): Query {
  return new GuardPass(root, guards, slots).rewritten(root, []);
}

/** Maximum number of visibility columns that a query carries up; beyond it, one column covers all scans. */
const MAX_CARRIED = 8;

/** Maximum number of visibility tests in the parts of one condition. */
const MAX_TESTS = 256;

/** The scans on which added visibility columns report, one per column; null means all scans. */
type CarriedScans = readonly (SourceId | null)[];

class GuardPass {
  readonly #guards: Guards;
  readonly #slots: GovernedSlots;
  readonly #items = new Map<SourceId, FromItem>();
  readonly #tables = new Map<number, Query>();
  /** FROM items of levels with an outer join, which may replace their rows with NULLs. */
  readonly #missing = new Set<SourceId>();
  /** Scans that get a `SHOWN` column, which is true in the rows that the row filter accepts. */
  readonly #statingScans = new Set<SourceId>();
  /** The scans whose visibility a query reports in its last columns, in this order; `all`: one column for all. */
  readonly #carried = new Map<Query, Set<SourceId> | 'all'>();
  /** Caches whether a query reads the rows of a scan or, under key null, of any scan with a row filter. */
  readonly #within = new Map<Query, Map<SourceId | null, boolean>>();

  constructor(root: Query, guards: Guards, slots: GovernedSlots) {
    this.#guards = guards;
    this.#slots = slots;
    for (const query of allQueries(root)) {
      if (query.kind !== 'values')
        for (const t of query.with) if (t.recursive !== true) this.#tables.set(t.id, t.query);
      if (query.kind !== 'select') continue;
      const outer = hasOuterJoin(query.from);
      for (const leaf of leavesOf(query.from)) {
        this.#items.set(leaf.id, leaf);
        if (outer) this.#missing.add(leaf.id);
      }
    }
    for (const condition of guards.conditions) {
      for (const { source, scan } of guards.reach.reached(condition)) this.#carry(source, scan);
    }
  }

  // -------------------------------------------------------------- visibility columns

  /** Makes FROM item `source` report whether its rows of `scan` (if null, of all its scans) are shown. */
  #carry(source: SourceId, scan: SourceId | null): void {
    const item = this.#items.get(source);
    if (item?.kind === 'governed') this.#statingScans.add(item.id);
    else {
      const query = this.#behind(item);
      if (query !== null) this.#carryIn(query, scan);
    }
  }

  #carryIn(query: Query, scan: SourceId | null): void {
    const carried = this.#carried.get(query) ?? new Set<SourceId>();
    if (carried === 'all' || (scan !== null && carried.has(scan))) return;
    const all = scan === null || carried.size === MAX_CARRIED;
    this.#carried.set(query, all ? 'all' : carried.add(scan));
    const below = all ? null : scan;
    if (query.kind === 'set_operation') {
      this.#carryIn(query.left, below);
      this.#carryIn(query.right, below);
    } else if (query.kind === 'select') {
      for (const leaf of this.#leavesWith(query, below)) this.#carry(leaf, below);
    }
  }

  /** Returns the FROM items that pass on rows of `scan`; none if the level is sealed (fenced) or has a single group. */
  #leavesWith(query: Select, scan: SourceId | null): readonly SourceId[] {
    if (isSealedLevel(query) || (query.grouped && query.groupBy.length === 0)) return [];
    return leavesOf(query.from)
      .filter((l) => this.#readsBy(l, scan))
      .map((l) => l.id);
  }

  #behind(item: FromItem | undefined): Query | null {
    if (item?.kind === 'derived') return item.query;
    return item?.kind === 'cte' ? (this.#tables.get(item.table) ?? null) : null;
  }

  #reads(query: Query | null, scan: SourceId | null): boolean {
    if (query === null || query.kind === 'values') return false;
    const known = this.#within.get(query) ?? new Map<SourceId | null, boolean>();
    this.#within.set(query, known);
    let reads = known.get(scan);
    if (reads === undefined) {
      reads =
        query.kind === 'set_operation'
          ? this.#reads(query.left, scan) || this.#reads(query.right, scan)
          : leavesOf(query.from).some((l) => this.#readsBy(l, scan));
      known.set(scan, reads);
    }
    return reads;
  }

  #readsBy(leaf: FromItem, scan: SourceId | null): boolean {
    if (leaf.kind === 'governed') return scan === null ? leaf.filter !== null : leaf.id === scan;
    return this.#reads(this.#behind(leaf), scan);
  }

  #columnsOf(query: Query): CarriedScans {
    const carried = this.#carried.get(query);
    return carried === 'all' ? [null] : [...(carried ?? [])];
  }

  // -------------------------------------------------------------- rewriting

  /** @param shape the visibility columns to append; operands of a set operation get those of the whole operation */
  rewritten(query: Query, shape: CarriedScans = this.#columnsOf(query)): Query {
    switch (query.kind) {
      case 'values':
        return this.#values(query, shape);
      case 'set_operation':
        return this.#setOperation(query, shape);
      case 'select':
        return this.#select(query, shape);
      default:
        return assertNever(query);
    }
  }

  readonly #deep = (e: Expr): Expr => mapChildren(e, this.#deep, (q) => this.#inner(q));

  /** Rewrites a query inside an expression; fences it if its output must be complete before it is compared. */
  #inner(query: Query): Query {
    const after = this.rewritten(query);
    if (!this.#guards.sealed.has(query) || after.kind === 'values') return after;
    if (after.limit !== null || after.offset !== null) return after;
    return Object.freeze({ ...after, offset: this.#slots.literal('0', 'int8') });
  }

  #condition(condition: Expr): Expr {
    if (!this.#guards.conditions.has(condition)) return this.#deep(condition);
    const shown = new Map<string, Expr>();
    for (const { source, scan } of this.#guards.reach.reached(condition)) {
      const test = this.#shown(source, scan);
      shown.set(`${source} ${test.name}`, test.expr);
    }
    const when = allOf([...shown.values()]);
    // Each guarded part repeats all tests; if there are too many, one guard covers the whole condition.
    return shown.size * this.#guardedParts(condition) > MAX_TESTS
      ? this.#guard(this.#deep(condition), when)
      : this.#parts(condition, when);
  }

  /** Counts the parts of a condition that get a guard. */
  #guardedParts(condition: Expr): number {
    if (condition.kind === 'and' || condition.kind === 'or') {
      const mixed = condition.args.filter((c) => this.#isMixed(c));
      const failing = condition.args.some((c) => !this.#isMixed(c) && !this.#isHarmless(c));
      return mixed.reduce((sum, c) => sum + this.#guardedParts(c), failing ? 1 : 0);
    }
    return condition.kind === 'not' && this.#isMixed(condition) ? this.#guardedParts(condition.arg) : 1;
  }

  /**
   * Wraps each part that can fail in a guard, which tests that all rows reaching the condition are shown. Other parts
   * stay bare, so that an operand of OR can still use its index. Their value for a hidden row does not matter, since
   * the scan's row filter removes that row.
   */
  #parts(condition: Expr, when: Expr): Expr {
    if (condition.kind === 'and' || condition.kind === 'or') return this.#list(condition, when);
    if (condition.kind === 'not' && this.#isMixed(condition))
      return changed(condition, { arg: this.#parts(condition.arg, when) });
    const after = this.#deep(condition);
    return this.#isHarmless(condition) ? after : this.#guard(after, when);
  }

  /** Puts one guard around all parts of an AND or OR that can fail, in place of the first of them. */
  #list(list: Extract<Expr, { kind: 'and' | 'or' }>, when: Expr): Expr {
    const failing = list.args.filter((c) => !this.#isMixed(c) && !this.#isHarmless(c));
    const [first] = failing;
    if (failing.length < 2 || first === undefined)
      return changed(list, { args: mapped(list.args, (c) => this.#parts(c, when)) });
    const together = Object.freeze({ ...list, args: Object.freeze(failing.map(this.#deep)) });
    if (failing.length === list.args.length) return this.#guard(together, when);
    const failed = new Set(failing);
    const args = list.args.flatMap((c) =>
      c === first ? [this.#guard(together, when)] : failed.has(c) ? [] : [this.#parts(c, when)],
    );
    return Object.freeze({ ...list, args: Object.freeze(args) });
  }

  /** True if some parts of a condition can fail and others need no guard, so Postgres can use an index for those. */
  #isMixed(condition: Expr): boolean {
    const list = condition.kind === 'not' ? condition.arg : condition;
    if (list.kind !== 'and' && list.kind !== 'or') return false;
    return !this.#isHarmless(list) && list.args.some((c) => this.#isMixed(c) || this.#isHarmless(c));
  }

  #isHarmless(condition: Expr): boolean {
    return this.#guards.reach.isHarmless(condition);
  }

  #guard(condition: Expr, when: Expr): Expr {
    return caseNode(when, condition, FALSE);
  }

  /** Returns the column that reports whether rows of `scan` are shown; NULL rows of outer joins count as shown. */
  #shown(source: SourceId, scan: SourceId | null): { readonly name: string; readonly expr: Expr } {
    const item = this.#items.get(source);
    const behind = this.#behind(item);
    const name = behind === null ? SHOWN : `c${widthOf(behind) + this.#placeOf(behind, scan)}`;
    const ref: Expr = Object.freeze({ kind: 'column', source, name, type: 'bool' });
    if (!this.#missing.has(source)) return { name, expr: ref };
    return { name, expr: truthTest(ref, 'false', true) };
  }

  #placeOf(query: Query, scan: SourceId | null): number {
    const carried = this.#carried.get(query);
    if (carried === 'all') return 1;
    const place = scan === null ? -1 : [...(carried ?? [])].indexOf(scan);
    if (place < 0) throw new InternalError('a level does not carry up whether its rows are shown');
    return place + 1;
  }

  #select(query: Select, shape: CarriedScans): Select {
    const carried = shape.map((scan) => {
      const leaves = this.#leavesWith(query, scan);
      return leaves.length === 0 ? TRUE : allOf(leaves.map((leaf) => this.#shown(leaf, scan).expr));
    });
    const all = (list: readonly Expr[]): readonly Expr[] => mapped(list, this.#deep);
    // Postgres itself moves such a condition below the groups; above them, individual rows can no longer be tested.
    const isGuarded = (c: Expr): boolean => this.#guards.conditions.has(c) && query.groupBy.length > 0;
    // A key that a grouping set leaves out is NULL above the groups, but not below.
    const moves = (c: Expr): boolean =>
      isGuarded(c) && query.groupingSets === null && !someExpr(c, (e) => queryOf(e) !== null);
    const where = [...query.where, ...query.having.filter(moves)];
    const stays = query.having.some(moves)
      ? Object.freeze(query.having.filter((c) => !moves(c)))
      : query.having;
    const keys = query.grouped ? carried.filter((e) => e !== TRUE) : [];
    return changed(query, {
      with: this.#with(query.with),
      from: query.from === null ? null : this.#from(query.from),
      where: mapped(where.length === query.where.length ? query.where : where, (c) => this.#condition(c)),
      groupBy: keys.length === 0 ? all(query.groupBy) : Object.freeze([...all(query.groupBy), ...keys]),
      having: mapped(stays, (c) =>
        isGuarded(c) || this.#guards.aboveGroups.has(c)
          ? this.#guard(this.#deep(c), TRUE_PER_GROUP)
          : this.#condition(c),
      ),
      outputs: this.#outputs(query.outputs, carried),
      distinctOn: all(query.distinctOn),
      orderBy: mapSort(query.orderBy, this.#deep),
      limit: query.limit === null ? null : this.#deep(query.limit),
      offset: query.offset === null ? null : this.#deep(query.offset),
    });
  }

  #outputs(outputs: readonly PlanOutput[], carried: readonly Expr[]): readonly PlanOutput[] {
    const own = mapped(outputs, (o) => changed(o, { expr: this.#deep(o.expr) }));
    if (carried.length === 0) return own;
    return Object.freeze([
      ...own,
      ...carried.map((expr): PlanOutput => Object.freeze({ name: SHOWN, expr })),
    ]);
  }

  #setOperation(query: SetOperation, shape: CarriedScans): SetOperation {
    const more = shape.map(() => Object.freeze({ name: SHOWN, type: 'bool' as const }));
    return changed(query, {
      with: this.#with(query.with),
      left: this.rewritten(query.left, shape),
      right: this.rewritten(query.right, shape),
      columns: more.length === 0 ? query.columns : Object.freeze([...query.columns, ...more]),
      orderBy: mapSort(query.orderBy, this.#deep),
    });
  }

  #values(query: ValuesList, shape: CarriedScans): ValuesList {
    const rows = mapped(query.rows, (row) => mapped(row, this.#deep));
    if (shape.length === 0) return changed(query, { rows });
    const more = shape.map(() => Object.freeze({ name: SHOWN, type: 'bool' as const }));
    return Object.freeze({
      ...query,
      rows: Object.freeze(rows.map((row) => Object.freeze([...row, ...shape.map(() => TRUE)]))),
      columns: Object.freeze([...query.columns, ...more]),
    });
  }

  #with(tables: readonly CommonTable[]): readonly CommonTable[] {
    return mapped(tables, (t) => changed(t, { query: this.rewritten(t.query) }));
  }

  #from(item: FromItem): FromItem {
    switch (item.kind) {
      case 'join': {
        const sides = { left: this.#from(item.left), right: this.#from(item.right) };
        return changed(item, { ...sides, on: mapped(item.on, (c) => this.#condition(c)) });
      }
      case 'governed':
        return this.#scan(item);
      case 'derived':
        return changed(item, { query: this.rewritten(item.query) });
      case 'spine':
        return changed(item, { bounds: this.rewritten(item.bounds) });
      case 'rows':
        return changed(item, { args: mapped(item.args, this.#deep) });
      case 'entity':
      case 'cte':
      case 'recursion':
      case 'runtime':
        return item;
      default:
        return assertNever(item);
    }
  }

  #scan(scan: GovernedScan): GovernedScan {
    if (scan.filter === null) return scan;
    const shown = this.#statingScans.has(scan.id) ? [shownColumn(scan.filter)] : [];
    return changed(scan, {
      columns: shown.length === 0 ? scan.columns : Object.freeze([...scan.columns, ...shown]),
      fenced: this.#guards.fenced,
    });
  }
}

/** A column that is true if `filter` accepts the row, and false otherwise, even if the filter is NULL. */
function shownColumn(filter: Expr): GovernedColumn {
  return Object.freeze({ name: SHOWN, type: 'bool', expr: truthTest(filter, 'true', false), masked: 'none' });
}

/** Always true, but contains an aggregate, so a guarded condition stays above the groups, whose rows are all shown. */
const TRUE_PER_GROUP: Expr = comparison('>=', count([], false, null), count([], false, null));

function hasOuterJoin(item: FromItem | null): boolean {
  return (
    item?.kind === 'join' && (item.type !== 'inner' || hasOuterJoin(item.left) || hasOuterJoin(item.right))
  );
}

function widthOf(query: Query): number {
  return query.kind === 'select' ? query.outputs.length : query.columns.length;
}
