import type { Joins, Relation } from '../catalog.js';
import { InternalError } from '../errors.js';
import { equatesColumns, type KeyEquality, type NullSafeEquality } from '../key-equality.js';
import type {
  Expr,
  Form,
  FromItem,
  GovernedScan,
  Join,
  Query,
  Slot,
  SourceId,
  TableSample,
} from '../plan.js';
import {
  allQueries,
  childrenOf,
  columnsOf,
  exprsOf,
  leavesOf,
  nestingIn,
  partsOf,
  queryOf,
} from '../walk.js';
import { verifyBarrier } from './verify-barrier.js';
import { verifyMinima } from './verify-minimum.js';

/**
 * The last check before a plan may run: every scan is governed, every id resolves to something in scope, every
 * parameter has its slot, nothing that only policy may hold is left, and nothing can fail on a row that is hidden.
 *
 * @throws InternalError; a caller's mistake cannot cause one
 */
export function verify(root: Query, slots: readonly Slot[], form: Form, joins: Joins): void {
  if (form !== 'sql') verifyJoins(root, form, joins);
  verifyRecursion(root);
  verifyQuery(root, slots, new Map(), new Map());
  verifyMinima(root, slots);
  verifyBarrier(root, slots);
}

/**
 * Raw SQL joins freely; a metrics question what it has already grouped; OSL-SQL content on keys alone, entities with
 * each other on keys unless the manifest says otherwise, and what queries have worked out, or functions make of values,
 * on anything.
 */
function verifyJoins(root: Query, form: Form, joins: Joins): void {
  const tables = new Map<number, Query>();
  for (const q of allQueries(root))
    if (q.kind !== 'values') for (const t of q.with) tables.set(t.id, t.query);
  const hasContent = contentIn(tables);
  const requireSound = (join: Join, left: Side, right: Side): void => {
    const sides = [left, right];
    if (sides.some((s) => s.made)) return;
    const on = join.on.map(unasked);
    const keyed = join.sealed && on.some((e) => equatesColumns(e) && crosses(e, left, right));
    const sound = sides.some((s) => s.content)
      ? keyed && on.every(equatesColumns)
      : keyed ||
        (joins === 'any' && form !== 'metrics') ||
        (form === 'metrics' ? sides.every((s) => s.computed) : sides.some((s) => s.computed));
    if (!sound) throw new InternalError('a join on no sealed key');
  };
  for (const query of allQueries(root)) {
    if (query.kind !== 'select' || query.from?.kind !== 'join') continue;
    const places = new Map(leavesOf(query.from).map((l, place) => [l.id, place]));
    const sideOf = (item: FromItem, first: number): Side => {
      if (item.kind !== 'join')
        return {
          first,
          next: first + 1,
          places,
          made: item.kind === 'rows',
          computed: COMPUTED.has(item.kind),
          content: hasContent(item),
        };
      const left = sideOf(item.left, first);
      const right = sideOf(item.right, left.next);
      requireSound(item, left, right);
      return {
        first,
        next: right.next,
        places,
        made: left.made && right.made,
        computed: left.computed && right.computed,
        content: left.content || right.content,
      };
    };
    sideOf(query.from, 0);
  }
}

/** One side of a join: the leaves of its FROM from place `first` to before `next`, and whether all or some are of a kind. */
interface Side {
  readonly first: number;
  readonly next: number;
  readonly places: ReadonlyMap<SourceId, number>;
  /** All are rows that functions make of values. */
  readonly made: boolean;
  /** All are what queries have worked out. */
  readonly computed: boolean;
  /** Behind some of them stand rows that were worked out before. */
  readonly content: boolean;
}

/** A condition without the question whether its rows are shown. */
function unasked(e: Expr): Expr {
  const [arm, ...more] = e.kind === 'case' ? e.arms : [];
  const asks = e.kind === 'case' && e.otherwise.kind === 'boolean' && !e.otherwise.value && more.length === 0;
  return asks && arm !== undefined ? arm.result : e;
}

function crosses(e: KeyEquality | NullSafeEquality, left: Side, right: Side): boolean {
  const isOf = (source: SourceId, { first, next, places }: Side): boolean => {
    const place = places.get(source) ?? -1;
    return place >= first && place < next;
  };
  const sideOf = (source: SourceId): number => (isOf(source, left) ? 0 : isOf(source, right) ? 1 : -1);
  return sideOf(e.left.source) !== sideOf(e.right.source);
}

/** Whether rows that were worked out before stand behind a FROM item. */
function contentIn(tables: Tables): (leaf: Leaf) => boolean {
  const known = new Map<Query, boolean>();
  const within = (query: Query | undefined): boolean => {
    if (query === undefined) return false;
    let found = known.get(query);
    if (found === undefined) {
      found =
        (query.kind === 'select' && leavesOf(query.from).some(isContent)) ||
        [...partsOf(query), ...nestingIn(query).map((n) => n.query)].some(within);
      known.set(query, found);
    }
    return found;
  };
  const isContent = (leaf: Leaf): boolean => {
    if (leaf.kind === 'cte') return within(tables.get(leaf.table));
    return leaf.kind === 'derived' ? within(leaf.query) : leaf.kind === 'runtime';
  };
  return isContent;
}

type Leaf = Exclude<FromItem, { kind: 'join' }>;

/** What is made of scans, and is none. */
const COMPUTED: ReadonlySet<FromItem['kind']> = new Set<FromItem['kind']>([
  'derived',
  'cte',
  'recursion',
  'spine',
]);

type Offered = ReadonlyMap<SourceId, ReadonlySet<string>>;
type Tables = ReadonlyMap<number, Query>;

function verifyQuery(query: Query, slots: readonly Slot[], outer: Offered, around: Tables): void {
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

function verifyLeaf(leaf: Leaf, slots: readonly Slot[], outer: Offered, tables: Tables): ReadonlySet<string> {
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
    default: {
      const unknown: never = leaf;
      throw new InternalError(`unexpected FROM item ${String(unknown)}`);
    }
  }
}

/**
 * A recursive table reads the rows of the step before in one place, which is of its own step; nobody else reads them, and
 * whoever reads the table itself takes so many rows at most.
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

/** Of relations of the catalog, which never change. */
const PHYSICAL = new WeakMap<Relation, ReadonlyMap<string, string | null>>();

/** The columns of the table, each with the type that it is stored in where that is none of the model's. */
function physicalColumns(relation: Relation): ReadonlyMap<string, string | null> {
  let known = PHYSICAL.get(relation);
  if (known === undefined) {
    known = new Map(relation.columns.map((c) => [c.physical, c.stored ?? null]));
    PHYSICAL.set(relation, known);
  }
  return known;
}

function verifyScan(scan: GovernedScan, slots: readonly Slot[]): ReadonlySet<string> {
  const physical = physicalColumns(scan.relation);
  const inside = (e: Expr): void => {
    const stored = e.kind === 'distance' || e.kind === 'stored_vector';
    if (stored && scan.relation.kind !== 'facet')
      throw new InternalError(`${scan.relation.name} has no vectors`);
    if (e.kind === 'base' && physical.get(e.column) !== (e.stored ?? null))
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

/** Which rows a sample has, and how many, hangs on every row of the table: no row or value of it may be hidden. */
function verifySample(scan: GovernedScan, { percent, seed }: TableSample, slots: readonly Slot[]): void {
  const shown = scan.columns.every((c) => c.masked === 'none');
  if (scan.relation.kind !== 'entity' || scan.filter !== null || scan.minimum !== null || !shown)
    throw new InternalError(`a sample of ${scan.relation.name} is taken of rows that are hidden`);
  for (const e of [percent, seed]) if (e !== null) verifyLeafExpr(e, slots);
}

function verifyExpr(expr: Expr, slots: readonly Slot[], offered: Offered, tables: Tables): void {
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
