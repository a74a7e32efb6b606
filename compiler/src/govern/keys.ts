import { columnOf, type Relation } from '../catalog/catalog.js';
import { type Position, type QueryError, queryError } from '../errors/errors.js';
import { equatesColumns, isKeyEquality, type KeyEquality, type NullSafeEquality } from '../plan/keys.js';
import { equalsAny } from '../plan/nodes.js';
import type {
  ColumnRef,
  Expr,
  Form,
  FromItem,
  GovernedScan,
  Query,
  RuntimeScan,
  Select,
  SourceId,
} from '../plan/plan.js';
import { Levels, mapQuery } from '../plan/query-tree.js';
import { isPartOfKey } from '../plan/runtime.js';
import {
  allQueries,
  conditionsOf,
  leavesOf,
  nestingIn,
  partsOf,
  queriesIn,
  sortExprs,
} from '../plan/walk.js';
import { isArray } from '../types/types.js';
import type { GroupedLevels } from './barrier/row-reach.js';
import { keyColumnName } from './column-names.js';
import { StatementLineage } from './lineage.js';
import { type ColumnRule, columnRule } from './mask.js';
import type { ScanAccesses } from './scan-access.js';
import type { GovernedSlots } from './slots.js';
import type { PassageField, PassageFields } from './visible-columns.js';

/** The parts of a plan that are needed for error messages. */
interface RefusalContext {
  readonly form: Form;
  readonly positionOf: (expr: Expr) => Position | null;
}

/** Columns that a query joins on, and how policy requires each to be compared. */
export interface JoinKeys {
  /**
   * Sealed columns (declared join keys), by scan, whose masked values become NULL and match nothing. A `hash` mask is
   * kept.
   */
  readonly masked: ReadonlyMap<SourceId, ReadonlySet<string>>;
  /** Passage fields to check for redaction before joining, by RETRIEVE and name, with their positions in the text. */
  readonly checked: ReadonlyMap<SourceId, ReadonlyMap<string, Position | null>>;
}

/**
 * Returns the keys that `root` joins on, under policy.
 *
 * @throws QueryError E0515, decided from the plan and never from data, for a masked key that NULL cannot replace: a key
 * that is never shown in the clear, comes through a derived table, is compared by IS NOT DISTINCT FROM, or is also used
 * elsewhere. In a join with passages: for any key that is masked in some row
 */
export function joinKeys(
  root: Query,
  accesses: ScanAccesses,
  passages: PassageFields,
  context: RefusalContext,
): JoinKeys {
  const pairs = keyPairs(root);
  if (pairs.length === 0) return NO_KEYS;
  const lineage = new StatementLineage(root);
  const masked = new Map<SourceId, Set<string>>();
  const checked = new Map<SourceId, Map<string, Position | null>>();
  const fixed = fixedKeys(root);
  for (const { refs, joins, nullSafe } of pairs) {
    const fields = refs.map((ref) => fieldsUnder(ref, lineage, passages));
    const crossesModes = fields.some((f) => f.length > 0);
    // A field of passages counts as a key even if a filter equates it.
    if (!joins && !crossesModes) continue;
    for (const [i, ref] of refs.entries()) {
      for (const { source, name, mask } of fields[i] ?? []) {
        if (mask === 'all' || mask === 'some')
          throw queryError('keyNotClear', { column: name }, context.positionOf(ref));
        if (mask === 'searched') addTo(checked, source, new Map()).set(name, context.positionOf(ref));
      }
      const scan = lineage.scanOf(ref.source);
      if (scan === null || crossesModes) {
        refuseMasked(ref, lineage, accesses, crossesModes, context);
        continue;
      }
      const rule = columnRule(scan.relation, ref.name, accesses.of(scan).access);
      if (rule.masked === 'none' || isHashed(rule)) continue;
      if ((rule.masked === 'all' && rule.mask !== 'hash') || nullSafe || fixed.has(ref)) {
        throw keyNotClear(scan.relation, ref, ref.name, context);
      }
      addTo(masked, ref.source, new Set()).add(ref.name);
    }
  }
  return { masked, checked };
}

const NO_KEYS: JoinKeys = Object.freeze({ masked: new Map(), checked: new Map() });

function addTo<T>(map: Map<SourceId, T>, source: SourceId, empty: T): T {
  const found = map.get(source) ?? empty;
  map.set(source, found);
  return found;
}

/** Returns the passage fields that `ref` derives from. */
function fieldsUnder(
  ref: ColumnRef,
  lineage: StatementLineage,
  passages: PassageFields,
): readonly PassageField[] {
  return lineage.runtimeColumnsUnder(ref).flatMap((r) => passages.of(r) ?? []);
}

/**
 * Refuses a masked key that comes through a derived table, where it can no longer be replaced by NULL. In a join with
 * passages, refuses every masked key: even a hash would match no clear value.
 */
function refuseMasked(
  ref: ColumnRef,
  lineage: StatementLineage,
  accesses: ScanAccesses,
  crossesModes: boolean,
  context: RefusalContext,
): void {
  for (const { scan, name } of lineage.columnsUnder(ref)) {
    const rule = columnRule(scan.relation, name, accesses.of(scan).access);
    if (rule.masked !== 'none' && (crossesModes || !isHashed(rule)))
      throw keyNotClear(scan.relation, ref, name, context);
  }
}

/** Returns the error for a masked key. In raw SQL, callers know the column by its physical name. */
function keyNotClear(relation: Relation, ref: ColumnRef, name: string, context: RefusalContext): QueryError {
  const column = context.form === 'sql' ? columnOf(relation, name)?.physical : name;
  return queryError('keyNotClear', { column: column ?? name }, context.positionOf(ref));
}

/** True if every cell is clear or a keyed hash; both can be joined as shown. */
function isHashed(rule: ColumnRule): boolean {
  return rule.mask === 'hash' && rule.covered === null;
}

/**
 * Returns the keys that NULL cannot replace, because their shown value matters elsewhere at their level: the output of
 * an IN query that groups or picks rows, and keys that are joined above GROUP BY.
 */
function fixedKeys(root: Query): ReadonlySet<Expr> {
  const levels = new Levels(root);
  const fixed = new Set<Expr>();
  const visit = (query: Query, around: GroupedLevels | null): void => {
    for (const { refs, joins } of around === null ? [] : keyPairsIn(query)) {
      if (joins) for (const ref of refs) if (isOfGroups(ref, around, levels)) fixed.add(ref);
    }
    for (const part of partsOf(query)) visit(part, around);
    const above = queriesAboveGroups(query);
    for (const nesting of nestingIn(query)) {
      const keys = inQueryKeys(nesting);
      if (decidesRows(nesting.query)) for (const key of keys.slice(1)) fixed.add(key);
      const isAbove = query.kind === 'select' && above.has(nesting.query);
      const inside = isAbove ? { level: query, around: null } : null;
      for (const key of keys) if (key.kind === 'column' && isOfGroups(key, inside, levels)) fixed.add(key);
      visit(nesting.query, isAbove ? { level: query, around } : around);
    }
  };
  visit(root, null);
  return fixed;
}

function isOfGroups({ source }: ColumnRef, around: GroupedLevels | null, levels: Levels): boolean {
  for (let at = around; at !== null; at = at.around) if (levels.isOwn(at.level, source)) return true;
  return false;
}

/** Returns the queries inside expressions that are evaluated after GROUP BY. */
function queriesAboveGroups(query: Query): ReadonlySet<Query> {
  if (query.kind !== 'select' || !query.grouped || nestingIn(query).length === 0) return new Set();
  return new Set(
    queriesIn([...query.outputs.map((o) => o.expr), ...query.having, ...sortExprs(query.orderBy)]),
  );
}

/** The columns of an equality: both sides, or one if the other is not a column. */
interface KeyPair {
  readonly refs: readonly ColumnRef[];
  /** True if the equality joins; false if it only filters rows that are already joined. */
  readonly joins: boolean;
  /** True for IS NOT DISTINCT FROM, by which masked keys that are replaced by NULL would all match each other. */
  readonly nullSafe: boolean;
}

/** Returns the column equalities in ON and WHERE, including correlations of subqueries, and those implied by IN. */
function keyPairs(root: Query): readonly KeyPair[] {
  return allQueries(root).flatMap(keyPairsIn);
}

function keyPairsIn(query: Query): readonly KeyPair[] {
  if (query.kind !== 'select') return [];
  const found: KeyPair[] = [];
  for (const condition of conditionsOf(query.from)) {
    if (equatesColumns(condition)) found.push(pairOf(condition, true));
  }
  for (const conjunct of query.where) {
    if (equatesColumns(conjunct)) found.push(pairOf(conjunct, joinsHere(conjunct, query)));
  }
  for (const nesting of nestingIn(query)) {
    const refs = inQueryKeys(nesting).filter((k) => k.kind === 'column');
    if (refs.length > 0) found.push({ refs, joins: true, nullSafe: false });
  }
  return found;
}

function pairOf(equality: KeyEquality | NullSafeEquality, joins: boolean): KeyPair {
  const nullSafe = equality.kind === 'distinct_test';
  return { refs: [equality.left, equality.right], joins, nullSafe };
}

function inQueryKeys(expr: Expr): readonly Expr[] {
  if (expr.kind !== 'in_query') return [];
  const output = expr.query.kind === 'select' ? expr.query.outputs[0]?.expr : undefined;
  return output === undefined ? [expr.arg] : [expr.arg, output];
}

/** True if the output of a query also determines its rows, so that a key in it cannot be replaced. */
function decidesRows(query: Query): boolean {
  return (
    query.kind !== 'select' ||
    query.grouped ||
    query.distinct ||
    query.distinctOn.length > 0 ||
    query.limit !== null ||
    query.offset !== null
  );
}

/**
 * True if `expr`, a conjunct of WHERE, is a join condition: it equates a column of `query` with one of an outer query
 * or, if some join in FROM uses no sealed key, with one of another FROM item.
 */
export function isKeyCondition(expr: Expr, query: Select): expr is KeyEquality {
  return isKeyEquality(expr) && joinsHere(expr, query);
}

function joinsHere({ left, right }: KeyEquality | NullSafeEquality, query: Select): boolean {
  const own = new Set(leavesOf(query.from).map((i) => i.id));
  return own.has(left.source) !== own.has(right.source) || joinsFreely(query.from);
}

/** True if some join in `item` uses no sealed key, so that WHERE may join as well as ON. */
function joinsFreely(item: FromItem | null): boolean {
  return item?.kind === 'join' && (!item.sealed || joinsFreely(item.left) || joinsFreely(item.right));
}

/** Returns `expr` with the columns that it joins on replaced by their key variants. */
export function toKeyVariant(expr: Expr, keys: ReadonlyMap<SourceId, ReadonlySet<string>>): Expr {
  if (expr.kind !== 'column' || keys.get(expr.source)?.has(expr.name) !== true) return expr;
  return Object.freeze({ ...expr, name: keyColumnName(expr.name) });
}

/**
 * Where an entity is joined to precomputed rows, restricts its scan to the keys of those rows, so that the scan is
 * limited whatever plan Postgres chooses for the join. The keys are unmasked on both sides. Source: contract,
 * cross-modal join, execution order (3).
 */
export function restrictToKeys(root: Query, slots: GovernedSlots): Query {
  return mapQuery(root, {
    query: (q) => {
      if (q.kind !== 'select' || q.from?.kind !== 'join') return q;
      const rows = new Map(
        leavesOf(q.from).flatMap((l) => (l.kind === 'runtime' ? [[l.id, l] as const] : [])),
      );
      return rows.size === 0 ? q : Object.freeze({ ...q, from: restrictedJoin(q.from, rows, slots) });
    },
  });
}

/** A key column of a scan, and the condition that restricts it to the keys of the precomputed rows. */
interface KeyRestriction {
  readonly scan: SourceId;
  readonly key: string;
  readonly among: (key: Expr) => Expr;
}

function restrictedJoin(
  item: FromItem,
  rows: ReadonlyMap<SourceId, RuntimeScan>,
  slots: GovernedSlots,
): FromItem {
  if (item.kind !== 'join') return item;
  const restrictions = item.on.flatMap((c) => restrictionsBy(c, rows, slots));
  const [left, right] = [restrictedJoin(item.left, rows, slots), restrictedJoin(item.right, rows, slots)];
  if (restrictions.length === 0) return Object.freeze({ ...item, left, right });
  // The preserved side of an outer join is not restricted.
  return Object.freeze({
    ...item,
    left: item.type === 'inner' ? restricted(left, restrictions) : left,
    right: item.type === 'full' ? right : restricted(right, restrictions),
  });
}

function restrictionsBy(
  condition: Expr,
  rows: ReadonlyMap<SourceId, RuntimeScan>,
  slots: GovernedSlots,
): readonly KeyRestriction[] {
  if (!isKeyEquality(condition)) return [];
  const { definition, left, right } = condition;
  const [given, key] = rows.has(left.source) ? [left, right] : [right, left];
  const found = rows.get(given.source);
  const { type } = given;
  // For a key of several columns, one list per column would match all combinations of their values; the join itself can
  // use an index over all the columns.
  if (isPartOfKey(given.name)) return [];
  if (found === undefined || rows.has(key.source) || type !== key.type || isArray(type)) return [];
  const array = slots.keys(found.slot, given.name, type);
  return [{ scan: key.source, key: key.name, among: (arg) => equalsAny(definition, arg, array) }];
}

/** Adds the restrictions to the pushed predicates of the scans in `item`. */
function restricted(item: FromItem, restrictions: readonly KeyRestriction[]): FromItem {
  if (item.kind === 'governed') return withKeys(item, restrictions);
  if (item.kind !== 'join' || item.type === 'full') return item;
  const right = item.type === 'inner' ? restricted(item.right, restrictions) : item.right;
  return Object.freeze({ ...item, left: restricted(item.left, restrictions), right });
}

function withKeys(scan: GovernedScan, restrictions: readonly KeyRestriction[]): GovernedScan {
  if (scan.minimum !== null) return scan;
  const conditions = restrictions.flatMap((w) => {
    const key = w.scan === scan.id ? scan.columns.find((c) => c.name === w.key) : undefined;
    return key?.expr.kind === 'base' ? [w.among(key.expr)] : [];
  });
  if (conditions.length === 0) return scan;
  return Object.freeze({ ...scan, pushed: Object.freeze([...scan.pushed, ...conditions]) });
}
