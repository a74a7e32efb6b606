import type { Access } from '../../access/access.js';
import type { Catalog, Joins, Relation } from '../../catalog/catalog.js';
import { assertNever, InternalError } from '../../errors/errors.js';
import { findUnsealedJoin } from '../../plan/join-rule.js';
import { equatesColumns, type KeyEquality, type NullSafeEquality } from '../../plan/keys.js';
import type {
  EntityScan,
  Expr,
  FromItem,
  FromLeaf,
  GovernedScan,
  Query,
  Slot,
  SourceId,
  TableSample,
} from '../../plan/plan.js';
import { allQueries, childrenOf, columnsOf, exprsOf, leavesOf, queryOf } from '../../plan/walk.js';
import { charactersOf } from '../../types/column-form.js';
import { keyColumnName } from '../column-names.js';
import { verifyBarrier } from './barrier.js';
import { verifyMinima } from './minimum.js';
import { verifyScans } from './scans.js';

/**
 * The final check before a plan may run: every scan is governed, every id resolves to something in scope, every
 * parameter has its slot, no policy-only node is left, joins obey the rule `joins`, and nothing can fail on a hidden
 * row.
 *
 * @throws InternalError if a check fails, which is a bug of the compiler and never of the query
 */
export function verify(
  root: Query,
  slots: readonly Slot[],
  joins: Joins | null,
  catalog: Catalog,
  access: Access,
): void {
  verifyJoins(root, joins);
  verifyRecursion(root);
  verifyQuery(root, slots, new Map(), new Map());
  verifyScans(root, slots, catalog, access);
  verifyMinima(root, slots);
  verifyBarrier(root, slots);
}

/** Verifies the join rule. Joins that the compiler made must equate columns unless both sides are query results. */
function verifyJoins(root: Query, joins: Joins | null): void {
  for (const query of allQueries(root)) if (query.kind === 'select') verifyMade(query.from);
  const found = joins === null ? null : findUnsealedJoin(root, joins, isKeyOf, withoutGuard);
  if (found !== null) throw new InternalError(`a join on no sealed key: ${found.kind}`);
}

function verifyMade(from: FromItem | null): void {
  if (from?.kind !== 'join') return;
  const places = new Map(leavesOf(from).map((l, place) => [l.id, place]));
  const sideOf = (item: FromItem, first: number): JoinedLeaves => {
    if (item.kind !== 'join') return { first, next: first + 1, places, computed: COMPUTED.has(item.kind) };
    const left = sideOf(item.left, first);
    const right = sideOf(item.right, left.next);
    const computed = left.computed && right.computed;
    const links = (e: Expr): boolean => equatesColumns(e) && crosses(e, left, right);
    if (item.made === true && !computed && !item.on.map(withoutGuard).some(links))
      throw new InternalError('a join that the compiler made links no rows');
    return { first, next: right.next, places, computed };
  };
  sideOf(from, 0);
}

/** One side of a join, as the leaves of FROM at positions `first` to just before `next`. */
interface JoinedLeaves {
  readonly first: number;
  readonly next: number;
  readonly places: ReadonlyMap<SourceId, number>;
  /** True if all of these leaves are query results. */
  readonly computed: boolean;
}

/** True for a column that joins may compare: a sealed key, or the variant that joins read instead of a masked key. */
function isKeyOf({ relation }: EntityScan | GovernedScan, name: string): boolean {
  return relation.sealedKeys.some((key) => key === name || keyColumnName(key) === name);
}

/** Returns a condition without the guard that tests whether its rows are shown. */
function withoutGuard(e: Expr): Expr {
  const [arm, ...more] = e.kind === 'case' ? e.arms : [];
  const isGuard =
    e.kind === 'case' && e.otherwise.kind === 'boolean' && !e.otherwise.value && more.length === 0;
  return isGuard && arm !== undefined ? arm.result : e;
}

function crosses(e: KeyEquality | NullSafeEquality, left: JoinedLeaves, right: JoinedLeaves): boolean {
  const isOf = (source: SourceId, { first, next, places }: JoinedLeaves): boolean => {
    const place = places.get(source) ?? -1;
    return place >= first && place < next;
  };
  const sideOf = (source: SourceId): number => (isOf(source, left) ? 0 : isOf(source, right) ? 1 : -1);
  return sideOf(e.left.source) !== sideOf(e.right.source);
}

/** FROM items whose rows are the result of a query. */
const COMPUTED: ReadonlySet<FromItem['kind']> = new Set<FromItem['kind']>([
  'derived',
  'cte',
  'recursion',
  'spine',
]);

type ColumnsByItem = ReadonlyMap<SourceId, ReadonlySet<string>>;
type TableQueries = ReadonlyMap<number, Query>;

function verifyQuery(query: Query, slots: readonly Slot[], outer: ColumnsByItem, around: TableQueries): void {
  const tables = new Map(around);
  if (query.kind !== 'values') {
    for (const t of query.with) {
      verifyQuery(t.query, slots, t.recursive === true ? new Map() : outer, tables);
      tables.set(t.id, t.query);
    }
  }
  const offered = new Map(outer);
  if (query.kind === 'set_operation') {
    verifyQuery(query.left, slots, outer, tables);
    verifyQuery(query.right, slots, outer, tables);
  }
  if (query.kind === 'select') {
    for (const leaf of leavesOf(query.from)) {
      const seen = leaf.kind === 'derived' && leaf.lateral === true ? new Map(offered) : outer;
      offered.set(leaf.id, verifyLeaf(leaf, slots, seen, tables));
    }
  }
  for (const expr of exprsOf(query)) verifyExpr(expr, slots, offered, tables);
}

function verifyLeaf(
  leaf: FromLeaf,
  slots: readonly Slot[],
  outer: ColumnsByItem,
  tables: TableQueries,
): ReadonlySet<string> {
  switch (leaf.kind) {
    case 'entity':
      throw new InternalError(`scan of ${leaf.relation.name} is not governed`);
    case 'governed':
      return verifyScan(leaf, slots);
    case 'derived':
      verifyQuery(leaf.query, slots, outer, tables);
      return positions(leaf.query);
    case 'cte': {
      const table = tables.get(leaf.table);
      if (table === undefined) throw new InternalError(`common table ${leaf.table} is not in scope`);
      return positions(table);
    }
    case 'spine':
      verifyQuery(leaf.bounds, slots, new Map(), tables);
      return new Set(['c1']);
    case 'recursion':
      return new Set(leaf.columns.map((_, i) => `c${i + 1}`));
    case 'rows':
      return new Set([...leaf.columns, ...(leaf.numbered ? ['number'] : [])].map((_, i) => `c${i + 1}`));
    case 'runtime':
      return new Set(leaf.columns.map((c) => c.name));
    default:
      return assertNever(leaf);
  }
}

/**
 * Verifies that a recursive table reads the rows of the previous step once, within its own step; that nothing else
 * reads them; and that every read of the table itself is bounded.
 */
function verifyRecursion(root: Query): void {
  const levels = allQueries(root);
  const recursive = levels.flatMap((q) =>
    q.kind === 'values' ? [] : q.with.filter((t) => t.recursive === true),
  );
  const leaves = levels.flatMap((q) => (q.kind === 'select' ? leavesOf(q.from) : []));
  const widths = new Map(recursive.map((t) => [t.id, columnsOf(t.query).length]));
  for (const { id, query } of recursive) {
    const step = query.kind === 'set_operation' && query.operator === 'union' ? query.right : null;
    const reads = step?.kind === 'select' && !step.grouped ? leavesOf(step.from) : [];
    if (reads.filter((l) => l.kind === 'recursion' && l.table === id).length !== 1)
      throw new InternalError(`recursive table ${id} has no step`);
  }
  if (leaves.filter((l) => l.kind === 'recursion').length !== recursive.length)
    throw new InternalError('a step is read where it is none');
  for (const leaf of leaves) {
    if (leaf.kind === 'cte' && leaf.recursive !== widths.get(leaf.table))
      throw new InternalError(`recursive table ${leaf.table} is read without a bound`);
    if (leaf.kind === 'recursion' && leaf.columns.length !== widths.get(leaf.table))
      throw new InternalError(`step ${leaf.table} has other columns`);
  }
}

function positions(query: Query): ReadonlySet<string> {
  return new Set(columnsOf(query).map((_, i) => `c${i + 1}`));
}

/** Results of `physicalColumns`, cached by relation, which is immutable. */
const PHYSICAL = new WeakMap<Relation, ReadonlyMap<string, string>>();

/** Returns the physical columns of the table, each with the facts about its type that a plan may state. */
function physicalColumns(relation: Relation): ReadonlyMap<string, string> {
  let known = PHYSICAL.get(relation);
  if (known === undefined) {
    known = new Map(
      relation.columns.map((c) => [c.physical, typeInDatabase(c.stored, charactersOf(c.form ?? null))]),
    );
    PHYSICAL.set(relation, known);
  }
  return known;
}

/** Formats the facts about a column's type that expressions over the column state, so that they can be compared. */
function typeInDatabase(stored: string | undefined, characters: number | null): string {
  return `${stored ?? ''} ${characters ?? ''}`;
}

function verifyScan(scan: GovernedScan, slots: readonly Slot[]): ReadonlySet<string> {
  const physical = physicalColumns(scan.relation);
  const inside = (e: Expr): void => {
    const stored = e.kind === 'distance' || e.kind === 'stored_vector';
    if (stored && scan.relation.kind !== 'facet')
      throw new InternalError(`${scan.relation.name} has no vectors`);
    if (e.kind === 'base' && physical.get(e.column) !== typeInDatabase(e.stored, e.characters ?? null))
      throw new InternalError(`${scan.relation.name} has no column ${e.column}`);
    if (e.kind === 'column' || queryOf(e) !== null)
      throw new InternalError(`scan of ${scan.relation.name} looks outside itself`);
    verifyLeafExpr(e, slots);
    for (const child of childrenOf(e)) inside(child);
  };
  if (scan.sample !== undefined) verifySample(scan, scan.sample, slots);
  for (const c of scan.columns) inside(c.expr);
  for (const e of scan.pushed) inside(e);
  if (scan.filter !== null) inside(scan.filter);
  return new Set(scan.columns.map((c) => c.name));
}

/** Verifies that a sampled table has no hidden rows or values: every row influences the sample and its size. */
function verifySample(scan: GovernedScan, { percent, seed }: TableSample, slots: readonly Slot[]): void {
  const shown = scan.columns.every((c) => c.masked === 'none');
  if (scan.relation.kind !== 'entity' || scan.filter !== null || scan.minimum !== null || !shown)
    throw new InternalError(`a sample of ${scan.relation.name} is taken of rows that are hidden`);
  for (const e of [percent, seed]) if (e !== null) verifyLeafExpr(e, slots);
}

function verifyExpr(expr: Expr, slots: readonly Slot[], offered: ColumnsByItem, tables: TableQueries): void {
  if (expr.kind === 'distance' || expr.kind === 'stored_vector')
    throw new InternalError('a vector outside a governed scan');
  if (expr.kind === 'base') throw new InternalError(`base column ${expr.column} outside a governed scan`);
  if (expr.kind === 'column' && offered.get(expr.source)?.has(expr.name) !== true) {
    throw new InternalError(`column ${expr.name} of source ${expr.source} is not in scope`);
  }
  verifyLeafExpr(expr, slots);
  const inner = queryOf(expr);
  if (inner !== null) verifyQuery(inner, slots, offered, tables);
  for (const child of childrenOf(expr)) verifyExpr(child, slots, offered, tables);
}

function verifyLeafExpr(expr: Expr, slots: readonly Slot[]): void {
  if (expr.kind === 'literal' || expr.kind === 'attribute_match')
    throw new InternalError(`${expr.kind} was not grounded`);
  if (expr.kind === 'parameter' && slots[expr.slot]?.type !== expr.type)
    throw new InternalError(`parameter ${expr.slot} has no slot`);
}
