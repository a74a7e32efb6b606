import { InternalError } from '../errors.js';
import {
  type CommonTable,
  type Expr,
  type FromItem,
  type GovernedColumn,
  type GovernedScan,
  type Output,
  type Query,
  type Select,
  type SetOperation,
  SHOWN,
  type SourceId,
  type Values,
} from '../plan.js';
import { allQueries, changed, leavesOf, mapChildren, mapped, mapSort, queryOf, someExpr } from '../walk.js';
import { comparison, count } from './minimum.js';
import { isSealedLevel, type Reach } from './reach.js';
import type { GovernedSlots } from './slots.js';

/** What in a statement must not run on hidden rows as it stands. */
export interface Guards {
  readonly reach: Reach;
  /** Conditions that ask first whether the rows that reach them are shown. */
  readonly conditions: ReadonlySet<Expr>;
  /** Queries whose output is worked out before anything is compared with it. */
  readonly sealed: ReadonlySet<Query>;
  /** Whether every scan with a row filter is fenced. */
  readonly fenced: boolean;
}

/**
 * `CASE WHEN <rows are shown> THEN <condition> ELSE false END` in the place of each condition. Postgres evaluates
 * WHEN before THEN and moves nothing out of a CASE whose test reads a row, so the condition meets shown rows only,
 * and the scan stays open to index conditions and joins. It also keeps the planner from trying the condition on the
 * values of its statistics, which are those of hidden rows too.
 */
export function guarded(root: Query, guards: Guards, slots: GovernedSlots): Query {
  return new Guarding(root, guards, slots).rewritten(root, []);
}

class Guarding {
  readonly #guards: Guards;
  readonly #slots: GovernedSlots;
  readonly #items = new Map<SourceId, FromItem>();
  readonly #tables = new Map<number, Query>();
  /** FROM items of levels with an outer join, which may give NULLs in the place of their rows. */
  readonly #missing = new Set<SourceId>();
  /** Scans that say of their rows whether they are shown. */
  readonly #saying = new Set<SourceId>();
  /** Scans of which a query carries it up, as its last columns, in this order. */
  readonly #carried = new Map<Query, SourceId[]>();
  readonly #within = new Map<Query, ReadonlySet<SourceId>>();

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

  // -------------------------------------------------------------- what must be carried where

  /** Makes FROM item `source` say whether the rows of `scan` in it are shown. */
  #carry(source: SourceId, scan: SourceId): void {
    const item = this.#items.get(source);
    if (item?.kind === 'governed') this.#saying.add(item.id);
    else {
      const query = this.#behind(item);
      if (query !== null) this.#carryIn(query, scan);
    }
  }

  #carryIn(query: Query, scan: SourceId): void {
    const carried = this.#carried.get(query) ?? [];
    if (carried.includes(scan)) return;
    this.#carried.set(query, [...carried, scan]);
    if (query.kind === 'set_operation') {
      this.#carryIn(query.left, scan);
      this.#carryIn(query.right, scan);
    } else if (query.kind === 'select') {
      for (const leaf of this.#leavesWith(query, scan)) this.#carry(leaf, scan);
    }
  }

  /** The FROM items of a level that rows of `scan` come through; none where they end in one figure of them all. */
  #leavesWith(query: Select, scan: SourceId): readonly SourceId[] {
    if (isSealedLevel(query) || (query.grouped && query.groupBy.length === 0)) return [];
    return leavesOf(query.from)
      .filter((l) => l.id === scan || this.#scansIn(this.#behind(l)).has(scan))
      .map((l) => l.id);
  }

  #behind(item: FromItem | undefined): Query | null {
    if (item?.kind === 'derived') return item.query;
    return item?.kind === 'cte' ? (this.#tables.get(item.table) ?? null) : null;
  }

  #scansIn(query: Query | null): ReadonlySet<SourceId> {
    if (query === null || query.kind === 'values') return NONE;
    const known = this.#within.get(query);
    if (known !== undefined) return known;
    const found = new Set<SourceId>();
    const add = (ids: Iterable<SourceId>): void => {
      for (const id of ids) found.add(id);
    };
    if (query.kind === 'set_operation') {
      add(this.#scansIn(query.left));
      add(this.#scansIn(query.right));
    } else {
      for (const leaf of leavesOf(query.from)) {
        if (leaf.kind === 'governed') found.add(leaf.id);
        else add(this.#scansIn(this.#behind(leaf)));
      }
    }
    this.#within.set(query, found);
    return found;
  }

  // -------------------------------------------------------------- the statement anew

  /** @param shape those of `#carried`, given to the operands of a set operation that carry none themselves */
  rewritten(query: Query, shape: readonly SourceId[] = this.#carried.get(query) ?? []): Query {
    switch (query.kind) {
      case 'values':
        return this.#values(query, shape);
      case 'set_operation':
        return this.#setOperation(query, shape);
      case 'select':
        return this.#select(query, shape);
      default: {
        const unknown: never = query;
        throw new InternalError(`unexpected query ${String(unknown)}`);
      }
    }
  }

  readonly #deep = (e: Expr): Expr => mapChildren(e, this.#deep, (q) => this.#inner(q));

  /** A query inside an expression: worked out by itself where what it yields must not be compared before. */
  #inner(query: Query): Query {
    const after = this.rewritten(query);
    if (!this.#guards.sealed.has(query) || after.kind === 'values') return after;
    if (after.limit !== null || after.offset !== null) return after;
    return Object.freeze({ ...after, offset: this.#slots.literal('0', 'int8') });
  }

  #condition(condition: Expr): Expr {
    if (!this.#guards.conditions.has(condition)) return this.#deep(condition);
    const shown = this.#guards.reach.reached(condition).map((r) => this.#shown(r.source, r.scan));
    return this.#parts(condition, allOf(shown));
  }

  /**
   * What of a condition can fail asks about all rows that reach the condition; the rest stays bare, and an arm of OR
   * keeps its index. What comes out for a hidden row does not matter: its row filter is in its scan.
   */
  #parts(condition: Expr, when: Expr): Expr {
    if (condition.kind === 'and' || condition.kind === 'or')
      return changed(condition, { args: mapped(condition.args, (c) => this.#parts(c, when)) });
    if (condition.kind === 'not' && this.#hasBareParts(condition.arg))
      return changed(condition, { arg: this.#parts(condition.arg, when) });
    const after = this.#deep(condition);
    return this.#guards.reach.isHarmless(condition) ? after : this.#asking(after, when);
  }

  /** Whether parts of what NOT is of may stay bare: Postgres makes conditions of them that an index serves. */
  #hasBareParts(arg: Expr): boolean {
    return (
      (arg.kind === 'and' || arg.kind === 'or') && arg.args.some((c) => this.#guards.reach.isHarmless(c))
    );
  }

  #asking(condition: Expr, when: Expr): Expr {
    const arm = Object.freeze({ when, result: condition });
    return Object.freeze({ kind: 'case', arms: Object.freeze([arm]), otherwise: FALSE, type: 'bool' });
  }

  /** Whether the rows of `scan` that come through `source` are shown; so is what an outer join puts in their place. */
  #shown(source: SourceId, scan: SourceId): Expr {
    const item = this.#items.get(source);
    const behind = this.#behind(item);
    const name = behind === null ? SHOWN : `c${widthOf(behind) + this.#placeOf(behind, scan)}`;
    const ref: Expr = Object.freeze({ kind: 'column', source, name, type: 'bool' });
    if (!this.#missing.has(source)) return ref;
    return Object.freeze({ kind: 'truth_test', arg: ref, test: 'false', negated: true, type: 'bool' });
  }

  #placeOf(query: Query, scan: SourceId): number {
    const place = (this.#carried.get(query) ?? []).indexOf(scan);
    if (place < 0) throw new InternalError('a level does not carry up whether its rows are shown');
    return place + 1;
  }

  #select(query: Select, shape: readonly SourceId[]): Select {
    const carried = shape.map((scan) => {
      const leaves = this.#leavesWith(query, scan);
      return leaves.length === 0 ? TRUE : allOf(leaves.map((leaf) => this.#shown(leaf, scan)));
    });
    const all = (list: readonly Expr[]): readonly Expr[] => mapped(list, this.#deep);
    // Postgres moves such a condition below the groups by itself; where it stands it cannot ask about rows.
    const asks = (c: Expr): boolean => this.#guards.conditions.has(c) && query.groupBy.length > 0;
    // A key that a grouping set leaves out is NULL above the groups, and not below.
    const moves = (c: Expr): boolean =>
      asks(c) && query.groupingSets === null && !someExpr(c, (e) => queryOf(e) !== null);
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
      having: mapped(stays, (c) => (asks(c) ? this.#asking(this.#deep(c), OF_A_GROUP) : this.#condition(c))),
      outputs: this.#outputs(query.outputs, carried),
      distinctOn: all(query.distinctOn),
      orderBy: mapSort(query.orderBy, this.#deep),
      limit: query.limit === null ? null : this.#deep(query.limit),
      offset: query.offset === null ? null : this.#deep(query.offset),
    });
  }

  #outputs(outputs: readonly Output[], carried: readonly Expr[]): readonly Output[] {
    const own = mapped(outputs, (o) => changed(o, { expr: this.#deep(o.expr) }));
    if (carried.length === 0) return own;
    return Object.freeze([...own, ...carried.map((expr): Output => Object.freeze({ name: SHOWN, expr }))]);
  }

  #setOperation(query: SetOperation, shape: readonly SourceId[]): SetOperation {
    const more = shape.map(() => Object.freeze({ name: SHOWN, type: 'bool' as const }));
    return changed(query, {
      with: this.#with(query.with),
      left: this.rewritten(query.left, shape),
      right: this.rewritten(query.right, shape),
      columns: more.length === 0 ? query.columns : Object.freeze([...query.columns, ...more]),
      orderBy: mapSort(query.orderBy, this.#deep),
    });
  }

  #values(query: Values, shape: readonly SourceId[]): Values {
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
      default: {
        const unknown: never = item;
        throw new InternalError(`unexpected FROM item ${String(unknown)}`);
      }
    }
  }

  #scan(scan: GovernedScan): GovernedScan {
    if (scan.filter === null) return scan;
    const shown = this.#saying.has(scan.id) ? [shownColumn(scan.filter)] : [];
    return changed(scan, {
      columns: shown.length === 0 ? scan.columns : Object.freeze([...scan.columns, ...shown]),
      fenced: this.#guards.fenced,
    });
  }
}

/** Says whether `filter` lets the row through; an unknown outcome does not. */
export function shownColumn(filter: Expr): GovernedColumn {
  const expr: Expr = Object.freeze({
    kind: 'truth_test',
    arg: filter,
    test: 'true',
    negated: false,
    type: 'bool',
  });
  return Object.freeze({ name: SHOWN, type: 'bool', expr, masked: 'none' });
}

const NONE: ReadonlySet<SourceId> = new Set();
const FALSE: Expr = Object.freeze({ kind: 'boolean', value: false, type: 'bool' });
/** True of every group; a condition with an aggregate in it stays above the groups, whose rows are all shown. */
const OF_A_GROUP: Expr = comparison('>=', count([], false, null), count([], false, null));
const TRUE: Expr = Object.freeze({ kind: 'boolean', value: true, type: 'bool' });

function allOf(args: readonly Expr[]): Expr {
  const [only] = args;
  if (only !== undefined && args.length === 1) return only;
  return Object.freeze({ kind: 'and', args: Object.freeze([...args]), type: 'bool' });
}

function hasOuterJoin(item: FromItem | null): boolean {
  return (
    item?.kind === 'join' && (item.type !== 'inner' || hasOuterJoin(item.left) || hasOuterJoin(item.right))
  );
}

function widthOf(query: Query): number {
  return query.kind === 'select' ? query.outputs.length : query.columns.length;
}
