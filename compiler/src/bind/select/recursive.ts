import type { CommonTableExpr, RangeVar, SelectStmt } from '@pgsql/types';
import { columnOf } from '../../catalog/catalog.js';
import { LIMITS } from '../../limits.js';
import {
  type CommonTable,
  type Expr,
  type FromItem,
  type FromLeaf,
  NO_MODIFIERS,
  type Query,
} from '../../plan/plan.js';
import { allQueries, leavesOf, someExpr } from '../../plan/walk.js';
import { takesModifier } from '../../types/types.js';
import { firstLocation, stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { type BoundExpression, commonType } from '../expressions/operands.js';
import { type BoundColumn, type CommonTableEntry, innerScope, type Scope } from '../scope.js';
import { bindQuery, mapOutputs, operandColumns, retypeOutputs } from './query.js';

/** True if a common table of WITH RECURSIVE refers to itself, according to the syntax tree. */
export function namesItself(node: CommonTableExpr): boolean {
  const names = NAMES.get(node) ?? new TableNames(node);
  return names.isRead(node, node.ctename ?? '');
}

/**
 * Refuses a table of WITH RECURSIVE that names one defined after it. In Postgres it means that table; here it would mean
 * an entity of the same name.
 */
export function refuseForwardNames(tables: readonly CommonTableExpr[], ctx: BindContext): void {
  // More tables are refused while they are bound.
  if (tables.length > LIMITS.fromItems) return;
  for (const [i, table] of tables.entries()) {
    const names = NAMES.get(table) ?? new TableNames(table);
    const later = tables.slice(i + 1).find(({ ctename = '' }) => names.isRead(table, ctename))?.ctename;
    if (later === undefined) continue;
    const construct = `\`${table.ctename}\`, which names \`${later}\` before it is defined,`;
    throw ctx.unsupported(construct, table.location, `define \`${later}\` first`);
  }
}

const NAMES = new WeakMap<CommonTableExpr, TableNames>();

/** Indexes the unqualified table names inside a common table and those nested in it, in a single pass. */
class TableNames {
  readonly #places = new Map<string, number[]>();
  readonly #spans = new WeakMap<CommonTableExpr, { readonly first: number; readonly next: number }>();
  #read = 0;

  constructor(node: CommonTableExpr) {
    this.#table(node);
  }

  isRead(node: CommonTableExpr, name: string): boolean {
    const span = this.#spans.get(node);
    const places = this.#places.get(name) ?? [];
    let [low, high] = [0, places.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((places[middle] ?? 0) < (span?.first ?? 0)) low = middle + 1;
      else high = middle;
    }
    return span !== undefined && (places[low] ?? span.next) < span.next;
  }

  #table(node: CommonTableExpr): void {
    NAMES.set(node, this);
    const first = this.#read;
    this.#walk(node.ctequery);
    this.#spans.set(node, { first, next: this.#read });
  }

  #walk(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, child] of Object.entries(value)) {
      // The grammar uses these keys only for nodes of these types.
      if (key === 'CommonTableExpr') this.#table(child as CommonTableExpr);
      else if (key === 'RangeVar') this.#name(child as RangeVar);
      else this.#walk(child);
    }
  }

  #name({ relname, schemaname }: RangeVar): void {
    if (relname === undefined || schemaname !== undefined) return;
    const places = this.#places.get(relname) ?? [];
    places.push(this.#read++);
    this.#places.set(relname, places);
  }
}

/**
 * Binds `name AS (first UNION [ALL] step)`, where `name` in the step refers to the rows of the previous step. Scans in
 * both parts are governed as usual, so hidden rows are never traversed.
 */
export function bindRecursive(
  node: CommonTableExpr,
  stmt: SelectStmt,
  ctx: BindContext,
  tables: Scope['tables'],
): CommonTableEntry {
  const { larg, rarg } = stmt;
  const at = node.location;
  const name = node.ctename ?? '';
  refuseForm(stmt, ctx, at);
  if (larg === undefined || rarg === undefined) throw unsupportedForm(ctx, at);
  ctx.requireFeature('set_operations', at);
  const before = ctx.contentRead;
  const id = ctx.nextTable();
  const first = bindQuery(larg, ctx, innerScope(null, [], tables));
  const names = (node.aliascolnames ?? []).map(stringOf);
  if (names.length > first.columns.length)
    throw ctx.mismatch(`\`${name}\` lists ${names.length} columns of ${first.columns.length}`, at);
  const columns = first.columns.map((c, i) => ({ ...c, name: names[i] ?? c.name }));
  const within = new Map(tables);
  const none: CommonTable = Object.freeze({ id, query: first.query, materialized: null });
  within.set(name, { table: none, columns, content: ctx.contentRead > before, stepOf: id });
  const step = bindQuery(rarg, ctx, innerScope(null, [], within), true);
  if (ctx.contentRead > before)
    throw ctx.unsupported(
      'RETRIEVE, TRAVERSE or `evidence` in a recursive table',
      at,
      'join it to the table',
    );
  requireStep(step.query, id, ctx, at);
  const types = typesOf(name, columns, operandColumns(step), ctx, firstLocation(rarg.targetList?.[0]) ?? at);
  // Sealed keys must pass through unchanged.
  const needsCast = (i: number): boolean =>
    columns[i]?.sealed !== true &&
    !isSameColumn(first.query, step.query, i, id) &&
    !(columns[i]?.type === 'text' && (mayBeEnum(first.query, i) || mayBeEnum(step.query, i)));
  const query: Query = Object.freeze({
    kind: 'set_operation',
    with: Object.freeze([]),
    operator: 'union',
    all: stmt.all === true,
    left: withoutModifiers(first.query, needsCast, ctx),
    right: withoutModifiers(retypeOutputs(step.query, types, ctx, step.untyped), needsCast, ctx),
    columns: Object.freeze(columns.map((c) => Object.freeze({ name: c.name, type: c.type }))),
    orderBy: Object.freeze([]),
    limit: null,
    offset: null,
    withTies: false,
  });
  const table: CommonTable = Object.freeze({ id, query, materialized: null, recursive: true });
  const shown = columns.map((c, i) => ({ ...c, sealed: c.sealed && step.columns[i]?.sealed === true }));
  return { table, columns: shown, content: false };
}

/**
 * Casts outputs to their bare type. Postgres requires equal type modifiers of both parts, as in `numeric(8,2)`, which
 * stored columns and casts have and the plan's types do not.
 */
function withoutModifiers(query: Query, needsCast: (i: number) => boolean, ctx: BindContext): Query {
  const bare = (expr: Expr, i: number): Expr =>
    !needsCast(i) || !takesModifier(expr.type) || UNMODIFIED.has(expr.kind)
      ? expr
      : Object.freeze({ kind: 'cast', arg: expr, type: expr.type, modifiers: NO_MODIFIERS });
  return mapOutputs(query, bare, ctx);
}

/** True if output `i` of both parts is the same stored column, or that of the step is the recursive table's own. */
function isSameColumn(first: Query, step: Query, i: number, table: number): boolean {
  const stepLeaf = leafOf(step, i);
  if (stepLeaf === null) return false;
  const { leaf, name } = stepLeaf;
  if (leaf.kind === 'recursion') return leaf.table === table && name === `c${i + 1}`;
  const firstLeaf = leafOf(first, i);
  return (
    leaf.kind === 'entity' &&
    firstLeaf?.leaf.kind === 'entity' &&
    firstLeaf.leaf.relation === leaf.relation &&
    firstLeaf.name === name
  );
}

/** True if output `i`, a text, may hold labels of an enum: they would lose their order by a cast. */
function mayBeEnum(query: Query, i: number): boolean {
  const expr = query.kind === 'select' ? query.outputs[i]?.expr : undefined;
  if (query.kind !== 'select' || expr === undefined) return true;
  const leaves = leavesOf(query.from);
  return someExpr(expr, (e) => {
    if (e.kind !== 'column') return e.kind === 'scalar_query';
    const leaf = leaves.find((l) => l.id === e.source);
    if (leaf?.kind === 'recursion') return false;
    return leaf?.kind !== 'entity' || columnOf(leaf.relation, e.name)?.labels !== undefined;
  });
}

/** Returns the FROM item and the name of the column that output `i` is; null if it is computed. */
function leafOf(query: Query, i: number): { readonly leaf: FromLeaf; readonly name: string } | null {
  const expr = query.kind === 'select' ? query.outputs[i]?.expr : undefined;
  if (query.kind !== 'select' || expr?.kind !== 'column') return null;
  const leaf = leavesOf(query.from).find((l) => l.id === expr.source);
  return leaf === undefined ? null : { leaf, name: expr.name };
}

/** Kinds of expressions whose type has no modifier in Postgres. */
const UNMODIFIED: ReadonlySet<Expr['kind']> = new Set<Expr['kind']>([
  'parameter',
  'null',
  'structural',
  'operation',
  'call',
]);

function unsupportedForm(ctx: BindContext, at: number | undefined) {
  const hint = 'WITH RECURSIVE t AS (first UNION ALL SELECT … FROM t JOIN …)';
  return ctx.unsupported('this form of a recursive table', at, hint);
}

function refuseForm(stmt: SelectStmt, ctx: BindContext, at: number | undefined): void {
  const tail = [stmt.sortClause, stmt.limitCount, stmt.limitOffset, stmt.withClause, stmt.lockingClause];
  if (stmt.op !== 'SETOP_UNION' || tail.some((clause) => clause !== undefined))
    throw unsupportedForm(ctx, at);
}

/**
 * Requires that the step is a plain join without grouping, DISTINCT, ORDER BY, LIMIT, windows or WITH, and, as Postgres
 * does, that it reads the recursive table exactly once, in its own FROM, and not on the nullable side of an outer join.
 */
function requireStep(query: Query, table: number, ctx: BindContext, at: number | undefined): void {
  const reads = allQueries(query).flatMap((q) =>
    q.kind === 'select' ? leavesOf(q.from).filter((l) => l.kind === 'recursion' && l.table === table) : [],
  );
  const plain =
    query.kind === 'select' &&
    query.with.length === 0 &&
    !query.grouped &&
    !query.distinct &&
    query.distinctOn.length === 0 &&
    query.orderBy.length === 0 &&
    query.limit === null &&
    query.offset === null &&
    !query.outputs.some((o) => someExpr(o.expr, (e) => e.kind === 'window'));
  if (!plain || reads.length !== 1 || !isStrict(query.from, table)) {
    const construct = 'a step of a recursive table that is more than a join of the step before';
    const hint = 'name the table once, in FROM, and group or sort what reads it';
    throw ctx.unsupported(construct, at, hint);
  }
}

/** True if `item` includes the recursive table outside the nullable side of any outer join. */
function isStrict(item: FromItem | null, table: number): boolean {
  if (item === null) return false;
  if (item.kind !== 'join') return item.kind === 'recursion' && item.table === table;
  if (item.type === 'full') return false;
  return isStrict(item.left, table) || (item.type === 'inner' && isStrict(item.right, table));
}

/** Returns the column types of the first part, which the step must match. */
function typesOf(
  name: string,
  first: readonly BoundColumn[],
  step: readonly BoundExpression[],
  ctx: BindContext,
  at: number | undefined,
) {
  if (first.length !== step.length) {
    const detail = `the parts of \`${name}\` have ${first.length} and ${step.length} columns, not the same number`;
    throw ctx.syntax(detail, at);
  }
  return first.map(({ type }, i) => {
    const first: Expr = Object.freeze({ kind: 'null', type });
    const common = commonType([first, step[i] ?? first], ctx, at);
    if (common === type) return type;
    const detail = `column ${i + 1} of \`${name}\` has type ${type} in its first part, and ${common} with the step`;
    throw ctx.mismatch(detail, at, 'cast it in the first part');
  });
}
