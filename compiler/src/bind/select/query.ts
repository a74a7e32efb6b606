import type { CommonTableExpr, Node, SelectStmt, WithClause } from '@pgsql/types';
import { type CountClause, NEGATIVE_COUNTS } from '../../errors/value-faults.js';
import { castTo, columnRef } from '../../plan/nodes.js';
import type {
  CommonTable,
  DerivedTable,
  Expr,
  Query,
  SetOperation,
  SortKey,
  ValuesList,
} from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import { columnsOf } from '../../plan/walk.js';
import { isInteger, isNumber, type TypeName } from '../../types/types.js';
import { firstLocation, integerOf, stringOf, TEMPORARY } from '../ast.js';
import type { BindContext } from '../context.js';
import { sortKey } from '../expressions/call.js';
import { bindExpression } from '../expressions/expression.js';
import { type BoundExpression, coerce, commonType, requireComparable } from '../expressions/operands.js';
import type { LiteralTest } from '../literals.js';
import {
  type BoundColumn,
  type CommonTableEntry,
  innerScope,
  plainEnvironment,
  type Scope,
} from '../scope.js';
import { requireSqlSize } from '../size-limits.js';
import { bindRecursive, namesItself, refuseForwardNames } from './recursive.js';
import { bindSelect } from './select.js';

export interface BoundQuery {
  readonly query: Query;
  readonly columns: readonly BoundColumn[];
  /** Of an operand of a set operation, by position: outputs whose type the other operand decides. */
  readonly untyped?: UntypedOutputs;
}

/** Outputs by their position, from 0. */
export type UntypedOutputs = ReadonlyMap<number, BoundExpression>;
export const NO_OUTPUTS: UntypedOutputs = new Map();

/**
 * Binds a SELECT, VALUES or set operation whose outer scope is `outer`.
 *
 * @param isOperand true for an operand of a set operation
 */
export function bindQuery(
  stmt: SelectStmt,
  ctx: BindContext,
  outer: Scope | null,
  isOperand = false,
): BoundQuery {
  if (stmt.valuesLists !== undefined && isCut(stmt)) return bindQuery(ofValues(stmt), ctx, outer);
  return ctx.nested(() => {
    refuseClauses(stmt, ctx);
    const { tables, common } = bindWith(stmt.withClause, ctx, outer);
    const scope = innerScope(outer, [], tables);
    const bound =
      stmt.op !== undefined && stmt.op !== 'SETOP_NONE'
        ? bindSetOperation(stmt, ctx, scope)
        : stmt.valuesLists !== undefined
          ? bindValues(stmt, ctx, scope)
          : bindSelect(stmt, ctx, outer, tables, isOperand);
    requireSqlSize(bound.query);
    if (common.length === 0) return bound;
    if (bound.query.kind === 'values')
      throw ctx.unsupported(
        'WITH before VALUES',
        firstLocation(stmt.valuesLists),
        'put VALUES in a derived table',
      );
    return { ...bound, query: Object.freeze({ ...bound.query, with: Object.freeze(common) }) };
  });
}

function isCut({ sortClause, limitCount, limitOffset }: SelectStmt): boolean {
  return sortClause !== undefined || limitCount !== undefined || limitOffset !== undefined;
}

/** Rewrites `VALUES … ORDER BY …` to `SELECT * FROM (VALUES …) ORDER BY …`. */
function ofValues({ valuesLists = [], ...around }: SelectStmt): SelectStmt {
  const subquery: Node = {
    SelectStmt: { valuesLists, limitOption: 'LIMIT_OPTION_DEFAULT', op: 'SETOP_NONE' },
  };
  return {
    ...around,
    targetList: [{ ResTarget: { val: { ColumnRef: { fields: [{ A_Star: {} }] } } } }],
    fromClause: [{ RangeSubselect: { subquery, alias: { aliasname: 'values' } } }],
  };
}

const LOCKS: ReadonlyMap<string, string> = new Map([
  ['LCS_FORKEYSHARE', 'FOR KEY SHARE'],
  ['LCS_FORSHARE', 'FOR SHARE'],
  ['LCS_FORNOKEYUPDATE', 'FOR NO KEY UPDATE'],
]);

function refuseClauses(stmt: SelectStmt, ctx: BindContext): void {
  if (stmt.intoClause?.rel?.relpersistence === TEMPORARY)
    throw ctx.error('temporaryTable', {}, firstLocation(stmt.intoClause));
  if (stmt.intoClause !== undefined)
    throw ctx.error('readOnly', { command: 'SELECT INTO' }, firstLocation(stmt.intoClause));
  if (stmt.lockingClause !== undefined) {
    const [lock] = stmt.lockingClause;
    const strength = lock !== undefined && 'LockingClause' in lock ? lock.LockingClause.strength : undefined;
    const command = `SELECT ${LOCKS.get(strength ?? '') ?? 'FOR UPDATE'}`;
    throw ctx.error('readOnly', { command }, ctx.wordNear('for', 'before', undefined));
  }
  // Refused because storage order would decide which of the tied rows OFFSET skips.
  if (stmt.limitOption === 'LIMIT_OPTION_WITH_TIES' && stmt.limitOffset !== undefined) {
    const at = ctx.wordNear('ties', 'after', firstLocation(stmt.limitCount));
    throw ctx.unsupported('WITH TIES beside OFFSET', at, 'use rank() in a derived table');
  }
  // Refused because DISTINCT ON keeps an arbitrary tied row, and a tie-breaker in ORDER BY would drop ties.
  if (stmt.limitOption === 'LIMIT_OPTION_WITH_TIES' && isDistinctOn(stmt)) {
    const at = ctx.wordNear('ties', 'after', firstLocation(stmt.limitCount));
    throw ctx.unsupported('WITH TIES beside DISTINCT ON', at, 'put DISTINCT ON in a derived table');
  }
}

/** True for DISTINCT ON. The grammar represents a plain DISTINCT as a list with one empty node. */
function isDistinctOn({ distinctClause = [] }: SelectStmt): boolean {
  return distinctClause.some((node) => Object.keys(node).length > 0);
}

function bindWith(clause: WithClause | undefined, ctx: BindContext, outer: Scope | null) {
  const common: CommonTable[] = [];
  if (clause === undefined) return { tables: outer?.tables ?? NO_TABLES, common };
  ctx.requireFeature('derived_tables', clause.location);
  const tables = new Map<string, CommonTableEntry>(outer?.tables ?? []);
  const own = new Set<string>();
  const ctes = (clause.ctes ?? []).map((node) => ('CommonTableExpr' in node ? node.CommonTableExpr : {}));
  if (clause.recursive === true) refuseForwardNames(ctes, ctx);
  for (const cte of ctes) {
    if (cte.ctequery === undefined || !('SelectStmt' in cte.ctequery)) {
      throw ctx.error('readOnly', { command: 'a data-modifying WITH' }, cte.location);
    }
    if (cte.search_clause !== undefined || cte.cycle_clause !== undefined) {
      throw ctx.unsupported('SEARCH or CYCLE', cte.location);
    }
    if (clause.recursive === true && namesItself(cte)) {
      requireOnce(own, cte, ctx);
      const entry = bindRecursive(cte, cte.ctequery.SelectStmt, ctx, tables);
      common.push(entry.table);
      tables.set(cte.ctename ?? '', entry);
      continue;
    }
    const before = ctx.contentRead;
    const around = outer === null ? innerScope(null, [], tables) : { ...outer, tables };
    const { query, columns } = bindQuery(cte.ctequery.SelectStmt, ctx, around);
    const names = (cte.aliascolnames ?? []).map(stringOf);
    if (names.length > columns.length) {
      const detail = `\`${cte.ctename}\` lists ${names.length} columns of ${columns.length}`;
      throw ctx.mismatch(detail, cte.location);
    }
    requireOnce(own, cte, ctx);
    const renamed = columns.map((c, i) => ({ ...c, name: names[i] ?? c.name }));
    const materialized =
      cte.ctematerialized === 'CTEMaterializeAlways'
        ? true
        : cte.ctematerialized === 'CTEMaterializeNever'
          ? false
          : null;
    const table = Object.freeze({ id: ctx.nextTable(), query, materialized });
    common.push(table);
    tables.set(cte.ctename ?? '', { table, columns: renamed, content: ctx.contentRead > before });
  }
  return { tables, common };
}

function requireOnce(own: Set<string>, { ctename = '', location }: CommonTableExpr, ctx: BindContext): void {
  if (own.has(ctename)) throw ctx.error('duplicateAlias', { alias: ctename }, location);
  own.add(ctename);
}

const NO_TABLES: Scope['tables'] = new Map();

export function bindLimit(
  stmt: SelectStmt,
  ctx: BindContext,
  scope: Scope,
): { limit: Expr | null; offset: Expr | null; withTies: boolean } {
  const env = plainEnvironment(ctx, innerScope(null, [], scope.tables), 'LIMIT');
  const count = (node: Node | undefined, clause: CountClause): Expr | null => {
    if (node === undefined || ('A_Const' in node && node.A_Const.isnull === true)) return null;
    const written = bindExpression(node, env);
    // Other numbers are rounded, as in an assignment: LIMIT 1.5 is LIMIT 2.
    const isRounded = written.kind !== 'untyped' && isNumber(written.type) && !isInteger(written.type);
    const bound = isRounded ? castTo(written, 'int8') : coerce(written, 'int8', ctx);
    if (ctx.literalIn(bound)?.holds(isNegative) === true)
      throw ctx.error('negativeCount', { clause, sqlstate: NEGATIVE_COUNTS[clause] }, firstLocation(node));
    return bound;
  };
  const withTies = stmt.limitOption === 'LIMIT_OPTION_WITH_TIES';
  return { limit: count(stmt.limitCount, 'LIMIT'), offset: count(stmt.limitOffset, 'OFFSET'), withTies };
}

const isNegative: LiteralTest = (text) => /^\s*-0*[1-9]/.test(text);

function bindValues(stmt: SelectStmt, ctx: BindContext, scope: Scope): BoundQuery {
  const env = plainEnvironment(ctx, scope, 'VALUES');
  const rows = (stmt.valuesLists ?? []).map((r) =>
    'List' in r ? (r.List.items ?? []).map((n) => bindExpression(n, env)) : [],
  );
  const width = rows[0]?.length ?? 0;
  ctx.requireColumns(width, 'a row of VALUES', firstLocation(stmt.valuesLists?.[0]));
  const odd = rows.findIndex((r) => r.length !== width);
  if (odd >= 0) {
    const detail = 'VALUES lists must all have the same length';
    throw ctx.syntax(detail, firstLocation(stmt.valuesLists?.[odd]));
  }
  const last = firstLocation(stmt.valuesLists?.at(-1));
  const types = Array.from({ length: width }, (_, i) =>
    commonType(
      rows.map((r) => r[i] ?? undecided),
      ctx,
      last,
    ),
  );
  const columns = types.map((type, i) => ({
    name: `column${i + 1}`,
    type,
    sealed: false,
  }));
  const query: ValuesList = Object.freeze({
    kind: 'values',
    rows: Object.freeze(rows.map((r) => Object.freeze(r.map((b, i) => coerce(b, types[i] ?? 'text', ctx))))),
    columns: Object.freeze(columns.map(({ name, type }) => Object.freeze({ name, type }))),
  });
  return { query, columns };
}

const undecided: BoundExpression = { kind: 'untyped', value: null, location: undefined };

/** Binds UNION, INTERSECT or EXCEPT. Columns are converted to the common type of both sides. */
function bindSetOperation(stmt: SelectStmt, ctx: BindContext, scope: Scope): BoundQuery {
  ctx.requireFeature('set_operations', firstLocation(stmt.rarg));
  if (stmt.larg === undefined || stmt.rarg === undefined)
    throw ctx.unsupported('this set operation', undefined);
  const left = bindQuery(stmt.larg, ctx, scope, true);
  const right = bindQuery(stmt.rarg, ctx, scope, true);
  if (left.columns.length !== right.columns.length) {
    throw ctx.syntax(
      `the sides of a set operation have ${left.columns.length} and ${right.columns.length} columns, not the same number`,
      firstLocation(stmt.rarg),
    );
  }
  const [lefts, rights] = [operandColumns(left), operandColumns(right)];
  const columns = left.columns.map((c, i) => {
    const type = commonType(
      [lefts[i] ?? undecided, rights[i] ?? undecided],
      ctx,
      firstLocation(stmt.rarg?.targetList?.[i]),
    );
    const sealed = [c, right.columns[i]].every((side) => side?.sealed === true && side.type === type);
    return { name: c.name, type, sealed };
  });
  const types = columns.map((c) => c.type);
  if (stmt.op !== 'SETOP_UNION' || stmt.all !== true)
    for (const [i, type] of types.entries())
      requireComparable(type, firstLocation(stmt.rarg?.targetList?.[i]), ctx);
  const query: SetOperation = Object.freeze({
    kind: 'set_operation',
    with: Object.freeze([]),
    operator: stmt.op === 'SETOP_INTERSECT' ? 'intersect' : stmt.op === 'SETOP_EXCEPT' ? 'except' : 'union',
    all: stmt.all === true,
    left: retypeOutputs(left.query, types, ctx, left.untyped),
    right: retypeOutputs(right.query, types, ctx, right.untyped),
    columns: Object.freeze(columns.map(({ name, type }) => Object.freeze({ name, type }))),
    orderBy: Object.freeze((stmt.sortClause ?? []).map((s) => ordinalKey(s, columns, ctx))),
    ...bindLimit(stmt, ctx, scope),
  });
  return { query, columns };
}

/** Returns an operand's columns for type resolution. */
export function operandColumns({ columns, untyped }: BoundQuery): readonly BoundExpression[] {
  return columns.map((c, i) => untyped?.get(i) ?? Object.freeze({ kind: 'null', type: c.type }));
}

export function retypeOutputs(
  query: Query,
  types: readonly TypeName[],
  ctx: BindContext,
  untyped: UntypedOutputs = NO_OUTPUTS,
): Query {
  if (untyped.size === 0 && columnsOf(query).every((c, i) => c.type === types[i])) return query;
  return mapOutputs(query, (expr, i) => coerce(untyped.get(i) ?? expr, types[i] ?? expr.type, ctx), ctx);
}

/** Replaces the outputs of `query`. Those that DISTINCT or ORDER BY uses must stay, which needs a query around it. */
export function mapOutputs(query: Query, map: (expr: Expr, i: number) => Expr, ctx: BindContext): Query {
  if (query.kind === 'select' && !query.distinct && query.orderBy.length === 0) {
    const outputs = query.outputs.map((o, i) => Object.freeze({ ...o, expr: map(o.expr, i) }));
    return outputs.every((o, i) => o.expr === query.outputs[i]?.expr)
      ? query
      : Object.freeze({ ...query, outputs: Object.freeze(outputs) });
  }
  const from: DerivedTable = Object.freeze({ kind: 'derived', id: ctx.nextSource(), query });
  const outputs = columnsOf(query).map(({ name, type }, i) =>
    Object.freeze({ name, expr: map(columnRef(from.id, `c${i + 1}`, type), i) }),
  );
  return outputs.every(({ expr }) => expr.kind === 'column')
    ? query
    : selectOf({ from, outputs: Object.freeze(outputs) });
}

/** Binds a sort key of a set operation, which must be a position or an output name. */
function ordinalKey(node: Node, columns: readonly BoundColumn[], ctx: BindContext): SortKey {
  const sort = 'SortBy' in node ? node.SortBy : {};
  const position = integerOf(sort.node);
  const name =
    sort.node !== undefined && 'ColumnRef' in sort.node ? stringOf(sort.node.ColumnRef.fields?.[0]) : null;
  const by = position ?? columns.findIndex((c) => c.name === name) + 1;
  if (by < 1 || by > columns.length) {
    throw ctx.unsupported(
      'an expression in ORDER BY of a set operation',
      firstLocation(sort),
      'order by a name or a position of its result',
    );
  }
  requireComparable(columns[by - 1]?.type ?? 'text', firstLocation(sort), ctx);
  return sortKey(sort, by, ctx);
}
