import { type Access, grantsOn, showsRows } from '../access.js';
import { fanOutOf, type LiteralSlots } from '../bind/index.js';
import { isKeyEquality } from '../key-equality.js';
import type { Aggregate, EntityScan, Expr, FromItem, Select, SourceId } from '../plan.js';
import { callsVolatile } from '../volatile.js';
import {
  allQueries,
  childrenOf,
  conditionsOf,
  exprsOf,
  leavesOf,
  queryOf,
  someExpr,
  visitExpr,
} from '../walk.js';
import { canBeBounded, canBeSummed } from './bounds.js';
import { type Grounds, isHarmless } from './harmless.js';

/**
 * Aggregates whose value is of the whole group. None returns what one row holds, nor weighs rows by another column,
 * which a column of zeros and a one would make the same.
 */
const SUMMARIES: ReadonlySet<string> = new Set([
  'count',
  'sum',
  'avg',
  'stddev',
  'stddev_pop',
  'stddev_samp',
  'variance',
  'var_pop',
  'var_samp',
]);

/** Why a block may not aggregate rows that it may not show; null where it may. */
export function groupFault(
  scan: EntityScan,
  block: Select,
  access: Access,
  literals: LiteralSlots,
): string | null {
  if (!block.grouped) return 'aggregate them where they are read';
  if (leavesOf(block.from).some((l) => l.kind !== 'entity')) return 'join them to entities and bridges only';
  // A join on any predicate would weigh a row by what is in it, which a count of pairs then tells.
  if (!joinsOnKeys(block.from)) return 'OSL-SQL alone joins them, on sealed keys and nothing else';
  if (exprsOf(block).some(callsVolatile)) return 'nothing may be drawn anew for each of their groups';
  if (mayBeMissing(scan.id, block.from)) return 'they may not be the optional side of a join';
  // Each row around would have a figure of its own; two of them may differ by one row.
  if (looksOutward(block)) return 'a query around chooses them by `=` and a key, and by nothing else';
  if (block.outputs.some((o) => someExpr(o.expr, (e) => e.kind === 'call' && e.definition.kind === 'rows')))
    return 'rows cannot be made of them';
  const grounds = groundsOf(literals);
  const calls = aggregatesOf(block);
  for (const call of calls) {
    const { name } = call.definition;
    if (!SUMMARIES.has(name)) return `\`${name}\` would show what is in one of them`;
    if (call.orderBy.length > 0) return 'an aggregate over them takes no ORDER BY';
    if (!canBeSummed(call)) return `\`${name}\` of intervals may be too large`;
    if (call.metric === null && !call.args.every((a) => isPlain(a, grounds)))
      return 'aggregate columns as they are, without an expression';
  }
  const weight = weightOf(scan, block, calls, access);
  if (weight !== null) return weight;
  // What is worked out for each row, whether its group is large enough or not.
  const rowwise = [
    ...block.where,
    ...block.groupBy,
    ...calls.flatMap((a) => [...a.args, ...(a.filter === null ? [] : [a.filter])]),
    ...block.having.filter(readsKeys),
  ];
  const onKeys = { ...grounds, node: () => false };
  const isSound = rowwise.every((e) => isHarmless(e, grounds));
  if (!isSound || !conditionsOf(block.from).every((e) => isHarmless(e, onKeys)))
    return 'filter and group by columns and comparisons only, which cannot fail';
  return null;
}

/** Whether a block, or a query in it, names a column of a query around anywhere but in an equality of columns. */
function looksOutward(block: Select): boolean {
  const levels = allQueries(block);
  const own = new Set(levels.flatMap((q) => (q.kind === 'select' ? leavesOf(q.from).map((l) => l.id) : [])));
  const isOuter = (e: Expr): boolean => e.kind === 'column' && !own.has(e.source);
  const keys = new Set<Expr>(block.where.filter(isKeyEquality));
  return levels.flatMap(exprsOf).some((e) => !keys.has(e) && someExpr(e, isOuter));
}

function joinsOnKeys(item: FromItem | null): boolean {
  if (item?.kind !== 'join') return true;
  return item.sealed && item.on.every(isKeyEquality) && joinsOnKeys(item.left) && joinsOnKeys(item.right);
}

function groundsOf(literals: LiteralSlots): Grounds {
  const no = (): boolean => false;
  return { literals, column: () => true, call: no, node: canBeBounded, queries: new WeakMap() };
}

/**
 * Why the aggregates of a block weigh one row of the scan more than another by what the caller sees of them, so that
 * one figure over a large group would be made of readable parts; null where none does.
 */
function weightOf(
  scan: EntityScan,
  block: Select,
  calls: readonly Aggregate[],
  access: Access,
): string | null {
  const scans = leavesOf(block.from).filter((l) => l.kind === 'entity');
  const repeated = block.from !== null && fanOutOf(block.from, scan.id) !== null;
  const besideRows = scans.some(
    (s) => s.id !== scan.id && grantsOn(s.relation, access).grants.some(showsRows),
  );
  for (const call of calls) {
    const counts = call.definition.name === 'count';
    if (repeated && !call.distinct && call.args.some((a) => readsOf(a, scan.id)))
      return 'a join repeats them, and so would weigh one more than another';
    const ofOwn = call.distinct && call.args.every((a) => readsOnly(a, scan.id));
    if (repeated && besideRows && !ofOwn)
      return 'a join to rows that are shown would weigh one more than another';
    if (!counts && scans.some((s) => call.args.some((a) => readsKnown(a, s, scan, access))))
      return 'a column that is shown would weigh one more than another';
  }
  return null;
}

/**
 * Whether an argument reads a column of `from` that some row shows while rows of `scan` are counted: of another scan,
 * any such; of its own, one whose row then does not show all that the block reads.
 */
function readsKnown(arg: Expr, from: EntityScan, scan: EntityScan, access: Access): boolean {
  const showing = grantsOn(from.relation, access).grants.filter(showsRows);
  const isKnown = (name: string): boolean =>
    showing.some(
      (g) => g.columns.has(name) && !(from.id === scan.id && scan.columns.every((c) => g.columns.has(c))),
    );
  return someExpr(arg, (e) => e.kind === 'column' && e.source === from.id && isKnown(e.name));
}

function readsOnly(expr: Expr, source: SourceId): boolean {
  return readsOf(expr, source) && !someExpr(expr, (e) => e.kind === 'column' && e.source !== source);
}

function readsOf(expr: Expr, source: SourceId): boolean {
  return someExpr(expr, (e) => e.kind === 'column' && e.source === source);
}

/** A condition on group keys may be evaluated before the group is known to be large enough. */
function readsKeys(condition: Expr): boolean {
  const visit = (e: Expr): boolean =>
    e.kind !== 'aggregate' && (e.kind === 'column' || queryOf(e) !== null || childrenOf(e).some(visit));
  return visit(condition);
}

function isPlain(arg: Expr, grounds: Grounds): boolean {
  if (arg.kind === 'cast') return isHarmless(arg, grounds) && isPlain(arg.arg, grounds);
  return arg.kind === 'column' || arg.kind === 'parameter';
}

/** Whether an outer join may give the source NULLs instead of a row. */
function mayBeMissing(source: SourceId, item: FromItem | null): boolean {
  if (item === null || item.kind !== 'join') return false;
  const inRight = leavesOf(item.right).some((l) => l.id === source);
  if (item.type === 'full' || (inRight && item.type === 'left')) return true;
  return mayBeMissing(source, inRight ? item.right : item.left);
}

/** The aggregates that a block computes. */
export function aggregatesOf(block: Select): readonly Aggregate[] {
  const found: Aggregate[] = [];
  for (const expr of exprsOf(block)) {
    visitExpr(expr, (e) => {
      if (e.kind === 'aggregate') found.push(e);
    });
  }
  return found;
}
