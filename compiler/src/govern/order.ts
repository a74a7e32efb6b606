import { fingerprint } from '../emit/fingerprint.js';
import type { Expr, FromItem, Query, Select, SortKey } from '../plan.js';
import { columnsOf, leavesOf } from '../walk.js';

/**
 * Completes ORDER BY where LIMIT, OFFSET or DISTINCT ON picks some rows of many: ties are broken by key, so that
 * neither storage order nor rows that the caller may not see decide which rows come.
 *
 * @param keysOf names of the columns that tell the rows of a scan apart, for this caller
 */
export function breakTies(query: Query, keysOf: (item: FromItem) => readonly Expr[]): Query {
  if (query.kind === 'values') return query;
  if (query.kind === 'set_operation') {
    if (query.limit === null && query.offset === null) return query;
    return Object.freeze({ ...query, orderBy: completed(query.orderBy, ordinals(query)) });
  }
  if (query.limit === null && query.offset === null && query.distinctOn.length === 0) return query;
  const keys = tieBreakers(query, keysOf);
  return Object.freeze({ ...query, orderBy: completed(query.orderBy, withoutOrdered(keys, query)) });
}

function tieBreakers(query: Select, keysOf: (item: FromItem) => readonly Expr[]): readonly (Expr | number)[] {
  if (query.distinct) return ordinals(query);
  if (query.grouped) return query.groupBy.map((g) => ordinalOf(g, query) ?? g);
  return leavesOf(query.from)
    .flatMap(keysOf)
    .map((k) => ordinalOf(k, query) ?? k);
}

function ordinals(query: Query): readonly number[] {
  return columnsOf(query).map((_, i) => i + 1);
}

function ordinalOf(expr: Expr, query: Select): number | null {
  const wanted = fingerprint(expr);
  const index = query.outputs.findIndex((o) => fingerprint(o.expr) === wanted);
  return index < 0 ? null : index + 1;
}

function withoutOrdered(keys: readonly (Expr | number)[], query: Select): readonly (Expr | number)[] {
  const ordered = new Set(query.orderBy.map((k) => (typeof k.by === 'number' ? k.by : fingerprint(k.by))));
  return keys.filter((k) => !ordered.has(typeof k === 'number' ? k : fingerprint(k)));
}

function completed(orderBy: readonly SortKey[], more: readonly (Expr | number)[]): readonly SortKey[] {
  const known = new Set(orderBy.map((k) => k.by));
  const added = more
    .filter((by) => !known.has(by))
    .map((by) => Object.freeze({ by, descending: false, nullsFirst: false }));
  return Object.freeze([...orderBy, ...added]);
}
