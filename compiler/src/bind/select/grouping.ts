import type { GroupingSet, Node, SelectStmt } from '@pgsql/types';
import { LIMITS } from '../../limits.js';
import { fingerprint } from '../../plan/fingerprint.js';
import type { Expr, Query, Select } from '../../plan/plan.js';
import { readsAround } from '../../plan/query-tree.js';
import { keyFinder } from '../../plan/select-nodes.js';
import { childrenOf, exprsOf, partsOf, queryOf, visitExpr } from '../../plan/walk.js';
import { firstLocation, type Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { localSources, type Scope } from '../scope.js';

/** The indices of the keys in one grouping set. */
type KeyIndices = readonly number[];

/**
 * Binds GROUP BY to its keys and, for ROLLUP, CUBE, GROUPING SETS or `()`, to the expanded grouping sets. Items of
 * GROUP BY are combined as a cross product; items of GROUPING SETS are concatenated.
 *
 * @throws QueryError E0511 if there are more than `LIMITS.groupingSets`
 */
export function bindGroups(
  stmt: SelectStmt,
  bindKey: (node: Node) => Expr,
  ctx: BindContext,
): Pick<Select, 'groupBy' | 'groupingSets'> {
  const nodes = stmt.groupClause ?? [];
  if (!nodes.some((n) => 'GroupingSet' in n || isPlainRow(n)))
    return { groupBy: Object.freeze(nodes.map(bindKey)), groupingSets: null };
  return new GroupingSets(bindKey, ctx, firstLocation(nodes[0])).written(nodes, stmt.groupDistinct === true);
}

/** True for `(a, b)`, which GROUP BY treats as a list rather than a row. */
function isPlainRow(node: Node): boolean {
  return 'RowExpr' in node && node.RowExpr.row_format === 'COERCE_IMPLICIT_CAST';
}

class GroupingSets {
  readonly #bindKey: (node: Node) => Expr;
  readonly #ctx: BindContext;
  readonly #at: Location;
  readonly #keys: Expr[] = [];
  readonly #known = new Map<string, number>();

  constructor(bindKey: (node: Node) => Expr, ctx: BindContext, at: Location) {
    this.#bindKey = bindKey;
    this.#ctx = ctx;
    this.#at = at;
  }

  written(nodes: readonly Node[], distinct: boolean): Pick<Select, 'groupBy' | 'groupingSets'> {
    let sets: readonly KeyIndices[] = [[]];
    for (const node of nodes) {
      const own = this.#setsOf(node);
      this.#bound(sets.length * own.length);
      sets = sets.flatMap((before) => own.map((keys) => this.#joined([before, keys])));
    }
    if (distinct) sets = [...new Map(sets.map((s) => [[...s].sort((a, b) => a - b).join(), s])).values()];
    this.#spend(sets);
    const groupBy = Object.freeze([...this.#keys]);
    // A single set is equivalent to a plain GROUP BY.
    if (sets.length === 1) return { groupBy, groupingSets: null };
    return { groupBy, groupingSets: Object.freeze(sets.map((s) => Object.freeze([...s]))) };
  }

  #setsOf(node: Node): readonly KeyIndices[] {
    if (!('GroupingSet' in node)) return [this.#list(node)];
    const { content = [], kind } = node.GroupingSet as GroupingSet;
    switch (kind) {
      case 'GROUPING_SET_EMPTY':
        return [[]];
      case 'GROUPING_SET_ROLLUP': {
        const lists = content.map((n) => this.#list(n));
        this.#bound(lists.length + 1);
        return [...lists.keys(), lists.length].reverse().map((n) => this.#joined(lists.slice(0, n)));
      }
      case 'GROUPING_SET_CUBE': {
        const lists = content.map((n) => this.#list(n));
        this.#bound(2 ** lists.length);
        const all = 2 ** lists.length - 1;
        return Array.from({ length: all + 1 }, (_, left) =>
          this.#joined(lists.filter((_, i) => ((all - left) & (1 << (lists.length - 1 - i))) !== 0)),
        );
      }
      case 'GROUPING_SET_SETS': {
        const sets: KeyIndices[] = [];
        for (const n of content) {
          sets.push(...this.#setsOf(n));
          this.#bound(sets.length);
        }
        return sets;
      }
      default:
        return content.map((n) => this.#list(n));
    }
  }

  #list(node: Node): KeyIndices {
    const items = isPlainRow(node) && 'RowExpr' in node ? (node.RowExpr.args ?? []) : [node];
    return [...new Set(items.map((item) => this.#index(item)))];
  }

  #index(node: Node): number {
    const key = this.#bindKey(node);
    const text = fingerprint(key);
    const known = this.#known.get(text);
    if (known !== undefined) return known;
    this.#known.set(text, this.#keys.length);
    this.#ctx.requireColumns(this.#keys.length + 1, 'GROUP BY', this.#at);
    return this.#keys.push(key) - 1;
  }

  #bound(count: number): void {
    if (count <= LIMITS.groupingSets) return;
    const what = 'the number of its grouping sets';
    throw this.#ctx.error('tooComplex', { what, limit: LIMITS.groupingSets }, this.#at);
  }

  #joined(lists: readonly KeyIndices[]): KeyIndices {
    const [first = [], ...more] = lists.filter((l) => l.length > 0);
    if (more.length === 0) return first;
    this.#ctx.countValues(
      this.#at,
      lists.reduce((sum, l) => sum + l.length, 0),
    );
    return [...new Set(lists.flat())];
  }

  /** Counts the keys' subexpressions once more for each set, because the SQL repeats them there. */
  #spend(sets: readonly KeyIndices[]): void {
    const sizes = this.#keys.map((key) => {
      let size = 0;
      visitExpr(key, () => size++);
      return size - 1;
    });
    for (const set of sets)
      this.#ctx.countValues(
        this.#at,
        set.reduce((sum, i) => sum + (sizes[i] ?? 0), 0),
      );
  }
}

/** Requires columns of a grouped level to be inside an aggregate or part of a grouping key. */
export function checkGrouping(
  exprs: readonly Expr[],
  groupBy: readonly Expr[],
  scope: Scope,
  ctx: BindContext,
): void {
  const isKey = keyFinder(groupBy);
  const local = localSources(scope);
  const readsLocal = (query: Query): boolean =>
    [...readsAround(query)].some((s) => local.has(s) || scope.operators?.isResult(s) === true);
  const checkQuery = (query: Query): void => {
    if (!readsLocal(query)) return;
    exprsOf(query).forEach(check);
    partsOf(query).forEach(checkQuery);
  };
  const check = (expr: Expr): void => {
    if (expr.kind === 'aggregate' || expr.kind === 'grouping' || isKey(expr)) return;
    if (expr.kind === 'column') {
      if (scope.operators?.isResult(expr.source) === true) {
        const detail = 'an operator over rows must stand in GROUP BY or inside an aggregate';
        throw ctx.grouping(detail, ctx.locationOf(expr));
      }
      const item = local.get(expr.source);
      if (item === undefined) return;
      const shown = [...item.columns.entries()].find(([, c]) => c.name === expr.name)?.[0] ?? expr.name;
      const detail = `column \`${item.alias}.${shown}\` must stand in GROUP BY or inside an aggregate`;
      throw ctx.grouping(detail, ctx.locationOf(expr));
    }
    for (const child of childrenOf(expr)) check(child);
    const inner = queryOf(expr);
    if (inner !== null) checkQuery(inner);
  };
  for (const expr of exprs) check(expr);
}

/** Requires the arguments of `grouping(…)` to be grouping keys. */
export function refuseOtherGroupings(
  exprs: readonly Expr[],
  groupBy: readonly Expr[],
  ctx: BindContext,
): void {
  const keys = new Set(groupBy.map(fingerprint));
  const check = (e: Expr): void => {
    if (e.kind !== 'grouping') return;
    const other = e.args.find((a) => !keys.has(fingerprint(a)));
    if (other === undefined) return;
    const detail = 'the arguments of GROUPING must be keys of GROUP BY';
    throw ctx.grouping(detail, ctx.locationOf(e));
  };
  for (const expr of exprs) visitExpr(expr, check);
}
