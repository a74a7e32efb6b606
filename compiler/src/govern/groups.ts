import {
  type Access,
  grantsOn,
  type RelationAccess,
  type RelationGrant,
  sameRows,
  showsRows,
} from '../access/access.js';
import { GROUPS_ONLY, type GroupsOnlyReason, inPlaceOfMetric } from '../access/groups-only.js';
import type { BoundPlan, LiteralSlots } from '../bind/index.js';
import type { Relation } from '../catalog/catalog.js';
import { type QueryError, queryError } from '../errors/errors.js';
import { isKeyEquality } from '../plan/keys.js';
import type { Aggregate, EntityScan, Expr, FromItem, Query, Select, SourceId, Spine } from '../plan/plan.js';
import { callsVolatile, fanOutOf, mayBeMissing } from '../plan/properties.js';
import {
  allLeaves,
  allQueries,
  childrenOf,
  conditionsOf,
  exprsOf,
  leavesOf,
  nodesIn,
  queryOf,
  someExpr,
} from '../plan/walk.js';
import { type HarmlessContext, isHarmless } from './barrier/harmless.js';
import { canBeBounded, canBeSummed } from './bounds.js';
import { minimumOf, type ScanAccess, ScanAccesses, showersOf } from './scan-access.js';

/**
 * Decides which grants apply to each scan. A grant that allows only aggregates applies to the blocks that may use it;
 * other blocks get the remaining grants.
 *
 * @throws QueryError E2103 if a block needs data that only such a grant shows but may not use the grant
 */
export function scanAccesses(root: Query, access: Access, plan: BoundPlan): ScanAccesses {
  const scans = new Map<SourceId, ScanAccess>();
  const totalled = runningTotals(root);
  for (const query of allQueries(root)) {
    if (query.kind !== 'select') continue;
    for (const leaf of leavesOf(query.from)) {
      if (leaf.kind !== 'entity') continue;
      scans.set(leaf.id, scanAccess(leaf, query, access, plan, totalled.has(query)));
    }
  }
  return new ScanAccesses(scans);
}

/** Returns the blocks whose groups are totalled over periods: two totals may differ by one small group. */
function runningTotals(root: Query): ReadonlySet<Query> {
  const found = new Set<Query>();
  for (const query of allQueries(root)) {
    if (query.kind === 'values') continue;
    // Only metrics use periods, and their tables are in the same WITH clause as the table of the periods.
    const tables = query.with.flatMap((t) => allQueries(t.query));
    if (tables.some((q) => spinesOf(q).length > 0)) for (const q of tables) found.add(q);
  }
  return found;
}

function spinesOf(query: Query): readonly Spine[] {
  return query.kind === 'select' ? leavesOf(query.from).filter((l) => l.kind === 'spine') : [];
}

function scanAccess(
  scan: EntityScan,
  block: Select,
  access: Access,
  plan: BoundPlan,
  totalled: boolean,
): ScanAccess {
  const all = grantsOn(scan.relation, access);
  if (all.grants.every(showsRows)) return { access: all, minimum: null };
  const showing = all.grants.filter(showsRows);
  const measured = metricsIn(block);
  const applicable = all.grants.flatMap((g) => applicableGrants(g, scan, block, measured));
  const some = [...showing, ...applicable];
  const plain: ScanAccess = { access: withGrants(all, showing), minimum: null };
  if (showsAll(scan, showing, some)) return plain;
  const fault: GroupFault | null = totalled
    ? { why: 'running' }
    : (groupFault(scan, block, access, plan.literals) ?? shareFault(scan, block, applicable));
  if (fault === null && applicable.length > 0 && coversAll(scan, some)) {
    const minimum = minimumOf(scan.relation, scan.columns, showing, some);
    return { access: withGrants(all, some), minimum };
  }
  if (coversAll(scan, showing)) return plain;
  throw groupsOnly(scan.relation, all.grants, fault, plan.metrics.length > 0);
}

/**
 * Returns the error for rows that may only be aggregated. The hint names the granted metrics if only metrics are
 * granted. If a metric is at fault, it suggests aggregates written by the caller.
 */
function groupsOnly(
  { name: relation }: Relation,
  grants: readonly RelationGrant[],
  fault: GroupFault | null,
  ofMetrics: boolean,
): QueryError {
  const metrics = grants.flatMap(({ groups }) => groups ?? []).map((g) => g.metrics);
  const named = metrics.every((m) => m !== null) ? [...new Set(metrics.flatMap((m) => [...m.keys()]))] : [];
  const instead = GROUPS_ONLY.metrics(relation, named.map((m) => `MEASURE(${m})`).join(' or '));
  if (fault === null) return queryError('groupsOnly', { relation, ...instead });
  const { detail, hint } = GROUPS_ONLY[fault.why](relation, fault.name ?? '');
  if (named.length > 0) return queryError('groupsOnly', { relation, detail, hint: instead.hint });
  const byMetric =
    fault.call === undefined ? ofMetrics && BY_METRICS.has(fault.why) : fault.call.metric !== null;
  return queryError('groupsOnly', { relation, detail, hint: byMetric ? inPlaceOfMetric(relation) : hint });
}

/** Faults that a metric can cause in a query whose author did not write the metric. */
const BY_METRICS: ReadonlySet<GroupsOnlyReason> = new Set(['rows', 'optional', 'fails', 'running']);

/** Returns the reason why a row's share of an aggregate cannot be limited; null if it can be or no grant limits it. */
function shareFault(scan: EntityScan, block: Select, grants: readonly RelationGrant[]): GroupFault | null {
  if (grants.every((g) => g.groups?.dominance === undefined)) return null;
  const isOwn = (arg: Expr): boolean => !someExpr(arg, (e) => e.kind === 'column' && e.source !== scan.id);
  const calls = aggregatesOf(block).filter((call) => call.definition.name !== 'count');
  return calls.every((call) => call.args.every(isOwn)) ? null : { why: 'sharedJoin' };
}

function withGrants(access: RelationAccess, grants: readonly RelationGrant[]): RelationAccess {
  return Object.freeze({ ...access, grants: Object.freeze([...grants]) });
}

function coversAll(scan: EntityScan, grants: readonly RelationGrant[]): boolean {
  return grants.length > 0 && scan.columns.every((c) => grants.some((g) => g.columns.has(c)));
}

// ---------------------------------------------------------------- metrics

/** Returns the metrics that the aggregates of a block come from; null stands for aggregates that the caller wrote. */
function metricsIn(block: Select): ReadonlySet<string | null> {
  return new Set(aggregatesOf(block).map((a) => a.metric));
}

/**
 * Returns `grant` with the columns of the metrics that the block uses. Empty if the grant shows rows, does not allow
 * the block's aggregates, or allows only metrics to read a column that the block reads.
 */
function applicableGrants(
  grant: RelationGrant,
  scan: EntityScan,
  block: Select,
  measured: ReadonlySet<string | null>,
): readonly RelationGrant[] {
  const { groups } = grant;
  if (groups === undefined) return [];
  if (groups.metrics === null) return [grant];
  const within = new Set<string>();
  for (const name of measured) {
    const columns = name === null ? undefined : groups.metrics.get(name);
    if (columns === undefined) return [];
    for (const c of columns) within.add(c);
  }
  if (measured.size === 0) return [];
  const named = namedColumns(scan.id, block);
  if ([...within].some((c) => !grant.columns.has(c) && named.has(c))) return [];
  return [Object.freeze({ ...grant, columns: new Set([...grant.columns, ...within]) })];
}

/** Returns the columns of a source that the block reads outside metrics, at any depth. */
function namedColumns(source: SourceId, block: Select): ReadonlySet<string> {
  const names = new Set<string>();
  const visit = (e: Expr): void => {
    if (e.kind === 'aggregate' && e.metric !== null) return;
    if (e.kind === 'column' && e.source === source) names.add(e.name);
    childrenOf(e).forEach(visit);
  };
  for (const query of allQueries(block)) exprsOf(query).forEach(visit);
  return names;
}

// ---------------------------------------------------------------- rows that other grants show

/** True if `showing` alone shows every row and cell of the scan that `all` show. */
function showsAll(
  scan: EntityScan,
  showing: readonly RelationGrant[],
  all: readonly RelationGrant[],
): boolean {
  return (
    sameRows(showing, all) &&
    scan.columns.every((name) => {
      const { covering, clearing } = showersOf(scan.relation, name, all);
      const kept = clearing.every(showsRows) || sameRows(clearing.filter(showsRows), clearing);
      return kept && sameRows(covering.filter(showsRows), covering);
    })
  );
}

/**
 * Aggregates whose value depends on the whole group. None of them returns the value of one row or weights rows by
 * another column: weights of 1 for one row and 0 for all others would return that row's value.
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

/** The reason why a block may not aggregate rows that it may not show, and the function or call at fault. */
interface GroupFault {
  readonly why: GroupsOnlyReason;
  readonly name?: string;
  readonly call?: Aggregate;
}

/** Returns the reason why a block may not aggregate rows that it may not show; null if it may. */
function groupFault(
  scan: EntityScan,
  block: Select,
  access: Access,
  literals: LiteralSlots,
): GroupFault | null {
  if (!block.grouped) return { why: 'rows' };
  if (leavesOf(block.from).some((l) => l.kind !== 'entity')) return { why: 'made' };
  // Any other join repeats a row depending on its values, and a count of pairs would reveal these.
  if (!joinsOnKeys(block.from)) return { why: 'joined' };
  if (exprsOf(block).some(callsVolatile)) return { why: 'drawn' };
  if (mayBeMissing(block.from ?? undefined, scan.id)) return { why: 'optional' };
  // Each outer row would have a separate figure, and two of these figures may differ by a single row.
  if (looksOutward(block)) return { why: 'around' };
  if (block.outputs.some((o) => someExpr(o.expr, (e) => e.kind === 'call' && e.definition.kind === 'rows')))
    return { why: 'expanded' };
  const context = harmlessContext(literals);
  const calls = aggregatesOf(block);
  for (const call of calls) {
    const { name } = call.definition;
    if (!SUMMARIES.has(name)) return { why: 'shows', name, call };
    if (call.orderBy.length > 0) return { why: 'ordered', call };
    if (!canBeSummed(call)) return { why: 'tooLarge', name, call };
    if (call.metric === null && !call.args.every((a) => isPlain(a, context)))
      return { why: 'computed', call };
  }
  const weight = weightOf(scan, block, calls, access);
  if (weight !== null) return { why: weight };
  // Expressions that are computed for each row, whether or not its group is large enough.
  const rowwise = [
    ...block.where,
    ...block.groupBy,
    ...calls.flatMap((a) => [...a.args, ...(a.filter === null ? [] : [a.filter])]),
    ...block.having.filter(readsKeys),
  ];
  const onKeys = { ...context, node: () => false };
  const isSound = rowwise.every((e) => isHarmless(e, context));
  if (!isSound || !conditionsOf(block.from).every((e) => isHarmless(e, onKeys))) return { why: 'fails' };
  return null;
}

/** True if a block, or a query in it, uses outer columns other than in equalities of columns in its WHERE. */
function looksOutward(block: Select): boolean {
  const own = new Set(allLeaves(block).map((l) => l.id));
  const isOuter = (e: Expr): boolean => e.kind === 'column' && !own.has(e.source);
  const keys = new Set<Expr>(block.where.filter(isKeyEquality));
  return allQueries(block)
    .flatMap(exprsOf)
    .some((e) => !keys.has(e) && someExpr(e, isOuter));
}

function joinsOnKeys(item: FromItem | null): boolean {
  if (item?.kind !== 'join') return true;
  return item.sealed && item.on.every(isKeyEquality) && joinsOnKeys(item.left) && joinsOnKeys(item.right);
}

function harmlessContext(literals: LiteralSlots): HarmlessContext {
  const no = (): boolean => false;
  return {
    literals,
    column: () => true,
    call: no,
    isLimited: no,
    node: canBeBounded,
    queries: new WeakMap(),
  };
}

/**
 * Returns the reason why one figure over a large group could reveal values of single rows: an aggregate weights the
 * rows of the scan by values that the caller sees. Null if no aggregate does.
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
 * True if an argument reads a column of `from` whose value the caller sees in some row. For `scan`, whose rows are
 * counted, grants that cover all columns that the block reads are ignored.
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

/**
 * True if a condition reads group keys or a subquery outside of aggregates. Postgres may evaluate such a condition
 * before the group is known to be large enough.
 */
function readsKeys(condition: Expr): boolean {
  const visit = (e: Expr): boolean =>
    e.kind !== 'aggregate' && (e.kind === 'column' || queryOf(e) !== null || childrenOf(e).some(visit));
  return visit(condition);
}

function isPlain(arg: Expr, context: HarmlessContext): boolean {
  if (arg.kind === 'cast') return isHarmless(arg, context) && isPlain(arg.arg, context);
  return arg.kind === 'column' || arg.kind === 'parameter';
}

function aggregatesOf(block: Select): readonly Aggregate[] {
  return nodesIn(exprsOf(block), 'aggregate');
}
