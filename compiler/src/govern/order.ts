import type { RelationAccess } from '../access.js';
import { columnOf, type Relation } from '../catalog.js';
import { fingerprint } from '../fingerprint.js';
import { ascending, columnRef, columnRefs } from '../nodes.js';
import type { Aggregate, Expr, FromItem, Query, Select, SortKey, SourceId, WindowCall } from '../plan.js';
import { ORDINAL } from '../runtime.js';
import { allQueries, changed, columnsOf, leavesOf, mapChildren, mapped, mapQuery, mapSort } from '../walk.js';
import { columnRule } from './mask.js';
import type { ScanAccesses } from './scan-access.js';

/** The columns that tell the rows of a FROM item apart, for this caller. */
type KeysOf = (item: FromItem) => readonly Expr[];

/**
 * Completes ORDER BY where LIMIT, OFFSET, DISTINCT ON or a window picks some rows of many: ties are broken by key,
 * so that neither storage order nor rows that the caller may not see decide which rows come.
 *
 * Where the caller may not see the whole key, everything that the query reads of a row takes its place: rows that
 * are equal in all of it are interchangeable.
 *
 * The answer itself is completed likewise, whatever it picks, where policy asks for it on an entity that it reads.
 */
export function breakTies(root: Query, accesses: ScanAccesses): Query {
  const read = new Map<SourceId, Set<string>>();
  const tables = new Map(
    allQueries(root).flatMap((q) => (q.kind === 'values' ? [] : q.with.map((t) => [t.id, t.query] as const))),
  );
  const keysOf: KeysOf = (item) => {
    if (item.kind === 'derived') return everyColumn(item.id, item.query);
    if (item.kind === 'spine') return everyColumn(item.id, item.bounds).slice(0, 1);
    if (item.kind === 'cte') return everyColumn(item.id, tables.get(item.table));
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
  const completed = mapQuery(root, { query: (q) => completedQuery(q, keysOf, false) });
  const ordered = asksForOrder(root, accesses) ? completedQuery(completed, keysOf, true) : completed;
  return mapQuery(ordered, {
    item: (i) => {
      const columns = read.get(i.kind === 'entity' ? i.id : -1);
      return i.kind === 'entity' && columns !== undefined
        ? Object.freeze({ ...i, columns: Object.freeze([...columns].sort()) })
        : i;
    },
  });
}

function asksForOrder(root: Query, accesses: ScanAccesses): boolean {
  return allQueries(root).some(
    (q) =>
      q.kind === 'select' &&
      leavesOf(q.from).some((i) => i.kind === 'entity' && accesses.of(i).access.order === 'by_key'),
  );
}

/** The primary key, if the caller may read all of it in the clear. */
export function clearKey(relation: Relation, allowed: RelationAccess): readonly string[] | null {
  const isClear = (name: string): boolean =>
    !allowed.denied.has(name) &&
    allowed.grants.some((g) => g.columns.has(name)) &&
    columnRule(relation, name, allowed).masked === 'none';
  return relation.primaryKey.length > 0 && relation.primaryKey.every(isClear) ? relation.primaryKey : null;
}

function everyColumn(source: SourceId, query: Query | undefined): readonly Expr[] {
  return query === undefined ? [] : columnRefs(source, query);
}

function completedQuery(query: Query, keysOf: KeysOf, always: boolean): Query {
  if (query.kind === 'values') return query;
  const picks = always || query.limit !== null || query.offset !== null;
  if (query.kind === 'set_operation') {
    return picks
      ? Object.freeze({ ...query, orderBy: completeOrder(query.orderBy, ordinals(query)) })
      : query;
  }
  const select = withOrderedCalls(query, keysOf);
  if (!picks && select.distinctOn.length === 0) return select;
  const keys = [...select.distinctOn, ...tieBreakers(select, keysOf)].map((k) => ordinalOf(k, select) ?? k);
  return Object.freeze({ ...select, orderBy: completeOrder(select.orderBy, keys) });
}

function tieBreakers(query: Select, keysOf: KeysOf): readonly (Expr | number)[] {
  if (query.distinct) return ordinals(query);
  return query.grouped ? query.groupBy : leavesOf(query.from).flatMap(keysOf);
}

function ordinals(query: Query): readonly number[] {
  return columnsOf(query).map((_, i) => i + 1);
}

function ordinalOf(key: Expr | number, query: Select): number | null {
  if (typeof key === 'number') return key;
  const wanted = fingerprint(key);
  const index = query.outputs.findIndex((o) => fingerprint(o.expr) === wanted);
  return index < 0 ? null : index + 1;
}

/** `orderBy` with those of `more` that it lacks. */
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

const COLLECTING: ReadonlySet<string> = new Set(['array_agg', 'string_agg', 'jsonb_agg', 'jsonb_object_agg']);
const COUNTING: ReadonlySet<string> = new Set(['row_number', 'ntile', 'lag', 'lead', 'first_value']);
const VALUES: ReadonlySet<string> = new Set(['last_value', 'nth_value']);

function withOrderedCalls(query: Select, keysOf: KeysOf): Select {
  const rowKeys = (): readonly Expr[] => leavesOf(query.from).flatMap(keysOf);
  const windowKeys = (): readonly Expr[] => (query.grouped ? query.groupBy : rowKeys());
  const keysFor = (e: Expr): readonly Expr[] | null => {
    if (e.kind === 'aggregate') return collects(e) ? rowKeys() : null;
    return e.kind === 'window' && picksByOrder(e) ? windowKeys() : null;
  };
  const deep = (e: Expr): Expr => {
    const below = mapChildren(e, deep, (q) => q);
    const keys = keysFor(below);
    if (keys === null || (below.kind !== 'aggregate' && below.kind !== 'window')) return below;
    return Object.freeze({ ...below, orderBy: completeOrder(below.orderBy, keys) });
  };
  return changed(query, {
    having: mapped(query.having, deep),
    outputs: mapped(query.outputs, (o) => changed(o, { expr: deep(o.expr) })),
    orderBy: mapSort(query.orderBy, deep),
  });
}

function collects(call: Aggregate): boolean {
  return COLLECTING.has(call.definition.name) && !call.distinct;
}

/** Whether a finer order changes nothing of the call but which of several equal rows it takes. */
function picksByOrder(call: WindowCall): boolean {
  const { frame, definition } = call;
  if (COUNTING.has(definition.name) && frame === null) return true;
  const peers =
    definition.kind === 'window' && !COUNTING.has(definition.name) && !VALUES.has(definition.name);
  return frame?.mode === 'rows' && !peers && frame.exclude !== 'group' && frame.exclude !== 'ties';
}
