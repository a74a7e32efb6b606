import { type Access, grantsOn, showsRows } from '../access/access.js';
import type { GroupsOnlyReason } from '../access/groups-only.js';
import { fanOutOf, type LiteralSlots } from '../bind/index.js';
import { isKeyEquality } from '../plan/key-equality.js';
import type { Aggregate, EntityScan, Expr, FromItem, Select, SourceId } from '../plan/plan.js';
import { callsVolatile } from '../plan/relations-read.js';
import {
  allQueries,
  childrenOf,
  conditionsOf,
  exprsOf,
  leavesOf,
  queryOf,
  someExpr,
  visitExpr,
} from '../plan/walk.js';
import { type HarmlessContext, isHarmless } from './barrier/harmless.js';
import { canBeBounded, canBeSummed } from './bounds.js';

/**
 * Aggregates whose value depends on the whole group. None returns the value of one row, or weighs rows by another
 * column, which with a column of zeros and a single one would come to the same.
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

/** The reason why these rows may only be aggregated, with the function at fault and its call, if there is one. */
export interface GroupFault {
  readonly why: GroupsOnlyReason;
  readonly name?: string;
  readonly call?: Aggregate;
}

/** The reason why a block may not aggregate rows that it may not show; null if it may. */
export function groupFault(
  scan: EntityScan,
  block: Select,
  access: Access,
  literals: LiteralSlots,
): GroupFault | null {
  if (!block.grouped) return { why: 'rows' };
  if (leavesOf(block.from).some((l) => l.kind !== 'entity')) return { why: 'made' };
  // A join on another predicate would repeat a row depending on its values, which a count of pairs reveals.
  if (!joinsOnKeys(block.from)) return { why: 'joined' };
  if (exprsOf(block).some(callsVolatile)) return { why: 'drawn' };
  if (mayBeMissing(scan.id, block.from)) return { why: 'optional' };
  // Each outer row would have a figure of its own; two of them may differ by one row.
  if (looksOutward(block)) return { why: 'around' };
  if (block.outputs.some((o) => someExpr(o.expr, (e) => e.kind === 'call' && e.definition.kind === 'rows')))
    return { why: 'expanded' };
  const grounds = groundsOf(literals);
  const calls = aggregatesOf(block);
  for (const call of calls) {
    const { name } = call.definition;
    if (!SUMMARIES.has(name)) return { why: 'shows', name, call };
    if (call.orderBy.length > 0) return { why: 'ordered', call };
    if (!canBeSummed(call)) return { why: 'intervals', name, call };
    if (call.metric === null && !call.args.every((a) => isPlain(a, grounds)))
      return { why: 'computed', call };
  }
  const weight = weightOf(scan, block, calls, access);
  if (weight !== null) return { why: weight };
  // Values that are computed for each row, whether its group is large enough or not.
  const rowwise = [
    ...block.where,
    ...block.groupBy,
    ...calls.flatMap((a) => [...a.args, ...(a.filter === null ? [] : [a.filter])]),
    ...block.having.filter(readsKeys),
  ];
  const onKeys = { ...grounds, node: () => false };
  const isSound = rowwise.every((e) => isHarmless(e, grounds));
  if (!isSound || !conditionsOf(block.from).every((e) => isHarmless(e, onKeys))) return { why: 'fails' };
  return null;
}

/** True if a block, or a query in it, names a column of a query around it anywhere but in an equality of columns. */
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

function groundsOf(literals: LiteralSlots): HarmlessContext {
  const no = (): boolean => false;
  return { literals, column: () => true, call: no, node: canBeBounded, queries: new WeakMap() };
}

/**
 * The reason why an aggregate of the block weighs rows of the scan differently, by values that the caller sees, so
 * that one figure over a large group would reveal readable parts; null if none does.
 */
function weightOf(
  scan: EntityScan,
  block: Select,
  calls: readonly Aggregate[],
  access: Access,
): GroupsOnlyReason | null {
  const scans = leavesOf(block.from).filter((l) => l.kind === 'entity');
  const repeated = block.from !== null && fanOutOf(block.from, scan.id) !== null;
  const besideRows = scans.some(
    (s) => s.id !== scan.id && grantsOn(s.relation, access).grants.some(showsRows),
  );
  for (const call of calls) {
    const counts = call.definition.name === 'count';
    if (repeated && !call.distinct && call.args.some((a) => readsOf(a, scan.id))) return 'repeated';
    const ofOwn = call.distinct && call.args.every((a) => readsOnly(a, scan.id));
    if (repeated && besideRows && !ofOwn) return 'besideRows';
    if (!counts && scans.some((s) => call.args.some((a) => readsKnown(a, s, scan, access)))) return 'known';
  }
  return null;
}

/**
 * True if an argument reads a column of `from` that is visible in some row while rows of `scan` are counted. In
 * another scan, any such column; in the scan itself, a column visible in a row that does not show everything the block
 * reads.
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

function isPlain(arg: Expr, grounds: HarmlessContext): boolean {
  if (arg.kind === 'cast') return isHarmless(arg, grounds) && isPlain(arg.arg, grounds);
  return arg.kind === 'column' || arg.kind === 'parameter';
}

/** True if an outer join may give the source NULLs instead of a row. */
function mayBeMissing(source: SourceId, item: FromItem | null): boolean {
  if (item === null || item.kind !== 'join') return false;
  const inRight = leavesOf(item.right).some((l) => l.id === source);
  if (item.type === 'full' || (inRight && item.type === 'left')) return true;
  return mayBeMissing(source, inRight ? item.right : item.left);
}

export function aggregatesOf(block: Select): readonly Aggregate[] {
  const found: Aggregate[] = [];
  for (const expr of exprsOf(block)) {
    visitExpr(expr, (e) => {
      if (e.kind === 'aggregate') found.push(e);
    });
  }
  return found;
}
