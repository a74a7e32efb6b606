import type { GovernedPlan } from 'osl-compiler';
import {
  type Expr,
  type FromItem,
  type GovernedScan,
  type Query,
  type Select,
  type Slot,
  walk,
} from './internals.js';
import { unasked } from './no-barrier.js';

/** A plan as the emitter takes it. */
export interface Draft {
  readonly query: Query;
  readonly slots: readonly Slot[];
}

/** A mistake that a compiler could make. `applied` yields a plan with it; one that stays as it was cannot have it. */
export interface Fault {
  readonly name: string;
  readonly applied: (plan: GovernedPlan) => Draft;
}

type Column = GovernedScan['columns'][number];

function draft(query: Query, { slots }: GovernedPlan): Draft {
  return { query, slots };
}

function inScans(name: string, change: (scan: GovernedScan) => GovernedScan): Fault {
  const item = (i: FromItem): FromItem => (i.kind === 'governed' ? change(i) : i);
  return { name, applied: (plan) => draft(walk.mapQuery(plan.query, { item }), plan) };
}

function inColumns(name: string, change: (column: Column, scan: GovernedScan) => Column): Fault {
  return inScans(name, (scan) => ({ ...scan, columns: scan.columns.map((c) => change(c, scan)) }));
}

function inSelects(name: string, change: (select: Select) => Select): Fault {
  const query = (q: Query): Query => (q.kind === 'select' ? change(q) : q);
  return { name, applied: (plan) => draft(walk.mapQuery(plan.query, { query }), plan) };
}

function inValues(name: string, change: (e: Expr) => Expr): Fault {
  return { name, applied: (plan) => draft(walk.mapQuery(plan.query, { expr: change }), plan) };
}

/** `expr` and everything in it, changed from within. */
function deeply(expr: Expr, change: (e: Expr) => Expr): Expr {
  return change(
    walk.mapChildren(
      expr,
      (e) => deeply(e, change),
      (q) => q,
    ),
  );
}

function inJoins(
  item: FromItem | null,
  change: (join: Extract<FromItem, { kind: 'join' }>) => FromItem,
): FromItem | null {
  if (item?.kind !== 'join') return item;
  const left = inJoins(item.left, change) ?? item.left;
  const right = inJoins(item.right, change) ?? item.right;
  return change({ ...item, left, right });
}

/** The value itself, where its mask still has it somewhere. */
function clearOf(column: Column, scan: GovernedScan): Expr {
  const declared = scan.relation.columns.find((c) => c.name === column.name);
  return declared === undefined
    ? column.expr
    : { kind: 'base', column: declared.physical, type: declared.type };
}

function withoutKey(e: Expr): Expr {
  return e.kind === 'column' ? { ...e, name: e.name.replace('#key', '') } : e;
}

const TRUE: Expr = { kind: 'boolean', value: true, type: 'bool' };

function isMaskText(e: Expr): boolean {
  return e.kind === 'structural' && e.text === '[redacted]';
}

export const FAULTS: readonly Fault[] = [
  inScans('the row filter is dropped', (s) => ({ ...s, filter: null })),
  inScans('one grant of several filters alone', (s) =>
    s.filter?.kind === 'or' ? { ...s, filter: s.filter.args[0] ?? null } : s,
  ),
  inScans('grants are ANDed', (s) =>
    s.filter?.kind === 'or' ? { ...s, filter: { ...s.filter, kind: 'and' } } : s,
  ),
  inScans('the filters of a chain are ORed', (s) =>
    s.filter === null
      ? s
      : { ...s, filter: deeply(s.filter, (e) => (e.kind === 'and' ? { ...e, kind: 'or' } : e)) },
  ),
  inScans('an attribute is matched by ALL', (s) =>
    s.filter === null
      ? s
      : {
          ...s,
          filter: deeply(s.filter, (e) => (e.kind === 'quantified' ? { ...e, quantifier: 'all' } : e)),
        },
  ),
  inColumns('the mask is dropped', (c, s) => ({ ...c, expr: clearOf(c, s) })),
  inColumns('a partly masked column is masked throughout', (c) =>
    c.masked === 'some' && c.expr.kind === 'case' ? { ...c, expr: c.expr.otherwise } : c,
  ),
  inColumns('the union is widened to columns × rows', (c, s) =>
    c.masked === 'some' ? { ...c, expr: clearOf(c, s) } : c,
  ),
  inColumns('the arms of CASE are swapped', (c) => {
    const [arm] = c.expr.kind === 'case' ? c.expr.arms : [];
    if (c.expr.kind !== 'case' || arm === undefined) return c;
    return { ...c, expr: { ...c.expr, arms: [{ ...arm, result: c.expr.otherwise }], otherwise: arm.result } };
  }),
  inColumns('a mask that computes covers rows that no grant of the column does', (c) => {
    if (c.expr.kind !== 'case') return c;
    if (c.masked === 'all') return { ...c, expr: c.expr.arms[0]?.result ?? c.expr };
    const inner = c.expr.otherwise;
    return inner.kind === 'case'
      ? { ...c, expr: { ...c.expr, otherwise: inner.arms[0]?.result ?? inner } }
      : c;
  }),
  inColumns('redacted text is NULL', (c) => ({
    ...c,
    expr: deeply(c.expr, (e) => (isMaskText(e) ? { kind: 'null', type: 'text' } : e)),
  })),
  inColumns('the year mask keeps the month', (c) => ({
    ...c,
    expr: deeply(c.expr, (e) => (e.kind === 'structural' && e.text === 'year' ? { ...e, text: 'month' } : e)),
  })),
  inColumns('the partial mask keeps it all', (c) => ({
    ...c,
    expr: deeply(c.expr, (e) => {
      const [value] = e.kind === 'call' && e.definition.name === 'left' ? e.args : [];
      return value ?? e;
    }),
  })),
  {
    name: 'the pads of the hash are swapped',
    applied: (plan) => ({
      query: plan.query,
      slots: plan.slots.map((s) =>
        s.kind === 'pad' ? { ...s, pad: s.pad === 'inner' ? 'outer' : 'inner' } : s,
      ),
    }),
  },
  {
    name: 'masks are put on after WHERE',
    applied: (plan) => draft(maskedLate(plan.query), plan),
  },
  inSelects('LEFT JOIN turns INNER', (q) => ({
    ...q,
    from: inJoins(q.from, (j) => ({ ...j, type: 'inner' })),
  })),
  inSelects('a row filter leaves the inner side of LEFT JOIN', (q) => ({
    ...q,
    where: [...q.where, ...filtersOnTheRight(q.from)],
  })),
  {
    name: 'joins are on the mask, not on its key variant',
    applied: (plan) => draft(onMasks(plan.query), plan),
  },
  inScans('a pushed predicate is lost', (s) => ({ ...s, pushed: [] })),
  inSelects('ties are not broken', (q) => ({
    ...q,
    orderBy: q.limit === null ? q.orderBy : q.orderBy.slice(0, -1),
  })),
  inValues('window ties are not broken', (e) =>
    e.kind === 'window' ? { ...e, orderBy: e.orderBy.slice(0, -1) } : e,
  ),
  // Fences, and what IN compares with, need raw SQL: `mutants.test.ts` takes them away.
  inValues('a guard is removed', unasked),
  inSelects('DISTINCT is dropped', (q) => ({ ...q, distinct: false })),
  inSelects('HAVING is dropped', (q) => ({ ...q, having: [] })),
  inSelects('WHERE runs ORed', (q) =>
    q.where.length > 1 ? { ...q, where: [{ kind: 'or', args: q.where, type: 'bool' }] } : q,
  ),
  {
    name: 'UNION keeps duplicates',
    applied: (plan) =>
      draft(
        walk.mapQuery(plan.query, { query: (q) => (q.kind === 'set_operation' ? { ...q, all: true } : q) }),
        plan,
      ),
  },
  inValues('NOT is lost around a semi-join', (e) =>
    e.kind === 'not' && (e.arg.kind === 'exists' || e.arg.kind === 'in_query') ? e.arg : e,
  ),
  inValues('the correlation of a semi-join is lost', (e) =>
    e.kind === 'exists' && e.query.kind === 'select' ? { ...e, query: { ...e.query, where: [TRUE] } } : e,
  ),
];

/** Predicates over one scan run on its base columns, below the masks. */
function maskedLate(root: Query): Query {
  const query = (q: Query): Query => {
    if (q.kind !== 'select' || q.from?.kind !== 'governed') return q;
    const scan = q.from;
    const clear = (e: Expr): Expr => {
      const column =
        e.kind === 'column' && e.source === scan.id ? scan.columns.find((c) => c.name === e.name) : undefined;
      return column === undefined ? e : clearOf(column, scan);
    };
    const plain = q.where.filter((c) => !walk.someExpr(c, (e) => walk.queryOf(e) !== null));
    const pushed = plain.map((c) => deeply(c, clear));
    return {
      ...q,
      from: { ...scan, pushed: [...scan.pushed, ...pushed] },
      where: q.where.filter((c) => !plain.includes(c)),
    };
  };
  return walk.mapQuery(root, { query });
}

/** What the filter of a scan on the right of a LEFT JOIN says, as a predicate on what is left of its rows. */
function filtersOnTheRight(from: FromItem | null): readonly Expr[] {
  if (from?.kind !== 'join') return [];
  const right = from.right;
  const [column] = right.kind === 'governed' && from.type === 'left' ? right.columns : [];
  if (right.kind !== 'governed' || right.filter === null || column === undefined)
    return filtersOnTheRight(from.left);
  const arg: Expr = { kind: 'column', source: right.id, name: column.name, type: column.type };
  return [{ kind: 'null_test', arg, negated: true, type: 'bool' }, ...filtersOnTheRight(from.left)];
}

function onMasks(root: Query): Query {
  const query = (q: Query): Query =>
    q.kind !== 'select'
      ? q
      : {
          ...q,
          from: inJoins(q.from, (j) => ({ ...j, on: j.on.map((o) => deeply(o, withoutKey)) })),
        };
  return walk.mapQuery(root, { expr: withoutKey, query });
}
