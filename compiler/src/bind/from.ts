import type { Alias, FuncCall, Node, RangeFunction, RangeSubselect, RangeVar } from '@pgsql/types';
import type { Relation } from '../catalog.js';
import type { CommonTableRef, Derived, EntityScan } from '../plan.js';
import { nearest } from '../text.js';
import { constructOf, type Location, nameParts, placeOf, stringOf } from './ast.js';
import type { BoundFrom, BoundItem } from './bound-from.js';
import { joinCommas } from './commas.js';
import type { BindContext } from './context.js';
import { bindJoin, refuseTwice } from './join.js';
import { withDeniedContent, withEvidence } from './joint.js';
import { allowedTable, crossJoined, physicalColumnsFor } from './physical.js';
import { bindQuery } from './query.js';
import { bindRetrieve } from './retrieve.js';
import {
  type BoundColumn,
  type CommonTableEntry,
  columnsFor,
  innerScope,
  type Scope,
  type ScopeColumn,
  TWICE,
} from './scope.js';
import { bindTraverse } from './traverse.js';

/** @param where the conjuncts of WHERE, which may hold the keys of a join by commas */
export function bindFrom(
  nodes: readonly Node[],
  where: readonly Node[],
  ctx: BindContext,
  outer: Scope | null,
  tables: Scope['tables'],
): BoundFrom | null {
  const [first] = nodes;
  if (first === undefined) return null;
  const placed = nodes.map((node) => ({
    bound: bindItem(node, ctx, outer, tables),
    location: placeOf(node),
  }));
  const from = ctx.world === 'physical' ? crossJoined(placed) : joinCommas(placed, where, ctx);
  const inSubquery = outer !== null && outer.items.length > 0;
  const isBridge = from.item.kind === 'entity' && from.item.relation.kind === 'bridge';
  if (isBridge && !inSubquery && ctx.world === 'semantic') {
    const construct = `bridge \`${from.items[0]?.relation?.name}\` alone in FROM`;
    throw ctx.unsupported(construct, placeOf(first), 'join it to one of the entities that it links');
  }
  refuseTwice(from.items, ctx);
  return from;
}

export function bindItem(
  node: Node,
  ctx: BindContext,
  outer: Scope | null,
  tables: Scope['tables'],
): BoundItem {
  if ('RangeVar' in node) return bindRelation(node.RangeVar, ctx, tables);
  if ('JoinExpr' in node) return ctx.nested(() => bindJoin(node.JoinExpr, ctx, outer, tables));
  if ('RangeSubselect' in node) return bindDerived(node.RangeSubselect, ctx, tables);
  if ('RangeFunction' in node) return bindTableFunction(node.RangeFunction, ctx);
  if ('RangeTableSample' in node) {
    const at = ctx.wordNear('tablesample', 'before', node.RangeTableSample.location);
    throw ctx.unsupported('TABLESAMPLE', at, 'use ORDER BY and LIMIT');
  }
  throw ctx.unsupported(`${constructOf(node)} in FROM`, placeOf(node));
}

/** `RETRIEVE(…)` and `TRAVERSE(…)`; no other function stands in FROM. */
function bindTableFunction(node: RangeFunction, ctx: BindContext): BoundItem {
  const list = node.functions?.[0];
  const item = list !== undefined && 'List' in list ? list.List.items?.[0] : undefined;
  const call = item !== undefined && 'FuncCall' in item ? item.FuncCall : {};
  const name = nameParts(call.funcname).join('.');
  if (ctx.world === 'physical') {
    const construct = `\`${name === '' ? 'this function' : name}\` in the FROM of raw SQL`;
    throw ctx.unsupported(construct, call.location, 'name tables of the allowlist');
  }
  if (name === 'retrieve' || name === 'traverse') {
    refuseAround(node, call, ctx);
    const bindFunction = name === 'retrieve' ? bindRetrieve : bindTraverse;
    return bindFunction(call, node.alias?.aliasname, ctx);
  }
  const construct = `\`${name === '' ? 'this function' : name}\` in FROM`;
  throw ctx.unsupported(construct, call.location, 'table functions are RETRIEVE and TRAVERSE');
}

/** What may stand around a function in FROM, and inside its parentheses, but not around ours. */
function refuseAround(node: RangeFunction, call: FuncCall, ctx: BindContext): void {
  const list = node.functions?.[0];
  const columns = list !== undefined && 'List' in list ? (list.List.items ?? []).slice(1) : [];
  const defined = node.coldeflist !== undefined || columns.some((c) => Object.keys(c).length > 0);
  const around: readonly (readonly [boolean, string])[] = [
    [node.is_rowsfrom === true || node.functions?.length !== 1, 'ROWS FROM'],
    [node.lateral === true, 'LATERAL'],
    [node.ordinality === true, 'WITH ORDINALITY'],
    [node.alias?.colnames !== undefined, 'a list of column aliases'],
    [defined, 'a list of column definitions'],
    [call.agg_distinct === true, 'DISTINCT'],
    [call.agg_order !== undefined, 'ORDER BY among arguments'],
    [call.agg_filter !== undefined, 'FILTER'],
    [call.agg_within_group === true, 'WITHIN GROUP'],
    [call.agg_star === true, '`*` as an argument'],
    [call.over !== undefined, 'OVER'],
    [call.func_variadic === true, 'VARIADIC'],
  ];
  const construct = around.find(([is]) => is)?.[1];
  if (construct === undefined) return;
  const hint = 'RETRIEVE and TRAVERSE take named arguments, and an alias behind them';
  throw ctx.unsupported(`${construct} at a table function`, call.location, hint);
}

function bindRelation(node: RangeVar, ctx: BindContext, tables: Scope['tables']): BoundItem {
  if (node.inh !== true) {
    const at = ctx.wordNear('only', 'before', node.location);
    const hint = 'what has children is read with them; name it alone';
    throw ctx.unsupported('ONLY', at ?? node.location ?? 0, hint);
  }
  const name = node.relname ?? '';
  const common = node.schemaname === undefined ? tables.get(name) : undefined;
  if (common !== undefined) return bindCommon(common, node, ctx);
  const physical = ctx.world === 'physical';
  const relation = physical ? allowedTable(node, ctx) : visibleRelation(node, ctx);
  const access = ctx.access.relations.get(relation.name);
  if (access === undefined) throw unknownRelation(node, ctx);
  const id = ctx.nextSource();
  ctx.standsAt(id, node.location);
  const columns = physical ? physicalColumnsFor(relation, access) : columnsFor(relation, access);
  const alias = node.alias?.aliasname ?? (physical ? relation.table : relation.name);
  const item: EntityScan = Object.freeze({ kind: 'entity', id, relation, columns: [] });
  const plain = withoutAliases(columns, node.alias, node.location, ctx);
  const content = withEvidence(item, plain, ctx);
  const schema = physical ? relation.schema : 'entities';
  const named = {
    source: id,
    alias,
    ...(node.alias === undefined ? { schema } : {}),
    location: node.location,
    relation,
  };
  const shown = withDeniedContent(relation, content?.columns ?? plain, ctx);
  if (content === null) return { item, items: [{ ...named, columns: shown }] };
  return { item, items: [{ ...named, columns: shown, hydration: content.draft }] };
}

/** Column aliases rename by position, which would let a caller name a column by counting; they have no node. */
function withoutAliases(
  columns: ReadonlyMap<string, ScopeColumn>,
  alias: Alias | undefined,
  location: Location,
  ctx: BindContext,
) {
  if (alias?.colnames !== undefined) {
    throw ctx.unsupported(
      `a list of column aliases on ${ctx.world === 'physical' ? 'a table' : 'an entity'}`,
      location,
      'use AS in a derived table',
    );
  }
  return columns;
}

function visibleRelation(node: RangeVar, ctx: BindContext): Relation {
  const { catalogname, schemaname, relname } = node;
  const known = ctx.catalog.relations.get(relname ?? '');
  const here = (catalogname ?? 'osl') === 'osl' && (schemaname ?? 'entities') === 'entities';
  if (here) ctx.refuseDenied(known?.name, relname ?? '', node.location ?? 0);
  if (!here || known === undefined || !ctx.access.relations.has(known.name)) throw unknownRelation(node, ctx);
  if (known.kind === 'facet') {
    const hint = `FROM RETRIEVE(facet => '${known.name}', query => '…', top_k => 5)`;
    throw ctx.unsupported(`facet \`${known.name}\` as a table`, node.location ?? 0, hint);
  }
  return known;
}

function unknownRelation(node: RangeVar, ctx: BindContext) {
  const relation = [node.catalogname, node.schemaname, node.relname].filter((p) => p !== undefined).join('.');
  return ctx.error(
    'unknownRelation',
    { relation, near: nearest(node.relname ?? '', ctx.access.relations.keys()) },
    node.location ?? 0,
  );
}

function bindCommon(entry: CommonTableEntry, node: RangeVar, ctx: BindContext): BoundItem {
  const id = ctx.nextSource();
  const item: CommonTableRef = Object.freeze({ kind: 'cte', id, table: entry.table.id });
  const columns = renamedDerived(entry.columns, node.alias, node.location, ctx);
  return {
    item,
    items: [
      {
        source: id,
        alias: node.alias?.aliasname ?? node.relname ?? '',
        location: node.location,
        columns,
        relation: null,
      },
    ],
  };
}

function bindDerived(node: RangeSubselect, ctx: BindContext, tables: Scope['tables']): BoundItem {
  const subquery = node.subquery;
  if (node.lateral === true) {
    const at = ctx.wordNear('lateral', 'before', placeOf(subquery));
    throw ctx.unsupported('LATERAL', at, 'group in a derived table, then join it');
  }
  if (subquery === undefined || !('SelectStmt' in subquery)) {
    throw ctx.unsupported('this derived table', undefined);
  }
  // A derived table sees the common tables around it, and no FROM item.
  const { query, columns } = bindQuery(subquery.SelectStmt, ctx, innerScope(null, [], tables));
  const id = ctx.nextSource();
  const item: Derived = Object.freeze({ kind: 'derived', id, query });
  const alias = node.alias?.aliasname ?? `derived ${id}`;
  return {
    item,
    items: [
      {
        source: id,
        alias,
        location: placeOf(subquery),
        columns: renamedDerived(columns, node.alias, placeOf(subquery), ctx),
        relation: null,
      },
    ],
  };
}

/** Result columns by name. A name that occurs twice cannot be referred to; `*` still has both. */
export function toColumns(columns: readonly BoundColumn[]): ReadonlyMap<string, ScopeColumn> {
  const counts = new Map<string, number>();
  for (const c of columns) counts.set(c.name, (counts.get(c.name) ?? 0) + 1);
  return new Map(
    columns.map((c, i) => [
      counts.get(c.name) === 1 ? c.name : `${c.name}${TWICE}${i}`,
      { name: `c${i + 1}`, type: c.type, sealed: c.sealed, denied: false, starred: true },
    ]),
  );
}

/** The columns of a derived or common table, under the names that its alias lists. */
function renamedDerived(
  columns: readonly BoundColumn[],
  alias: Alias | undefined,
  location: Location,
  ctx: BindContext,
) {
  const names = (alias?.colnames ?? []).map(stringOf);
  if (names.length > columns.length) {
    const detail = `the alias lists ${names.length} columns of ${columns.length}`;
    throw ctx.mismatch(detail, location);
  }
  return toColumns(columns.map((c, i) => ({ ...c, name: names[i] ?? c.name })));
}
