import { OPERATORS } from '../../catalog/operators.js';
import { InternalError } from '../../errors/errors.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { castTo, columnRef } from '../../plan/nodes.js';
import type { CommonTable, Expr, PlanOutput, Query, Select, SortKey } from '../../plan/plan.js';
import { mapQuery, readsAround } from '../../plan/query-tree.js';
import { ORDINAL, type RowOperator } from '../../plan/runtime.js';
import { ascending, selectOf } from '../../plan/select-nodes.js';
import { allQueries, leavesOf, mapChildren, mapSort, queryOf, someExpr, sortExprs } from '../../plan/walk.js';
import type { BindContext } from '../context.js';
import { isSealedIn, localSources, type Scope, type ScopeItem } from '../scope.js';
import type { OperatedLevel } from './row-operators.js';
import { operatedScan } from './runtime-draft.js';
import { isSelfContained } from './store-filters.js';

/**
 * Splits a SELECT with operators over its rows into a query of the rows, which runs first, and a SELECT over the rows
 * and the operators' values. Expressions that do not depend on operators are computed in the first query, with their
 * usual semantics.
 *
 * @throws QueryError E0511 if the rows cannot be queried separately
 */
export function operatedSelect(select: Select, level: OperatedLevel, scope: Scope, ctx: BindContext): Select {
  const parts = new SelectHalves(select, level, scope, ctx);
  const page = pageOf(select, level, parts);
  const outer = parts.above(page);
  const operators = level.uses.map((use, i): RowOperator => {
    const { text, operator, type, arguments: given } = use;
    return Object.freeze({ operator, column: `c${i + 1}`, type, arguments: given, of: parts.taken(text) });
  });
  const key = level.uses.some((u) => u.operator === 'DEDUP') ? parts.key() : null;
  const rows = parts.below(page);
  if (!isSelfContained(rows, () => true)) {
    const hint = 'operators map over rows of entities, or of derived and common tables of such';
    throw ctx.unsupported('an operator over these rows', level.location, hint);
  }
  const { draft } = level;
  draft.rows = rows;
  draft.operators = Object.freeze(operators);
  draft.key = key;
  for (const { column, type } of operators) draft.offered.set(column, type);
  return outer;
}

interface PageClauses {
  /** ORDER BY if it can be applied before the operators run; otherwise null. */
  readonly orderBy: readonly SortKey[] | null;
  /** True if LIMIT and OFFSET are applied before the operators run. */
  readonly isTaken: boolean;
}

function pageOf(select: Select, { uses }: OperatedLevel, parts: SelectHalves): PageClauses {
  const { grouped, distinct, distinctOn, withTies, outputs } = select;
  const keys = select.orderBy.map((k) =>
    typeof k.by === 'number' ? { ...k, by: outputs[k.by - 1]?.expr ?? k.by } : k,
  );
  const values = [...outputs.map((o) => o.expr), ...sortExprs(keys)];
  const isPlain = !values.some((e) => someExpr(e, (x) => x.kind === 'window' || makesRows(x)));
  const rowByRow = !grouped && !distinct && distinctOn.length === 0 && !withTies && isPlain;
  if (!rowByRow || sortExprs(keys).some((k) => !parts.isOfRows(k))) return { orderBy: null, isTaken: false };
  const isTaken =
    select.where.every((c) => parts.isOfRows(c)) && uses.every((u) => worksRowByRow(u.operator));
  return { orderBy: Object.freeze(keys.map((k) => Object.freeze(k))), isTaken };
}

/** True if the operator's value for a row depends only on the text of that row. */
function worksRowByRow(operator: keyof typeof OPERATORS): boolean {
  return OPERATORS[operator].class === 'decoder' || EACH_ROW.has(operator);
}

const EACH_ROW: ReadonlySet<keyof typeof OPERATORS> = new Set<keyof typeof OPERATORS>([
  'SIMILARITY',
  'CLASSIFY',
  'TAG',
]);

function makesRows(e: Expr): boolean {
  return e.kind === 'call' && e.definition.kind === 'rows';
}

/** Types that pass from the first query to the second as text and are then cast back. */
const READ_AS_JSON: ReadonlySet<string> = new Set(['json', 'jsonb']);

class SelectHalves {
  readonly #select: Select;
  readonly #level: OperatedLevel;
  readonly #scope: Scope;
  readonly #ctx: BindContext;
  readonly #local: ReadonlySet<number>;
  readonly #outputs = new Map<string, PlanOutput>();
  readonly #sealed = new Set<string>();
  readonly #groupKeys: ReadonlySet<string>;

  constructor(select: Select, level: OperatedLevel, scope: Scope, ctx: BindContext) {
    this.#select = select;
    this.#level = level;
    this.#scope = scope;
    this.#ctx = ctx;
    this.#local = new Set(localSources(scope).keys());
    this.#groupKeys = new Set(select.groupBy.map(fingerprint));
  }

  isOfRows(expr: Expr): boolean {
    return !someExpr(expr, (e) => e.kind === 'column' && e.source === this.#level.draft.source);
  }

  /** Returns the column that carries `expr` for each row. If the column is new, adds it to the query of the rows. */
  taken(expr: Expr): string {
    const id = fingerprint(expr);
    const known = this.#outputs.get(id) ?? Object.freeze({ name: `r${this.#outputs.size + 1}`, expr });
    this.#outputs.set(id, known);
    const column = `c${this.#level.uses.length + Number(known.name.slice(1))}`;
    this.#level.draft.offered.set(column, READ_AS_JSON.has(expr.type) ? 'text' : expr.type);
    if (this.#isSealed(expr)) this.#sealed.add(column);
    return column;
  }

  #isSealed(expr: Expr): boolean {
    const isOf = (i: ScopeItem): boolean =>
      expr.kind === 'column' && i.source === expr.source && isSealedIn(i, expr.name);
    return this.#scope.items.some(isOf);
  }

  /** Returns the column that carries the row's primary key, if the key is a single visible column; otherwise null. */
  key(): string | null {
    const [item, ...more] = this.#scope.items;
    const [name, ...others] = item?.relation?.primaryKey ?? [];
    const column = name === undefined ? undefined : item?.columns.get(name);
    if (item === undefined || more.length + others.length > 0) return null;
    if (column === undefined || column.denied || column.computed !== undefined) return null;
    this.#ctx.use(item.source, column.name);
    return this.taken(columnRef(item.source, column.name, column.type));
  }

  above({ orderBy, isTaken }: PageClauses): Select {
    const { draft, slot } = this.#level;
    const ctx = this.#ctx;
    ctx.use(draft.source, ORDINAL);
    const shown = (e: Expr): Expr => this.#shown(e);
    const { where, groupBy, having, outputs, distinctOn } = this.#select;
    const ordinal = ascending(columnRef(draft.source, ORDINAL, 'int4'));
    const parts = {
      ...this.#select,
      where: Object.freeze(where.filter((c) => !this.isOfRows(c)).map(shown)),
      groupBy: Object.freeze(groupBy.map(shown)),
      having: Object.freeze(having.map(shown)),
      outputs: Object.freeze(outputs.map((o) => Object.freeze({ ...o, expr: shown(o.expr) }))),
      distinctOn: Object.freeze(distinctOn.map(shown)),
      orderBy: orderBy === null ? mapSort(this.#select.orderBy, shown) : Object.freeze([ordinal]),
      ...(isTaken ? { limit: null, offset: null } : {}),
    };
    return Object.freeze({ ...parts, from: operatedScan(draft, slot, Object.freeze([...this.#sealed])) });
  }

  /** Returns the query of the rows. It reads one row beyond the maximum to detect that there are too many. */
  below({ orderBy, isTaken }: PageClauses): Query {
    const { from, where, limit, offset } = this.#select;
    const most = this.#ctx.constant(String(this.#level.draft.most + 1), 'int8');
    const least = (asked: Expr): Expr =>
      Object.freeze({
        kind: 'conditional',
        form: 'least',
        args: Object.freeze([asked, most]),
        type: 'int8',
      });
    return selectOf({
      with: this.#tables(from === null ? [] : where),
      from,
      where: Object.freeze(where.filter((c) => this.isOfRows(c))),
      outputs: Object.freeze([...this.#outputs.values()]),
      orderBy: orderBy ?? [],
      limit: isTaken && limit !== null ? least(limit) : most,
      offset: isTaken ? offset : null,
    });
  }

  /** Returns the common tables that the rows need. They belong to the SELECT, so the separate query needs a copy. */
  #tables(where: readonly Expr[]): readonly CommonTable[] {
    const known = new Map([...this.#scope.tables.values()].map(({ table }) => [table.id, table]));
    const wanted = new Map<number, CommonTable>();
    const want = (query: Query): void => {
      for (const q of allQueries(query)) {
        if (q.kind !== 'select') continue;
        for (const leaf of leavesOf(q.from)) {
          const table = leaf.kind === 'cte' ? known.get(leaf.table) : undefined;
          if (table === undefined || wanted.has(table.id)) continue;
          want(table.query);
          wanted.set(table.id, table);
        }
      }
    };
    want(selectOf({ from: this.#select.from, where, outputs: [...this.#outputs.values()] }));
    return Object.freeze([...wanted.values()]);
  }

  /**
   * Rewrites an expression that is evaluated after WHERE. In a grouped SELECT, only grouping keys and the arguments of
   * aggregates refer to single rows.
   */
  #shown(e: Expr): Expr {
    const { grouped } = this.#select;
    if (!this.#readsRows(e)) return e;
    if (!grouped || this.#groupKeys.has(fingerprint(e))) return this.#ofRow(e);
    if (e.kind === 'column') throw new InternalError('a column above GROUP BY is not a key of it');
    const child = e.kind === 'aggregate' ? (c: Expr) => this.#ofRow(c) : (c: Expr) => this.#shown(c);
    return mapChildren(e, child, (query) => this.#within(query));
  }

  /** Rewrites an expression over a single row. Parts without operators are computed in the rows' query. */
  #ofRow(e: Expr): Expr {
    if (!this.#readsRows(e)) return e;
    if (e.kind !== 'column' && !this.#isWhole(e))
      return mapChildren(
        e,
        (c) => this.#ofRow(c),
        (query) => this.#within(query),
      );
    const { source } = this.#level.draft;
    const column = this.taken(e);
    this.#ctx.use(source, column);
    return READ_AS_JSON.has(e.type)
      ? castTo(columnRef(source, column, 'text'), e.type)
      : columnRef(source, column, e.type);
  }

  #within(query: Query): Query {
    return mapQuery(query, { expr: (e) => (e.kind === 'column' ? this.#ofRow(e) : e) });
  }

  #isWhole(e: Expr): boolean {
    return (
      this.isOfRows(e) && !someExpr(e, (x) => ABOVE_ROWS.has(x.kind) || makesRows(x) || queryOf(x) !== null)
    );
  }

  #readsRows(e: Expr): boolean {
    return someExpr(e, (x) => {
      const query = queryOf(x);
      return x.kind === 'column'
        ? this.#local.has(x.source)
        : query !== null && [...readsAround(query)].some((s) => this.#local.has(s));
    });
  }
}

const ABOVE_ROWS: ReadonlySet<Expr['kind']> = new Set<Expr['kind']>(['aggregate', 'window', 'grouping']);
