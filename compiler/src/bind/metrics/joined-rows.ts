import { InternalError } from '../../errors/errors.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { columnRef } from '../../plan/nodes.js';
import type {
  Aggregate,
  ColumnRef,
  CommonTable,
  Expr,
  FromItem,
  PlanOutput,
  Query,
  Select,
  SourceId,
} from '../../plan/plan.js';
import { keyFinder, selectOf } from '../../plan/select-nodes.js';
import { changed, mapChildren, mapped, mapSort, someExpr } from '../../plan/walk.js';
import type { BindContext } from '../context.js';

export interface Branch {
  readonly inputs: readonly Expr[];
  /** True if this branch adds no groups to the groups of the statement. */
  readonly withinGroups: boolean;
  has(call: Aggregate): boolean;
  /**
   * Computes an aggregate from the union.
   *
   * @param columns columns of the union, one per input
   * @param taken flag that marks this branch's rows in the union
   */
  value(call: Aggregate, columns: readonly Expr[], taken: ColumnRef): Expr;
  /**
   * @param all the rows of the statement
   * @param keys names of the columns of `all` that GROUP BY uses
   */
  rows(all: CommonTable, keys: ReadonlySet<string>): BranchRows;
}

export interface BranchRows {
  readonly from: FromItem;
  readonly where: readonly Expr[];
  readonly keys: ReadonlyMap<string, Expr>;
  readonly inputs: readonly Expr[];
  readonly tables: readonly CommonTable[];
}

type UpperClauses = Pick<Select, 'groupBy' | 'having' | 'outputs' | 'distinctOn' | 'orderBy'>;

/** Moves FROM and WHERE into a derived table, and rewrites the other clauses to read its columns. */
export class JoinedRows {
  readonly id: SourceId;
  readonly #select: Select;
  readonly #local: ReadonlySet<SourceId>;
  readonly #ctx: BindContext;
  readonly #isKey: (e: Expr) => boolean;
  readonly #outputs: PlanOutput[] = [];
  readonly #columns = new Map<string, ColumnRef>();

  constructor(select: Select, local: ReadonlySet<SourceId>, ctx: BindContext) {
    this.#select = select;
    this.#local = local;
    this.#ctx = ctx;
    this.#isKey = keyFinder(select.groupBy);
    this.id = ctx.nextSource();
  }

  mark(placeholder: ColumnRef, expr: Expr): void {
    this.#columns.set(fingerprint(placeholder), this.#added(expr));
  }

  outer(): Select {
    const clauses = this.clauses((call) => this.inside(call));
    return this.over(clauses, this.query());
  }

  over(clauses: UpperClauses, rows: Query): Select {
    const from = Object.freeze({ kind: 'derived', id: this.id, query: rows } as const);
    return Object.freeze({ ...this.#select, ...clauses, from, where: Object.freeze([]) });
  }

  /**
   * Returns the clauses other than FROM and WHERE, over the derived table. @param aggregate rewrites their aggregates
   */
  clauses(aggregate: (call: Aggregate) => Expr): UpperClauses {
    const { groupBy, having, outputs, distinctOn, orderBy } = this.#select;
    const above = (e: Expr): Expr => {
      if (e.kind === 'aggregate') return aggregate(e);
      if (!this.#isKey(e)) return this.#placed(e, above);
      return someExpr(e, (x) => x.kind === 'column') ? this.columnOf(e) : e;
    };
    return {
      groupBy: mapped(groupBy, above),
      having: mapped(having, above),
      outputs: mapped(outputs, (o) => changed(o, { expr: above(o.expr) })),
      distinctOn: mapped(distinctOn, above),
      orderBy: mapSort(orderBy, above),
    };
  }

  /** Rewrites an aggregate, or an expression inside one, to the derived table's columns. */
  inside(e: Expr): Expr {
    return this.#placed(e, (x) => this.inside(x));
  }

  /** Returns the query of the derived table, with the columns requested so far. */
  query(): Select {
    const { from, where } = this.#select;
    return selectOf({ from, where, outputs: Object.freeze([...this.#outputs]) });
  }

  ofUse(expr: Expr, use: FromItem): Expr {
    if (use.kind === 'join') throw new InternalError('a use of a table is not a join');
    const { id } = use;
    const own = (e: Expr): Expr => {
      if (e.kind === 'column') return e.source === this.id ? columnRef(id, e.name, e.type) : e;
      return mapChildren(e, own, (q) => q);
    };
    return own(expr);
  }

  columnOf(expr: Expr): ColumnRef {
    const name = fingerprint(expr);
    const known = this.#columns.get(name);
    if (known !== undefined) return known;
    const column = this.#added(expr);
    this.#columns.set(name, column);
    return this.#ctx.at(column, this.#ctx.locationOf(expr));
  }

  #placed(e: Expr, below: (e: Expr) => Expr): Expr {
    if (e.kind === 'column')
      return this.#local.has(e.source) ? this.columnOf(e) : (this.#columns.get(fingerprint(e)) ?? e);
    const mapped = mapChildren(e, below, (q) => q);
    return mapped === e ? e : this.#ctx.at(mapped, this.#ctx.locationOf(e));
  }

  #added(expr: Expr): ColumnRef {
    const position = this.#outputs.push(Object.freeze({ name: `c${this.#outputs.length + 1}`, expr }));
    return columnRef(this.id, `c${position}`, expr.type);
  }
}
