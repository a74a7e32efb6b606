import { type Grain, isDayOrLonger, type PeriodSpan, parseGrain } from '../../catalog/grain.js';
import { InternalError } from '../../errors/errors.js';
import { fingerprint } from '../../plan/fingerprint.js';
import { allOf, inType } from '../../plan/nodes.js';
import type { Aggregate, ColumnRef, CommonTable, Expr, Query, Select, SourceId } from '../../plan/plan.js';
import { selectOf } from '../../plan/select-nodes.js';
import { someExpr, visitExpr } from '../../plan/walk.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { deferAggregates, isAdditive } from './aggregates.js';
import { call, joinedOn, materialized, tableRows, unnamedOutputs } from './build.js';
import type { Branch, BranchRows, JoinedRows } from './joined-rows.js';
import { isInSpan, truncateTime, unitOf } from './time.js';

/** A use of a metric over rows of other periods: a cumulative metric, or a metric of an earlier period. */
export interface PeriodMetricUse {
  /**
   * Placeholder that belongs to no FROM item. It is added to the FILTERs of the metric's aggregates to identify them.
   */
  readonly placeholder: ColumnRef;
  readonly item: { readonly source: SourceId };
  readonly time: ColumnRef;
  readonly span: PeriodSpan;
  readonly metric: string;
  readonly location: Location;
}

/** The GROUP BY key that is a period: `key` is `time`, truncated to `grain`. */
interface Period {
  readonly key: Expr;
  readonly time: Expr;
  readonly grain: Grain;
}

interface Periods {
  readonly period: Period;
  readonly span: PeriodSpan;
  readonly grouped: boolean;
  readonly inputs: readonly Expr[];
}

/**
 * Joins each period in GROUP BY to the rows in the metric's span.
 *
 * @param aggregates all aggregates of the SELECT
 * @throws QueryError E1001 if the SELECT is not grouped by exactly one period of the metric's time, filters on that
 * time, or uses grouping sets or a runtime relation such as RETRIEVE
 */
export function periodBranch(
  s: PeriodMetricUse,
  rows: JoinedRows,
  aggregates: readonly Aggregate[],
  select: Select,
  ctx: BindContext,
): Branch {
  const period = periodOf(s, select, ctx);
  const inside = (call: Aggregate): Aggregate => {
    const placed = rows.inside(without(call, s.placeholder));
    if (placed.kind !== 'aggregate') throw new InternalError('an aggregate stays one');
    return placed;
  };
  const calls = aggregates.filter((call) => isOf(call, s)).map(inside);
  const grouped = calls.every(isAdditive);
  const deferred = new Map(calls.map((c) => [fingerprint(c), deferAggregates(c, ctx, grouped)]));
  const inputs = new Map(
    [...deferred.values()].flatMap((d) => d.inputs.map((x) => [fingerprint(x), x] as const)),
  );
  const names = [...inputs.keys()];
  const made: Periods = { period, span: s.span, grouped, inputs: [...inputs.values()] };
  rows.columnOf(period.time);
  return {
    inputs: made.inputs,
    withinGroups: false,
    has: (call) => isOf(call, s),
    value: (call, columns, taken) => {
      const found = deferred.get(fingerprint(inside(call)));
      if (found === undefined) throw new InternalError('an aggregate of a metric was not seen');
      const own = found.inputs.map((x) => columns[names.indexOf(fingerprint(x))] ?? x);
      return found.value(own, taken);
    },
    rows: (all, keys) => rowsOfPeriods(made, all, keys, rows, ctx),
  };
}

function isOf({ filter }: Aggregate, { placeholder }: PeriodMetricUse): boolean {
  return filter !== null && someExpr(filter, (x) => x.kind === 'column' && x.source === placeholder.source);
}

/** Removes `placeholder` from the FILTER of `call`. */
function without(call: Aggregate, placeholder: ColumnRef | undefined): Aggregate {
  const given = (e: Expr): readonly Expr[] => {
    if (e.kind === 'column' && e.source === placeholder?.source) return [];
    return e.kind === 'and' ? e.args.flatMap(given) : [e];
  };
  const rest = call.filter === null ? [] : given(call.filter);
  return Object.freeze({ ...call, filter: rest.length === 0 ? null : allOf(rest) });
}

function periodOf({ metric, time, location }: PeriodMetricUse, select: Select, ctx: BindContext): Period {
  const refuse = (detail: string, hint: string) =>
    ctx.unresolvable(`metric \`${metric}\` ${detail}`, location, hint);
  const reads = (e: Expr): boolean =>
    someExpr(e, (x) => x.kind === 'column' && x.source === time.source && x.name === time.name);
  if (select.where.some(reads))
    throw refuse(
      'takes rows of other periods, which a condition on their time would leave out',
      'filter by the period in a query around this one',
    );
  if (ctx.drafts.length > 0)
    throw refuse(
      'takes rows of other periods, beside RETRIEVE, TRAVERSE or `evidence`',
      'ask for one of them at a time',
    );
  if (select.groupingSets !== null)
    throw refuse(
      'takes rows of other periods, which ROLLUP, CUBE and GROUPING SETS would add up again',
      'use GROUP BY',
    );
  const periods = select.groupBy.flatMap((key) => {
    const found = asPeriod(key, time);
    return found === null ? [] : [found];
  });
  const [only] = periods;
  if (only !== undefined && periods.length === 1) return only;
  throw refuse(
    'takes rows of other periods, which needs one period of its time in GROUP BY',
    `group by date_trunc('month', ${time.name})`,
  );
}

/** Interprets `key` as a period of `time`: `date_trunc`, a cast to date, both, or a plain date; null for other keys. */
function asPeriod(key: Expr, time: ColumnRef): Period | null {
  const isDate = key.kind === 'cast' && key.type === 'date';
  const inner = isDate ? key.arg : key;
  const ofTime = (e: Expr): boolean => {
    const columns: Expr[] = [];
    visitExpr(e, (x) => {
      if (x.kind === 'column') columns.push(x);
    });
    return columns.length > 0 && columns.every((c) => fingerprint(c) === fingerprint(time));
  };
  if (inner.kind === 'call' && inner.definition.name === 'date_trunc') {
    const [unit, cut, ...more] = inner.args;
    const grain = unit?.kind === 'structural' ? parseGrain(unit.text) : null;
    if (grain === null || cut === undefined || more.length > 0 || !ofTime(cut)) return null;
    return { key, time: cut, grain: isDate && !isDayOrLonger(grain) ? 'day' : grain };
  }
  if (!ofTime(inner)) return null;
  return isDate || key.type === 'date' ? { key, time: inner, grain: 'day' } : null;
}

function asMoment(time: Expr, like: Expr): Expr {
  return inType(time, like.type === 'date' ? 'timestamp' : like.type);
}

function rowsOfPeriods(
  made: Periods,
  all: CommonTable,
  keys: ReadonlySet<string>,
  rows: JoinedRows,
  ctx: BindContext,
): BranchRows {
  const { period, span } = made;
  const key = rows.columnOf(period.key);
  const others = [...keys].filter((name) => name !== key.name);
  const periods = materialized(periodsQuery(key, all, rows, ctx), ctx);
  const facts = materialized(factsQuery(made, others, all, rows, ctx), ctx);
  const p = tableRows(periods, ctx);
  const f = tableRows(facts, ctx);
  const [begin] = p.columns;
  const [at, ...values] = f.columns;
  if (begin === undefined || at === undefined) throw new InternalError('periods and facts have a time');
  const on = isInSpan(at, asMoment(begin, period.time), span, period.grain, ctx);
  const shown = others.flatMap((name, i) => (values[i] === undefined ? [] : [[name, values[i]] as const]));
  return {
    from: joinedOn(p.item, f.item, on),
    where: [],
    keys: new Map([[key.name, begin], ...shown]),
    inputs: values.slice(others.length),
    tables: [periods, facts],
  };
}

function periodsQuery(key: ColumnRef, all: CommonTable, rows: JoinedRows, ctx: BindContext): Query {
  const { item } = tableRows(all, ctx);
  const own = rows.ofUse(key, item);
  return selectOf({
    from: item,
    where: Object.freeze([call('isfinite', [own], ctx)]),
    distinct: true,
    outputs: unnamedOutputs([own]),
  });
}

/** Selects the time, the other keys and the inputs of each row, pre-aggregated if the metric is additive. */
function factsQuery(
  { period, span, grouped, inputs }: Periods,
  others: readonly string[],
  all: CommonTable,
  rows: JoinedRows,
  ctx: BindContext,
): Query {
  const use = tableRows(all, ctx);
  const own = (e: Expr): Expr => rows.ofUse(e, use.item);
  const time = own(rows.columnOf(period.time));
  const moment = asMoment(time, time);
  const at = grouped ? truncateTime(moment, unitOf(span, period.grain), ctx) : moment;
  const keys = use.columns.filter((c) => c.kind === 'column' && others.includes(c.name));
  return selectOf({
    from: use.item,
    where: Object.freeze([call('isfinite', [time], ctx)]),
    grouped,
    groupBy: grouped ? Object.freeze([at, ...keys]) : Object.freeze([]),
    outputs: unnamedOutputs([at, ...keys, ...inputs.map(own)]),
  });
}
