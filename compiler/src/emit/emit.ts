import type { Grain } from '../catalog/grain.js';
import { assertNever, InternalError } from '../errors/errors.js';
import { GovernedPlan } from '../govern/governed-plan.js';
import type {
  CommonTable,
  Expr,
  FromItem,
  GovernedScan,
  Query,
  RuntimeScan,
  Select,
  SetOperation,
  Slot,
  Spine,
  TableSample,
  ValuesList,
} from '../plan/plan.js';
import { columnsOf, exprsOf, nodesIn } from '../plan/walk.js';
import { identifier } from '../text/sql-text.js';
import { emitExpr, emitKey, emitSortKeys } from './expression.js';
import { emitRecursive, emitRowSource } from './rows.js';
import { Writer } from './writer.js';

/** Governed SQL for Postgres. */
export interface EmittedSql {
  /** SQL whose parameters `$1 … $n`, each explicitly typed, are the values of `slots` in order. */
  readonly sql: string;
  readonly slots: readonly Slot[];
}

/** SQL text shared by plans that differ only in literal values. */
interface Text {
  readonly sql: string;
  /** Indices of slots in the order in which the text uses them. */
  readonly order: readonly number[];
}

const texts = new WeakMap<Query, Text>();

/** Emits the SQL of a governed plan; equal plans yield equal SQL. The SQL contains no text that a caller wrote. */
export function emit(plan: GovernedPlan): EmittedSql {
  if (!GovernedPlan.is(plan)) throw new InternalError('only a GovernedPlan can be emitted');
  const { sql, order } = sqlOf(plan);
  return { sql, slots: order.map((i) => slotAt(plan, i)) };
}

/** Returns a plan's SQL, cached by query: plans with the same query differ only in literal values. */
function sqlOf({ query, slots }: GovernedPlan): Text {
  const before = texts.get(query);
  if (before !== undefined) return before;
  const writer = new Writer(slots);
  emitQuery(query, writer);
  const text = Object.freeze({ sql: writer.text(), order: writer.slotsUsed() });
  texts.set(query, text);
  return text;
}

function slotAt(plan: GovernedPlan, index: number): Slot {
  const slot = plan.slots[index];
  if (slot === undefined) throw new InternalError(`parameter ${index} has no slot`);
  return slot;
}

export function emitQuery(query: Query, w: Writer): void {
  switch (query.kind) {
    case 'select':
      emitSelect(query, w);
      break;
    case 'set_operation':
      emitSetOperation(query, w);
      break;
    case 'values':
      emitValues(query, w);
      break;
    default:
      assertNever(query);
  }
}

function emitWith(tables: readonly CommonTable[], w: Writer): void {
  if (tables.length === 0) return;
  w.write(tables.some((t) => t.recursive === true) ? 'with recursive ' : 'with ');
  w.list(tables, ', ', (t) => {
    const names = t.recursive === true ? listOf(t.query) : columnList(t.query);
    const materialized =
      t.materialized === null ? '' : t.materialized ? 'materialized ' : 'not materialized ';
    w.write(`q${t.id}${names} as ${materialized}(`);
    emitQuery(t.query, w);
    w.write(')');
  });
  w.write(' ');
}

/**
 * Returns the column list after the name of a common or derived table. The columns of a SELECT are already named `c1`,
 * …; those of VALUES are not, and a set operation takes the names of its left operand.
 */
function columnList(query: Query): string {
  switch (query.kind) {
    case 'select':
      return '';
    case 'values':
      return listOf(query);
    case 'set_operation':
      return columnList(query.left);
    default:
      return assertNever(query);
  }
}

function listOf(query: Query): string {
  const names = columnsOf(query).map((_, i) => `c${i + 1}`);
  return `(${names.join(', ')})`;
}

function emitSelect(query: Select, w: Writer): void {
  emitWith(query.with, w);
  w.write('select ');
  if (query.distinct) w.write('distinct ');
  if (query.distinctOn.length > 0) {
    w.write('distinct on (');
    w.list(query.distinctOn, ', ', (e) => emitKey(e, w));
    w.write(') ');
  }
  w.list([...query.outputs.entries()], ', ', ([i, output]) => {
    emitExpr(output.expr, w);
    w.write(` as c${i + 1}`);
  });
  if (query.from !== null) {
    w.write(' from ');
    emitFrom(query.from, w);
  }
  emitConjuncts(' where ', query.where, w);
  emitGroupBy(query, w);
  emitConjuncts(' having ', query.having, w);
  emitTail(query, w);
}

function emitGroupBy(query: Select, w: Writer): void {
  const { groupBy, groupingSets } = query;
  const key = (e: Expr | undefined): void => {
    if (e === undefined) throw new InternalError('a grouping set has a key that GROUP BY has not');
    emitGroupKey(e, query, w);
  };
  if (groupingSets === null && groupBy.length === 0) {
    if (query.grouped && nodesIn(exprsOf(query), 'aggregate').length === 0) w.write(' group by ()');
    return;
  }
  w.write(groupingSets === null ? ' group by ' : ' group by grouping sets (');
  if (groupingSets === null) w.list(groupBy, ', ', key);
  else
    w.list(groupingSets, ', ', (set) => {
      w.write('(');
      w.list(set, ', ', (i) => key(groupBy[i]));
      w.write(')');
    });
  if (groupingSets !== null) w.write(')');
}

/** Emits a constant as its output position: as a parameter, it would not equal the constant of the output. */
function emitGroupKey(expr: Expr, query: Select, w: Writer): void {
  const constant = ['parameter', 'null', 'boolean', 'structural'].includes(expr.kind);
  const index = constant ? query.outputs.findIndex((o) => o.expr === expr) : -1;
  if (index >= 0) w.write(String(index + 1));
  else emitKey(expr, w);
}

function emitConjuncts(clause: string, conjuncts: readonly Expr[], w: Writer): void {
  if (conjuncts.length === 0) return;
  w.write(clause);
  w.list(conjuncts, ' and ', (e) => emitExpr(e, w));
}

function emitTail({ orderBy, limit, offset, withTies }: Select | SetOperation, w: Writer): void {
  if (orderBy.length > 0) {
    w.write(' order by ');
    emitSortKeys(orderBy, w);
  }
  if (limit !== null) {
    w.write(withTies ? ' fetch first (' : ' limit ');
    emitExpr(limit, w);
    if (withTies) w.write(') rows with ties');
  }
  if (offset !== null) {
    w.write(' offset ');
    emitExpr(offset, w);
  }
}

function emitSetOperation(query: SetOperation, w: Writer): void {
  emitWith(query.with, w);
  w.write('(');
  emitQuery(query.left, w);
  w.write(`) ${query.operator}${query.all ? ' all' : ''} (`);
  emitQuery(query.right, w);
  w.write(')');
  emitTail(query, w);
}

function emitValues(query: ValuesList, w: Writer): void {
  w.write('values ');
  w.list(query.rows, ', ', (row) => {
    w.write('(');
    w.list(row, ', ', (e) => emitExpr(e, w));
    w.write(')');
  });
}

function emitFrom(item: FromItem, w: Writer): void {
  switch (item.kind) {
    case 'entity':
      throw new InternalError(`scan of ${item.relation.name} is not governed`);
    case 'governed':
      emitScan(item, w);
      w.write(` as r${item.id}`);
      break;
    case 'derived': {
      w.write(item.lateral === true ? 'lateral (' : '(');
      emitQuery(item.query, w);
      w.write(`) as r${item.id}${columnList(item.query)}`);
      break;
    }
    case 'cte':
      if (item.recursive === undefined) w.write(`q${item.table} as r${item.id}`);
      else emitRecursive(item.table, item.recursive, item.id, w);
      break;
    case 'recursion':
      w.write(`q${item.table} as r${item.id}`);
      break;
    case 'runtime':
      emitRuntime(item, w);
      return;
    case 'spine':
      emitSpine(item, w);
      return;
    case 'rows':
      emitRowSource(item, w);
      return;
    case 'join':
      emitJoin(item, w);
      break;
    default:
      assertNever(item);
  }
}

function emitJoin(join: Extract<FromItem, { kind: 'join' }>, w: Writer): void {
  emitFrom(join.left, w);
  w.write(join.type === 'inner' ? ' join ' : ` ${join.type} join `);
  const nested = join.right.kind === 'join';
  if (nested) w.write('(');
  emitFrom(join.right, w);
  if (nested) w.write(')');
  w.write(join.on.length === 0 ? ' on true' : ' on ');
  w.list(join.on, ' and ', (e) => emitExpr(e, w));
}

function emitRuntime(item: RuntimeScan, w: Writer): void {
  const columns = item.columns.map((c) => `${identifier(c.name)} ${c.type}`).join(', ');
  w.write(`pg_catalog.jsonb_to_recordset(${w.parameter(item.slot)}::jsonb) as r${item.id}(${columns})`);
}

/** Length of each grain as a multiple of an interval unit. */
const STEPS: Readonly<Record<Grain, { readonly count: number; readonly unit: string }>> = {
  second: { count: 1, unit: 'seconds' },
  minute: { count: 1, unit: 'minutes' },
  hour: { count: 1, unit: 'hours' },
  day: { count: 1, unit: 'days' },
  week: { count: 7, unit: 'days' },
  month: { count: 1, unit: 'months' },
  quarter: { count: 3, unit: 'months' },
  year: { count: 12, unit: 'months' },
};

/** Emits the series of periods. Too long a series gets an end that is out of range, so the query fails at once. */
function emitSpine(item: Spine, w: Writer): void {
  const { count, unit } = STEPS[item.grain];
  w.write('(select g as c1 from (');
  emitQuery(item.bounds, w);
  const tooLong = `b.c2 - b.c1 > interval '${count * MOST_PERIODS} ${unit}'`;
  const last = `case when ${tooLong} then b.c2 + interval '300000 years' else b.c2 end`;
  w.write(
    `) as b, pg_catalog.generate_series(b.c1, ${last}, interval '${count} ${unit}') as g) as r${item.id}`,
  );
}

const MOST_PERIODS = 100_000;

function emitSample({ method, percent, seed }: TableSample, w: Writer): void {
  w.write(` tablesample ${method} (`);
  emitExpr(percent, w);
  w.write(')');
  if (seed === null) return;
  w.write(' repeatable (');
  emitExpr(seed, w);
  w.write(')');
}

/** Emits the row filter and masked projection. In a fenced scan, `offset 0` keeps outer conditions above them. */
function emitScan(scan: GovernedScan, w: Writer): void {
  w.write('(select ');
  w.list(scan.columns, ', ', (c) => {
    emitExpr(c.expr, w);
    const plain = c.expr.kind === 'base' && c.expr.stored === undefined && c.expr.column === c.name;
    if (!plain) w.write(` as ${identifier(c.name)}`);
  });
  w.write(` from ${identifier(scan.relation.schema)}.${identifier(scan.relation.table)} as t`);
  if (scan.sample !== undefined) emitSample(scan.sample, w);
  emitConjuncts(' where ', [...(scan.filter === null ? [] : [scan.filter]), ...scan.pushed], w);
  w.write(scan.fenced ? ' offset 0)' : ')');
}
