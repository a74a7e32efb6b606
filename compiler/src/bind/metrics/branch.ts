import type { Aggregate, ColumnRef, CommonTable, Expr, FromItem } from '../../plan/plan.js';

/** The rows that one metric takes beside those of the statement. */
export interface Branch {
  /** What its aggregates need of them. */
  readonly inputs: readonly Expr[];
  /** Whether the metric takes nothing for some group of its rows that the statement has not. */
  readonly withinGroups: boolean;
  /** Whether `call` is one of its aggregates. */
  has(call: Aggregate): boolean;
  /** @param columns what `inputs` are in the union; `taken`: whether a row of it is one of these */
  value(call: Aggregate, columns: readonly Expr[], taken: ColumnRef): Expr;
  /** @param all the rows of the statement; `keys`: the columns of it that GROUP BY names */
  rows(all: CommonTable, keys: ReadonlySet<string>): BranchRows;
}

export interface BranchRows {
  readonly from: FromItem;
  readonly where: readonly Expr[];
  /** The keys of the statement, by the names of their columns. */
  readonly keys: ReadonlyMap<string, Expr>;
  readonly inputs: readonly Expr[];
  /** What `from` reads. */
  readonly tables: readonly CommonTable[];
}
