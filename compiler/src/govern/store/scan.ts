import { type Access, accessTo, type RelationAccess } from '../../access/access.js';
import type { LiteralSlots } from '../../bind/index.js';
import type { Catalog, Column, FacetStore, Relation } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import { requireOperator } from '../../functions/resolve.js';
import { caseNode, columnRef, equalsAny, FALSE, nullOf, TRUE } from '../../plan/nodes.js';
import {
  type BaseColumn,
  type ColumnRef,
  type DerivedTable,
  type Distance,
  type Expr,
  type FromItem,
  type GovernedColumn,
  type GovernedScan,
  type PlanOutput,
  SHOWN,
  type SourceId,
} from '../../plan/plan.js';
import type { PassagePage } from '../../plan/runtime.js';
import { selectOf } from '../../plan/select-nodes.js';
import { mapChildren, nodesIn } from '../../plan/walk.js';
import { type HarmlessContext, isHarmless } from '../barrier/harmless.js';
import { RowReach } from '../barrier/row-reach.js';
import { type GovernedPlan, mint, type OutputColumn } from '../governed-plan.js';
import { columnRule, maskedColumn, rowFilter, visibleColumn } from '../mask.js';
import { governScan } from '../scan.js';
import type { GovernedSlots } from '../slots.js';
import { ownColumn, stored } from './columns.js';

export interface StoreRequest {
  readonly source: SourceId;
  readonly facet: FacetStore;
  /** The caller's predicates over the facet's own columns. */
  readonly filters: readonly Expr[];
  /** Metadata columns that the statement uses. */
  readonly metadata: readonly string[];
  /**
   * `search`: the passages closest to a vector; `named`: those of the entities in `keys`, with the attributes
   * `derived`; `first`: any passages, ordered by their keys.
   */
  readonly by:
    | {
        readonly kind: 'search';
        readonly vectors: boolean;
        /** True if each passage is returned with the weights of its words. */
        readonly weights: boolean;
        readonly page: Pick<PassagePage, 'per' | 'skip'>;
        /** True if passages are also requested by their ids. */
        readonly named: boolean;
      }
    | { readonly kind: 'named'; readonly keys: Expr; readonly derived: readonly string[] }
    | { readonly kind: 'first' };
}

/** A facet's store in the version that this caller is served, and the context of its plans. */
export interface StoreView {
  readonly request: StoreRequest;
  readonly store: Relation;
  /** The caller's rights on the facet in that version. */
  readonly allowed: RelationAccess;
  /** Columns of the facet that are not denied to this caller, in declared order. */
  readonly shown: readonly string[];
  readonly entity: Relation;
  readonly access: Access;
  readonly catalog: Catalog;
  readonly slots: GovernedSlots;
  readonly literals: LiteralSlots;
}

/** Offsets from a store's source id to the ids of its other FROM items, far above the ids of a statement. */
export const SOURCE_OFFSETS = Object.freeze({
  entity: 1_000_000,
  some: 2_000_000,
  derived: 3_000_000,
  word: 4_000_000,
  fenced: 5_000_000,
  common: 6_000_000,
  documents: 7_000_000,
  indexed: 8_000_000,
  /** The id offset for a second scan of the store and the FROM items that belong to it. */
  second: 10_000_000,
});

/** Returns the same store under other source ids, so that one statement can read it twice. */
export function secondView(view: StoreView): StoreView {
  const { source, filters } = view.request;
  const beside = source + SOURCE_OFFSETS.second;
  const moved = (e: Expr): Expr =>
    e.kind === 'column' && e.source === source
      ? columnRef(beside, e.name, e.type)
      : mapChildren(e, moved, (query) => query);
  return { ...view, request: { ...view.request, source: beside, filters: filters.map(moved) } };
}

/**
 * Scans the store: row filter, then masked projection.
 *
 * @param pushed the gateway's own conditions on the table's columns
 */
export function scanStore(
  view: StoreView,
  names: readonly string[],
  computed: readonly GovernedColumn[],
  pushed: readonly Expr[],
  table: Relation = view.store,
): GovernedScan {
  const needed = new Set([...names, ...nodesIn(view.request.filters, 'column').map((c) => c.name)]);
  const columns = [...needed].map((name) => columnFor(view, name));
  return Object.freeze({
    kind: 'governed',
    id: view.request.source,
    relation: table,
    columns: Object.freeze([...columns, ...computed]),
    filter: rowFilter(view.allowed, view.slots),
    pushed: Object.freeze(pushed),
    fenced: false,
    minimum: null,
  });
}

/**
 * Returns the passages of a scan whose entity is visible and that match the caller's filters.
 *
 * @param where further conditions of the gateway on the passages
 */
export function visiblePassages(view: StoreView, scan: GovernedScan, where: readonly Expr[] = []): Passages {
  const visible = entityIsVisible(view);
  const zero = view.slots.literal('0', 'int8');
  return passagesOf(
    scan,
    [visible, ...where],
    callersFilters(view, scan),
    scan.id + SOURCE_OFFSETS.fenced,
    zero,
  );
}

/** Splits the caller's filters by whether they can fail on a passage of `scan`. */
export function callersFilters(
  view: StoreView,
  scan: GovernedScan,
): { readonly harmless: readonly Expr[]; readonly others: readonly Expr[] } {
  const no = (): boolean => false;
  const context: HarmlessContext = {
    literals: view.literals,
    column: (ref) => {
      const column = scan.columns.find((c) => c.name === ref.name);
      return column !== undefined && isHarmless(column.expr, context);
    },
    call: no,
    isLimited: no,
    node: no,
    queries: new WeakMap(),
  };
  const isSafe = (e: Expr): boolean => {
    if (e.kind !== 'in_query') return isHarmless(e, context);
    // The query of this IN does not read the passages.
    return isHarmless(e.arg, context) && new RowReach(e.query, view.literals).isHarmlessQuery(e.query);
  };
  const { filters } = view.request;
  return { harmless: filters.filter(isSafe), others: filters.filter((e) => !isSafe(e)) };
}

/** Returns the distance of a passage's vector from the one in slot `vector`. */
export function distanceTo(
  view: StoreView,
  operator: Distance['operator'],
  vector: Distance['vector'],
  column: string,
): GovernedColumn {
  const to = view.slots.given('vector', 'text');
  const expr: Distance = { kind: 'distance', operator, vector, column, to, type: 'float8' };
  return { name: stored('distance'), type: 'float8', masked: 'none', expr };
}

/** Returns the condition that a passage is about one of the entities in `keys`. */
export function isAbout(view: StoreView, keys: Expr): Expr {
  const key = keyColumn(view);
  return oneOf({ kind: 'base', column: key.physical, type: key.type }, keys);
}

/** Returns `arg = ANY (array)`. */
export function oneOf(arg: BaseColumn, array: Expr): Expr {
  return equalsAny(requireOperator('=', arg.type, arg.type), arg, array);
}

function columnFor(view: StoreView, name: string): GovernedColumn {
  const { store, shown, allowed, slots } = view;
  const own = ownColumn(name);
  if (own !== null) return Object.freeze({ name, type: own.type, expr: own, masked: 'none' });
  if (shown.includes(name)) return maskedColumn(columnRule(store, name, allowed), slots);
  const type = store.columns.find((c) => c.name === name)?.type ?? 'text';
  return Object.freeze({ name, type, expr: nullOf(type), masked: 'all' });
}

/** Returns a flag for each field that policy masks in some rows only: true if it may be read in this row. */
export function visibleFlags({ store, shown, allowed, slots }: StoreView): readonly GovernedColumn[] {
  return shown
    .map((name) => columnRule(store, name, allowed))
    .filter((rule) => rule.masked === 'some')
    .map((rule) => visibleColumn(rule, slots));
}

/** Returns the column of the store that identifies the entity. */
function keyColumn({ store, request }: StoreView): Column {
  const key = store.columns.find((c) => c.name === request.facet.entityKey);
  if (key === undefined) throw new InternalError('a facet without its key');
  return key;
}

/** Returns the condition that the entity of a passage is visible. */
function entityIsVisible(view: StoreView): Expr {
  const { facet, source } = view.request;
  const { type } = keyColumn(view);
  const id = source + SOURCE_OFFSETS.entity;
  const scan = governScan(
    { kind: 'entity', id, relation: view.entity, columns: [facet.keyOfEntity] },
    { access: accessTo(view.entity, view.access), minimum: null },
    undefined,
    view.slots,
  );
  const query = selectOf({
    from: scan,
    outputs: [{ name: 'key', expr: columnRef(id, facet.keyOfEntity, type) }],
  });
  const arg: ColumnRef = columnRef(source, facet.entityKey, type);
  return {
    kind: 'in_query',
    arg,
    query,
    negated: false,
    type: 'bool',
  };
}

const NO_ROLLUPS: ReadonlySet<string> = new Set();

export function storePlan(
  { request, slots, access, catalog }: StoreView,
  parts: Parameters<typeof selectOf>[0],
): GovernedPlan {
  const query = selectOf(parts);
  const grounded = slots.finish();
  const { facet } = request;
  const fields = {
    form: 'retrieve' as const,
    query,
    runtime: [],
    slots: grounded,
    clientOids: [],
    outputs: query.outputs.map(
      (o): OutputColumn => ({
        name: o.name,
        type: o.expr.type,
        form: null,
        source: null,
        redacted: false,
        redactable: [],
        passageKey: false,
        format: null,
      }),
    ),
    objects: [`osl.facets.${facet.name}`],
    redactedColumns: [],
    maskedColumns: [],
    passageFields: null,
    partialColumns: [],
    connector: facet.connector,
    grants: [],
  };
  return mint(fields, { catalog, access, joins: null, usable: NO_ROLLUPS });
}

/** The visible passages, as FROM, WHERE and column references for the rest of a statement. */
export interface Passages {
  readonly from: FromItem;
  readonly where: readonly Expr[];
  readonly ref: (column: string) => ColumnRef;
}

/**
 * Returns the passages of `scan` that match `where`, which restricts them to those that the caller may see, and the
 * caller's `filters`.
 *
 * A passage is hidden by the row filter of its facet or by that of its entity. No column of the passage shows whether
 * the entity is visible, so a CASE around a filter cannot test it. Filters that might fail therefore run above a fence:
 * a subquery with OFFSET 0, into which the planner moves no conditions.
 *
 * @param zero the parameter 0
 */
function passagesOf(
  scan: GovernedScan,
  where: readonly Expr[],
  filters: { readonly harmless: readonly Expr[]; readonly others: readonly Expr[] },
  id: SourceId,
  zero: Expr,
): Passages {
  const own = (name: string): ColumnRef => {
    const column = scan.columns.find((c) => c.name === name);
    if (column === undefined) throw new InternalError(`the store has no column ${name}`);
    return columnRef(scan.id, name, column.type);
  };
  const visible = [...filters.harmless, ...where];
  if (filters.others.length === 0) return { from: scan, where: visible, ref: own };

  const shown: PlanOutput = { name: SHOWN, expr: TRUE };
  const outputs = [...scan.columns.map(({ name }): PlanOutput => ({ name, expr: own(name) })), shown];
  const query = selectOf({ from: scan, where: visible, outputs, offset: zero });
  const from: DerivedTable = { kind: 'derived', id, query };
  const ref = (name: string): ColumnRef => {
    const index = outputs.findIndex((o) => o.name === name);
    const output = outputs[index];
    if (output === undefined) throw new InternalError(`the store has no column ${name}`);
    return columnRef(id, `c${index + 1}`, output.expr.type);
  };
  return { from, where: filters.others.map((f) => whereShown(above(f, scan.id, ref), ref(SHOWN))), ref };
}

/** Rewrites `expr` to read the output columns of the fenced subquery. */
function above(expr: Expr, source: SourceId, ref: (column: string) => ColumnRef): Expr {
  if (expr.kind === 'column') return expr.source === source ? ref(expr.name) : expr;
  return mapChildren(
    expr,
    (e) => above(e, source, ref),
    (q) => q,
  );
}

/** Wraps the condition in a CASE: with a fence alone, the planner may try the condition on column statistics. */
function whereShown(condition: Expr, shown: Expr): Expr {
  return caseNode(shown, condition, FALSE);
}
