import type { Catalog, FacetStore } from '../../catalog/catalog.js';
import { assertNever, InternalError } from '../../errors/errors.js';
import type { CommonTable, Expr, FromItem, Query, Select, SourceId } from '../../plan/plan.js';
import { mapQuery } from '../../plan/query-tree.js';
import {
  type CapHandling,
  EVIDENCE,
  type Hydration,
  type OperatedRows,
  type Retrieval,
  type RuntimeColumn,
  type RuntimeRelation,
  type Traversal,
} from '../../plan/runtime.js';
import { allQueries, exprsOf, leavesOf, someExpr } from '../../plan/walk.js';
import type { TypeName } from '../../types/types.js';
import type { BindContext } from '../context.js';
import { mostPerHop, type RuntimeDraft } from './runtime-draft.js';

/** Completes a draft with the columns that the statement uses. */
export function finishRelation(draft: RuntimeDraft, query: Query, ctx: BindContext): RuntimeRelation {
  const columns = usedColumns(draft, ctx);
  switch (draft.kind) {
    case 'retrieval': {
      const { offered: _, filters, keyFilters, operators, ...rest } = draft;
      const lists = {
        filters: Object.freeze([...filters]),
        keyFilters: Object.freeze(
          keyFilters.map((f) => Object.freeze({ ...f, query: withUsedColumns(f.query, ctx) })),
        ),
        operators: Object.freeze([...operators]),
      };
      return Object.freeze({ ...rest, ...lists, columns } satisfies Retrieval);
    }
    case 'traversal': {
      const { offered: _, ...rest } = draft;
      const plain = hasOneRowPerSource(query, draft.source, (select) => ctx.hasRuntimeOrder(select));
      const clipping = plain ? 'told' : 'refused';
      const perHop = draft.perHop ?? defaultPerHop(clipping, ctx.catalog);
      const start = draft.start === null ? null : withUsedColumns(draft.start, ctx);
      return Object.freeze({ ...rest, start, perHop, clipping, columns } satisfies Traversal);
    }
    case 'hydration': {
      const { offered: _, keys, ...rest } = draft;
      if (keys === null) throw new InternalError('content without keys was not refused');
      const isUsed = (f: FacetStore): boolean =>
        columns.some((c) => c.name === EVIDENCE || f.derived.some((d) => d.name === c.name));
      const facets = Object.freeze(draft.facets.filter(isUsed));
      const clipping = isOnlyOutput(query, draft.source, EVIDENCE) ? 'told' : 'refused';
      return Object.freeze({ ...rest, keys, facets, clipping, columns } satisfies Hydration);
    }
    case 'operated': {
      const { offered: _, rows, ...rest } = draft;
      if (rows === null) throw new InternalError('the rows of operators were not taken out of their SELECT');
      return Object.freeze({ ...rest, rows: withUsedColumns(rows, ctx), columns } satisfies OperatedRows);
    }
    default:
      return assertNever(draft);
  }
}

const DEFAULT_PER_HOP = 1_000;

/** Returns the default of `per_hop`: a moderate number, or the maximum if the query is refused when rows are capped. */
function defaultPerHop(clipping: CapHandling, catalog: Catalog): number {
  return clipping === 'refused' ? mostPerHop(catalog) : Math.min(DEFAULT_PER_HOP, mostPerHop(catalog));
}

function usedColumns(draft: RuntimeDraft, ctx: BindContext): readonly RuntimeColumn[] {
  const operators = draft.kind === 'retrieval' ? draft.operators : [];
  const types = new Map<string, TypeName>([
    ...draft.offered,
    ...operators.map((o) => [o.column, o.type] as const),
  ]);
  return Object.freeze(
    ctx.usedOf(draft.source).flatMap((name) => {
      const type = types.get(name);
      return type === undefined ? [] : [Object.freeze({ name, type })];
    }),
  );
}

function columnsOfDraft(source: number, ctx: BindContext) {
  const draft = ctx.drafts.find((d) => d.source === source);
  return draft === undefined ? [] : usedColumns(draft, ctx);
}

/** Fills in the columns of each scan. Call it after the whole statement has been bound. */
export function withUsedColumns(query: Query, ctx: BindContext): Query {
  return mapQuery(query, {
    item: (i) =>
      i.kind === 'entity'
        ? Object.freeze({ ...i, columns: Object.freeze(ctx.usedOf(i.id)) })
        : i.kind === 'runtime'
          ? Object.freeze({ ...i, columns: columnsOfDraft(i.id, ctx) })
          : i,
  });
}

/**
 * True if each result row corresponds to one row of FROM item `source`, independently of other rows: no aggregate,
 * DISTINCT, window, join, set operation or subquery expression lies between them, and LIMIT does not occur with the
 * caller's ORDER BY. If such a result is capped, it is correct but incomplete; any other must be refused.
 *
 * @param inOwnOrder true if the SELECT's rows are in the order of the runtime step because the caller gave none
 */
function hasOneRowPerSource(
  query: Query,
  source: SourceId,
  inOwnOrder: (select: Select) => boolean,
): boolean {
  const levels = levelsDownTo(query, source);
  if (levels === null) return false;
  const ordered = levels.some((s) => s.orderBy.length > 0 && !inOwnOrder(s));
  const limited = levels.some((s) => s.limit !== null || s.offset !== null);
  return levels.every(isRowByRow) && !(ordered && limited);
}

/**
 * Returns the SELECTs from `query` down to the SELECT that reads `source`, if each is the only FROM item of the
 * previous one; otherwise null.
 */
function levelsDownTo(query: Query, source: SourceId): readonly Select[] | null {
  const tables = new Map(tablesIn(query).map((t) => [t.id, t]));
  const references = allQueries(query).flatMap(itemsOf);
  const levels: Select[] = [];
  for (let at: Query | undefined = query; at !== undefined; ) {
    if (at.kind !== 'select') return null;
    levels.push(at);
    const items = leavesOf(at.from);
    // A traversal adds two FROM items: its keys and the target entity.
    if (items.some((i) => i.kind === 'runtime' && i.id === source)) return items.length === 2 ? levels : null;
    const [item, ...more] = items;
    if (item === undefined || more.length > 0) return null;
    if (item.kind === 'derived') at = item.query;
    else if (item.kind === 'cte') {
      const uses = references.filter((i) => i.kind === 'cte' && i.table === item.table);
      at = uses.length === 1 ? tables.get(item.table)?.query : undefined;
    } else return null;
  }
  return null;
}

function tablesIn(query: Query): readonly CommonTable[] {
  return allQueries(query).flatMap((q) => (q.kind === 'values' ? [] : q.with));
}

function itemsOf(query: Query): readonly FromItem[] {
  return query.kind === 'select' ? leavesOf(query.from) : [];
}

function isRowByRow({ grouped, distinct, distinctOn, outputs, orderBy }: Select): boolean {
  const shown = [
    ...outputs.map((o) => o.expr),
    ...orderBy.flatMap((k) => (typeof k.by === 'number' ? [] : [k.by])),
  ];
  return (
    !grouped &&
    !distinct &&
    distinctOn.length === 0 &&
    !shown.some((e) => someExpr(e, (x) => x.kind === 'window'))
  );
}

/**
 * True if column `name` of FROM item `source` is only used as an unchanged output, so that incomplete cells can be
 * marked in the result.
 */
function isOnlyOutput(query: Query, source: SourceId, name: string): boolean {
  const isIt = (e: Expr): boolean => e.kind === 'column' && e.source === source && e.name === name;
  for (const level of allQueries(query)) {
    const bare = level.kind === 'select' ? level.outputs.map((o) => o.expr).filter(isIt) : [];
    if (exprsOf(level).some((e) => !bare.includes(e) && someExpr(e, isIt))) return false;
    if (level.kind !== 'select' || bare.length === 0) continue;
    const places = level.outputs.flatMap((o, i) => (isIt(o.expr) ? [i + 1] : []));
    const sorted = level.orderBy.some((k) => typeof k.by === 'number' && places.includes(k.by));
    if (level.distinct || sorted) return false;
    if (level === query) continue;
    const readers = readersOf(level, query);
    if (readers === null) return false;
    if (!readers.every((id) => places.every((place) => isOnlyOutput(query, id, `c${place}`)))) return false;
  }
  return true;
}

/** Returns the FROM items that read `inner`; null if only a set operation or a subquery expression reads it. */
function readersOf(inner: Query, query: Query): readonly SourceId[] | null {
  const table = tablesIn(query).find((t) => t.query === inner);
  const readers = allQueries(query)
    .flatMap(itemsOf)
    .flatMap((i) =>
      (i.kind === 'derived' && i.query === inner) || (i.kind === 'cte' && i.table === table?.id)
        ? [i.id]
        : [],
    );
  return readers.length === 0 ? null : readers;
}
