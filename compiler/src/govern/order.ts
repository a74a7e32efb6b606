import type { RelationAccess } from '../access/access.js';
import { columnOf, type Relation } from '../catalog/catalog.js';
import { queryError } from '../errors/errors.js';
import { fingerprint } from '../plan/fingerprint.js';
import { columnRef } from '../plan/nodes.js';
import type {
  Aggregate,
  CommonTableRef,
  Expr,
  FromItem,
  Query,
  Select,
  SortKey,
  SourceId,
  WindowCall,
} from '../plan/plan.js';
import { mapQuery } from '../plan/query-tree.js';
import { ORDINAL } from '../plan/runtime.js';
import { ascending, columnRefs, groupingOf, Positions } from '../plan/select-nodes.js';
import {
  allLeaves,
  allQueries,
  changed,
  columnsOf,
  leavesOf,
  mapChildren,
  mapped,
  mapSort,
  nestingIn,
  partsOf,
  queryOf,
  someExpr,
  sortExprs,
} from '../plan/walk.js';
import { isComparable } from '../types/types.js';
import { columnRule } from './mask.js';
import type { ScanAccesses } from './scan-access.js';

/** Returns the columns that distinguish an item's rows for this caller. */
type KeysOf = ((item: FromItem) => readonly Expr[]) & {
  /** The common tables by id. */
  readonly tables: ReadonlyMap<number, Query>;
  /** True if a query reads no stored rows: its rows keep the order that Postgres gives them. */
  readonly isConstant: (query: Query) => boolean;
};

/**
 * Completes ORDER BY if LIMIT, OFFSET, DISTINCT ON or a window picks some of many rows: ties are broken by key, so that
 * neither storage order nor hidden rows decide which rows are returned.
 *
 * If the caller may not see the whole key, all columns that the query reads are used instead: rows that are equal in
 * all of them are interchangeable. A query that reads no stored rows is left as it is, since its order reveals nothing.
 *
 * The order of the result is completed in the same way if policy requires it for an entity that the query reads.
 *
 * @param whole `root` including the rows that operators process; the policy for their entities counts too
 */
export function breakTies(root: Query, accesses: ScanAccesses, whole: Query = root): Query {
  const read = new Map<SourceId, Set<string>>();
  const numbered = new Set<SourceId>();
  const tables = new Map<number, Query>();
  for (const q of allQueries(root)) {
    if (q.kind !== 'values') for (const t of q.with) tables.set(t.id, t.query);
  }
  const known = new WeakMap<Query, boolean>();
  const isConstantTable = ({ table, recursive }: CommonTableRef): boolean => {
    const query = tables.get(table);
    return (
      query !== undefined && (recursive === undefined ? isConstant(query) : stepsThroughConstants(query))
    );
  };
  const isConstant = (query: Query): boolean => {
    let constant = known.get(query);
    if (constant === undefined) {
      const leaves = query.kind === 'select' ? leavesOf(query.from) : [];
      constant =
        leaves.every(
          (l) => l.kind === 'rows' || l.kind === 'derived' || (l.kind === 'cte' && isConstantTable(l)),
        ) &&
        partsOf(query).every(isConstant) &&
        nestingIn(query).every((nesting) => isConstant(nesting.query));
      known.set(query, constant);
    }
    return constant;
  };
  const columnsThatTell = (item: FromItem): readonly Expr[] => {
    if (item.kind === 'derived') return everyColumn(item.id, item.query);
    if (item.kind === 'spine') return everyColumn(item.id, item.bounds).slice(0, 1);
    if (item.kind === 'rows') {
      numbered.add(item.id);
      return [columnRef(item.id, `c${item.columns.length + 1}`, 'int8')];
    }
    if (item.kind === 'recursion')
      return item.columns
        .map((type, i) => columnRef(item.id, `c${i + 1}`, type))
        .filter((c) => isComparable(c.type));
    if (item.kind === 'cte') {
      const table = tables.get(item.table);
      // A recursive table over constants yields its rows in a fixed order. Sorting them would require all of them,
      // although LIMIT may be what ends the recursion.
      return item.recursive !== undefined && isConstantTable(item) ? [] : everyColumn(item.id, table);
    }
    if (item.kind === 'runtime') {
      const ordinal = item.columns.find((c) => c.name === ORDINAL);
      return ordinal === undefined ? [] : [Object.freeze({ kind: 'column', source: item.id, ...ordinal })];
    }
    if (item.kind !== 'entity') return [];
    const names = clearKey(item.relation, accesses.of(item).access) ?? item.columns;
    read.set(item.id, new Set([...(read.get(item.id) ?? item.columns), ...names]));
    return names.map((name) => {
      const type = columnOf(item.relation, name)?.type ?? 'text';
      return columnRef(item.id, name, type);
    });
  };
  const keysOf: KeysOf = Object.assign(columnsThatTell, { tables, isConstant });
  const completed = mapQuery(root, { query: (q) => completedQuery(q, keysOf, false) });
  const ordered = asksForOrder(whole, accesses) ? inWholeOrder(completed, keysOf) : completed;
  if (read.size === 0 && numbered.size === 0) return ordered;
  return mapQuery(ordered, {
    item: (i) => {
      if (i.kind === 'rows') return numbered.has(i.id) ? changed(i, { numbered: true }) : i;
      const columns = read.get(i.kind === 'entity' ? i.id : -1);
      return i.kind === 'entity' && columns !== undefined
        ? Object.freeze({ ...i, columns: Object.freeze([...columns].sort()) })
        : i;
    },
  });
}

/**
 * Puts the result in a total order. Refuses WITH TIES, which cannot have one: another sort key would drop ties, and
 * without one they come in storage order.
 */
function inWholeOrder(root: Query, keysOf: KeysOf): Query {
  if (root.kind === 'values' || !root.withTies) return completedQuery(root, keysOf, true);
  throw queryError('unsupported', {
    construct: 'WITH TIES of rows that policy puts in the order of their key',
    hint: 'use rank() in a derived table',
  });
}

function asksForOrder(root: Query, accesses: ScanAccesses): boolean {
  return allLeaves(root).some((i) => i.kind === 'entity' && accesses.of(i).access.order === 'by_key');
}

/** Returns the primary key if the caller may read all of it in the clear, otherwise null. */
export function clearKey(relation: Relation, allowed: RelationAccess): readonly string[] | null {
  const isClear = (name: string): boolean =>
    !allowed.denied.has(name) &&
    allowed.grants.some((g) => g.columns.has(name)) &&
    columnRule(relation, name, allowed).masked === 'none';
  return relation.primaryKey.length > 0 && relation.primaryKey.every(isClear) ? relation.primaryKey : null;
}

/** True if a recursive table reads no stored rows, in its first step and in any other. */
function stepsThroughConstants(table: Query): boolean {
  return allLeaves(table).every((l) => VALUES_ALONE.has(l.kind));
}

const VALUES_ALONE: ReadonlySet<FromItem['kind']> = new Set<FromItem['kind']>([
  'recursion',
  'rows',
  'derived',
]);

function everyColumn(source: SourceId, query: Query | undefined): readonly Expr[] {
  return query === undefined ? [] : columnRefs(source, query).filter((c) => isComparable(c.type));
}

function completedQuery(query: Query, keysOf: KeysOf, always: boolean): Query {
  if (query.kind === 'values' || keysOf.isConstant(query)) return query;
  // WITH TIES returns all rows that sort equal; another key would distinguish them.
  if (query.withTies) return query.kind === 'select' ? withOrderedCalls(query, keysOf) : query;
  const picks = always || query.limit !== null || query.offset !== null;
  if (query.kind === 'set_operation') {
    return picks
      ? Object.freeze({ ...query, orderBy: completeOrder(query.orderBy, ordinals(query)) })
      : query;
  }
  const select = withOrderedCalls(query, keysOf);
  if (!picks && select.distinctOn.length === 0) return select;
  const positions = new Positions(select.outputs);
  const keys = [...select.distinctOn, ...tieBreakers(select, keysOf)].map((k) =>
    typeof k === 'number' ? k : (positions.of(k) ?? k),
  );
  return Object.freeze({ ...select, orderBy: completeOrder(select.orderBy, keys) });
}

function tieBreakers(query: Select, keysOf: KeysOf): readonly (Expr | number)[] {
  if (query.distinct) return ordinals(query);
  return query.grouped ? groupKeys(query) : leavesOf(query.from).flatMap(keysOf);
}

/** Returns values that distinguish the groups. For grouping sets, these include whether a NULL key was left out. */
function groupKeys({ groupBy, groupingSets }: Select): readonly Expr[] {
  return groupingSets === null ? groupBy : [...groupBy, ...groupingOf(groupBy)];
}

function ordinals(query: Query): readonly number[] {
  return columnsOf(query).flatMap(({ type }, i) => (isComparable(type) ? [i + 1] : []));
}

/** Returns `orderBy`, extended by the keys from `more` that it lacks. */
function completeOrder(orderBy: readonly SortKey[], more: readonly (Expr | number)[]): readonly SortKey[] {
  const text = (by: Expr | number): string | number => (typeof by === 'number' ? by : fingerprint(by));
  const known = new Set(orderBy.map((k) => text(k.by)));
  const added: SortKey[] = [];
  for (const by of more) {
    if (known.has(text(by))) continue;
    known.add(text(by));
    added.push(ascending(by));
  }
  return Object.freeze([...orderBy, ...added]);
}

// ---------------------------------------------------------------- calls whose result depends on the order of rows

const COLLECTING: ReadonlySet<string> = new Set([
  'array_agg',
  'string_agg',
  'jsonb_agg',
  'jsonb_object_agg',
  'json_agg',
  'json_object_agg',
]);
const COUNTING: ReadonlySet<string> = new Set(['row_number', 'ntile', 'lag', 'lead', 'first_value']);
const VALUES: ReadonlySet<string> = new Set(['last_value', 'nth_value']);

function withOrderedCalls(query: Select, keysOf: KeysOf): Select {
  const rowKeys = (): readonly Expr[] => leavesOf(query.from).flatMap(keysOf);
  const windowKeys = (): readonly Expr[] => (query.grouped ? groupKeys(query) : rowKeys());
  const inOrder = orderedRows(query, keysOf);
  const picked = comesPicked(query, keysOf);
  const keysFor = (e: Expr): readonly Expr[] | null => {
    // As in Postgres, aggregates collect the rows of a derived table in its order.
    if (e.kind === 'aggregate')
      return collects(e) && (inOrder === null || e.orderBy.length > 0) ? rowKeys() : null;
    if (e.kind !== 'window' || !picksByOrder(e)) return null;
    return (inOrder !== null || picked) && numbersAll(e) ? null : windowKeys();
  };
  const deep = (e: Expr): Expr => {
    const below = mapChildren(e, deep, (q) => q);
    const keys = keysFor(below);
    if (keys === null || (below.kind !== 'aggregate' && below.kind !== 'window')) return below;
    return Object.freeze({ ...below, orderBy: completeOrder(below.orderBy, keys) });
  };
  return changed(query, {
    from: inOrder ?? query.from,
    having: mapped(query.having, deep),
    outputs: mapped(query.outputs, (o) => changed(o, { expr: deep(o.expr) })),
    orderBy: mapSort(query.orderBy, deep),
  });
}

/** Returns FROM with a complete order if the level collects a derived table's rows in order; otherwise null. */
function orderedRows(query: Select, keysOf: KeysOf): FromItem | null {
  const { from } = query;
  if (from?.kind !== 'derived' || from.query.kind === 'values' || from.query.orderBy.length === 0)
    return null;
  const takesAll = (e: Expr): boolean =>
    (e.kind === 'aggregate' && collects(e) && e.orderBy.length === 0) ||
    (e.kind === 'window' && !query.grouped && picksByOrder(e) && numbersAll(e));
  const values = [...query.outputs.map((o) => o.expr), ...query.having, ...sortExprs(query.orderBy)];
  const whole = query.groupBy.length === 0 && query.groupingSets === null;
  if (!whole || !values.some((v) => someExpr(v, takesAll))) return null;
  return changed(from, { query: completedQuery(from.query, keysOf, true) });
}

/** True if a level only reads a common table with ORDER BY and LIMIT, whose order has been completed. */
function comesPicked({ from, grouped }: Select, { tables }: KeysOf): boolean {
  if (from?.kind !== 'cte' || grouped) return false;
  const query = tables.get(from.table);
  return query?.kind === 'select' && query.orderBy.length > 0 && query.limit !== null && !query.withTies;
}

/** True if a window call has no order and no partitions, in which case Postgres does not sort its rows. */
function numbersAll({ orderBy, partitionBy }: WindowCall): boolean {
  return (
    orderBy.length === 0 &&
    !partitionBy.some((p) => someExpr(p, (e) => e.kind === 'column' || queryOf(e) !== null))
  );
}

function collects(call: Aggregate): boolean {
  return COLLECTING.has(call.definition.name) && !call.distinct;
}

/** True if the call picks one of several rows that sort equal, so that a finer order changes only which row it uses. */
function picksByOrder(call: WindowCall): boolean {
  const { frame, definition } = call;
  if (COUNTING.has(definition.name) && frame === null) return true;
  const peers =
    definition.kind === 'window' && !COUNTING.has(definition.name) && !VALUES.has(definition.name);
  return frame?.mode === 'rows' && !peers && frame.exclude !== 'group' && frame.exclude !== 'ties';
}
