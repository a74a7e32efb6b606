import { type Access, grantsOn, type RelationAccess, type RelationGrant, showsRows } from '../access.js';
import { fanOutOf } from '../bind/fan-out.js';
import type { LiteralSlots } from '../bind/index.js';
import { columnOf, type Relation } from '../catalog.js';
import { fingerprint } from '../emit/fingerprint.js';
import { InternalError, queryError } from '../errors.js';
import type {
  Aggregate,
  EntityScan,
  Expr,
  FromItem,
  GovernedScan,
  Query,
  Select,
  SourceId,
  Spine,
} from '../plan.js';
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
import { joinsFreely } from './keys.js';
import { filtersOf, sameRows } from './mask.js';

/** What one scan of a statement may show. */
export interface ScanAccess {
  readonly access: RelationAccess;
  /** Set where some of these grants give no row output, so that its rows count in large enough groups only. */
  readonly minimum: Minimum | null;
}

export interface Minimum {
  readonly size: number;
  /**
   * Filters of the grants that show rows: one list for each column, all of which must hold in part for the row to
   * count whatever its group. Null where no row does.
   */
  readonly plain: readonly (readonly Expr[])[] | null;
}

/** The access of every scan of a statement: grants without row output apply where their conditions are met. */
export class ScanAccesses {
  readonly #scans: ReadonlyMap<SourceId, ScanAccess>;

  constructor(scans: ReadonlyMap<SourceId, ScanAccess>) {
    this.#scans = scans;
  }

  of(scan: EntityScan | GovernedScan): ScanAccess {
    const found = this.#scans.get(scan.id);
    if (found === undefined)
      throw new InternalError(`no access was worked out for a scan of ${scan.relation.name}`);
    return found;
  }
}

/**
 * Decides for each scan which grants apply. A grant without row output adds to what aggregates see and never takes
 * anything away: a block that may not use it has the other grants.
 *
 * @throws QueryError E2103 where a block needs what only such a grant shows, and may not have it
 */
export function scanAccesses(root: Query, access: Access, literals: LiteralSlots): ScanAccesses {
  const scans = new Map<SourceId, ScanAccess>();
  const totalled = runningTotals(root);
  for (const query of allQueries(root)) {
    if (query.kind !== 'select') continue;
    for (const leaf of leavesOf(query.from)) {
      if (leaf.kind !== 'entity') continue;
      scans.set(leaf.id, scanAccess(leaf, query, access, literals, totalled.has(query)));
    }
  }
  return new ScanAccesses(scans);
}

/** The blocks whose groups are added up over periods: two totals differ by what may be a small group. */
function runningTotals(root: Query): ReadonlySet<Query> {
  const found = new Set<Query>();
  for (const query of allQueries(root)) {
    if (query.kind === 'values') continue;
    const periods = query.with.flatMap((t) => allQueries(t.query).flatMap(spinesOf));
    const read = new Set(periods.flatMap((s) => allQueries(s.bounds).flatMap(tablesOf)));
    for (const t of query.with) if (read.has(t.id)) for (const q of allQueries(t.query)) found.add(q);
  }
  return found;
}

function spinesOf(query: Query): readonly Spine[] {
  return query.kind === 'select' ? leavesOf(query.from).filter((l) => l.kind === 'spine') : [];
}

function tablesOf(query: Query): readonly number[] {
  return query.kind === 'select'
    ? leavesOf(query.from).flatMap((l) => (l.kind === 'cte' ? [l.table] : []))
    : [];
}

function scanAccess(
  scan: EntityScan,
  block: Select,
  access: Access,
  literals: LiteralSlots,
  totalled: boolean,
): ScanAccess {
  const all = grantsOn(scan.relation, access);
  if (all.grants.every(showsRows)) return { access: all, minimum: null };
  const showing = all.grants.filter(showsRows);
  const measured = metricsIn(block);
  const applicable = all.grants.flatMap((g) => applied(g, scan, block, measured));
  const some = [...showing, ...applicable];
  const plain: ScanAccess = { access: withGrants(all, showing), minimum: null };
  if (showsAll(scan, showing, some)) return plain;
  const fault = totalled
    ? 'a running total would tell its periods apart'
    : faultOf(scan, block, access, literals);
  const size = Math.max(...applicable.map((g) => g.groups?.minimum ?? 0));
  if (fault === null && applicable.length > 0 && coversAll(scan, some)) {
    const conditions = plainConditions(scan, showing, some);
    return { access: withGrants(all, some), minimum: { size, plain: conditions } };
  }
  if (coversAll(scan, showing)) return plain;
  const detail = fault ?? 'only some metrics of it may be asked for';
  throw queryError('groupsOnly', { relation: scan.relation.name, detail });
}

function withGrants(access: RelationAccess, grants: readonly RelationGrant[]): RelationAccess {
  return Object.freeze({ ...access, grants: Object.freeze([...grants]) });
}

/** Whether some grant shows each column that the scan reads. */
function coversAll(scan: EntityScan, grants: readonly RelationGrant[]): boolean {
  return grants.length > 0 && scan.columns.every((c) => grants.some((g) => g.columns.has(c)));
}

// ---------------------------------------------------------------- metrics

/** The metrics that the aggregates of a block come from; null stands for aggregates that the caller wrote. */
function metricsIn(block: Select): ReadonlySet<string | null> {
  return new Set(aggregatesOf(block).map((a) => a.metric));
}

/**
 * `grant` as it applies to the scan: with the columns of the metrics that the block uses. Nothing where the block
 * uses another aggregate than the grant allows, or names a column that only metrics may read.
 */
function applied(
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

/** The columns of a source that the block names outside of metrics, at any depth. */
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

function aggregatesOf(block: Select): readonly Aggregate[] {
  const found: Aggregate[] = [];
  for (const expr of exprsOf(block)) {
    visitExpr(expr, (e) => {
      if (e.kind === 'aggregate') found.push(e);
    });
  }
  return found;
}

// ---------------------------------------------------------------- what other grants show

/** Whether `showing` alone shows every row and cell of the scan that `all` show. */
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

/** What must hold of a row for every cell of it that the scan reads to be shown by `showing` as by `all`. */
function plainConditions(
  scan: EntityScan,
  showing: readonly RelationGrant[],
  all: readonly RelationGrant[],
): Minimum['plain'] {
  const conditions = new Map<string, readonly Expr[]>();
  const needed = scan.columns.map((name) => {
    const { covering, clearing } = showersOf(scan.relation, name, all);
    return (clearing.every(showsRows) ? covering : clearing).filter(showsRows);
  });
  for (const grants of [showing, ...needed]) {
    if (grants.length === 0) return null;
    const filters = filtersOf(grants);
    if (filters !== null) conditions.set(filters.map(fingerprint).join(), filters);
  }
  return [...conditions.values()];
}

function showersOf(relation: Relation, name: string, grants: readonly RelationGrant[]) {
  const covering = grants.filter((g) => g.columns.has(name));
  const label = columnOf(relation, name)?.sensitivity ?? null;
  return { covering, clearing: covering.filter((g) => label === null || g.unmask.has(label)) };
}

// ---------------------------------------------------------------- what a block must be

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
function faultOf(scan: EntityScan, block: Select, access: Access, literals: LiteralSlots): string | null {
  if (!block.grouped) return 'aggregate them where they are read';
  if (leavesOf(block.from).some((l) => l.kind !== 'entity')) return 'join them to entities and bridges only';
  // A join on any predicate would weigh a row by what is in it, which a count of pairs then tells.
  if (joinsFreely(block.from)) return 'raw SQL may not join them; OSL-SQL may, on sealed keys';
  if (mayBeMissing(scan.id, block.from)) return 'they may not be the optional side of a join';
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
