import type { Node } from '@pgsql/types';
import { type Access, type RelationAccess, sameRows } from '../../access/access.js';
import {
  type Catalog,
  type ComputedColumn,
  columnOf,
  type Edge,
  type OwnLabel,
  type ReadColumn,
  type Relation,
} from '../../catalog/catalog.js';
import { columnRef } from '../../plan/nodes.js';
import type { EntityScan, Expr, FromItem, Operation } from '../../plan/plan.js';
import { identifier } from '../../text/sql-text.js';
import { nearestIdentifier } from '../../text/text.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import { infix } from '../expressions/operands.js';
import {
  asDeclared,
  type BindEnvironment,
  columnsFor,
  innerScope,
  type ParentItem,
  plainEnvironment,
  type ScopeColumn,
  type ScopeItem,
} from '../scope.js';
import { expressionNode, ofManifest } from './expression.js';

/**
 * Returns the columns of `relation` that this access includes, with its computed columns. A computed column is included
 * if all columns that it reads are visible and its parents can be reached. It is denied if a column that it reads is
 * denied, or if one of the computed column's labels is masked in some rows.
 */
export function columnsOf(
  relation: Relation,
  access: RelationAccess,
  ctx: Pick<BindContext, 'catalog' | 'access'>,
): ReadonlyMap<string, ScopeColumn> {
  const columns = columnsFor(relation, access);
  if (relation.computed === undefined) return columns;
  const all = new Map(columns);
  for (const computed of relation.computed) {
    const sight = visibilityOf(computed, relation, columns, ctx);
    if (sight === 'hidden') continue;
    const { name, type } = computed;
    const denied = sight === 'denied';
    all.set(name, Object.freeze({ name, type, sealed: false, denied, starred: !denied, computed }));
  }
  return all;
}

function visibilityOf(
  { reads, keys, labels }: ComputedColumn,
  { name }: Relation,
  own: ReadonlyMap<string, ScopeColumn>,
  { catalog, access }: Pick<BindContext, 'catalog' | 'access'>,
): 'usable' | 'denied' | 'hidden' {
  let denied = labels.some((own) => !isUnmasked(own, access));
  if (keys.some((key) => isNeverClear(key, catalog, access))) return 'hidden';
  for (const read of reads) {
    const relation = catalog.relations.get(read.relation);
    const whole = access.denied?.get(read.relation);
    const rights = access.relations.get(read.relation) ?? whole;
    if (relation === undefined || rights === undefined) return 'hidden';
    const column = (read.relation === name ? own : columnsFor(relation, rights)).get(read.column);
    if (column === undefined) return 'hidden';
    denied ||= column.denied || whole !== undefined;
  }
  return denied ? 'denied' : 'usable';
}

/** True if the label is unmasked in all rows that the caller sees. */
function isUnmasked({ relation, label }: OwnLabel, access: Access): boolean {
  const grants = access.relations.get(relation)?.grants ?? [];
  return sameRows(
    grants.filter((g) => g.unmask.has(label)),
    grants,
  );
}

/** True if the key is masked in every row, and not by a joinable hash, so that the parent cannot be reached. */
function isNeverClear(
  { relation: name, column: key }: ReadColumn,
  catalog: Catalog,
  access: Access,
): boolean {
  const relation = catalog.relations.get(name);
  const column = relation === undefined ? null : columnOf(relation, key);
  const rights = access.relations.get(name);
  if (column === null || rights === undefined || column.sensitivity === null) return false;
  const label = column.sensitivity;
  if (rights.grants.some((g) => g.columns.has(key) && g.unmask.has(label))) return false;
  return rights.masks.get(label) !== 'hash' || column.type !== 'text';
}

/** Expands a computed column of `item`. Errors have no position because the text belongs to the manifest. */
export function computedValue(
  computed: ComputedColumn,
  item: ScopeItem,
  ctx: BindContext,
  bind: (node: Node, env: BindEnvironment) => Expr,
): Expr {
  return ctx.withoutPositions(() => expandComputed(computed, item, [], ctx, bind));
}

function expandComputed(
  { name, expression, sensitivity }: ComputedColumn,
  item: ScopeItem,
  within: readonly string[],
  ctx: BindContext,
  bind: (node: Node, env: BindEnvironment) => Expr,
): Expr {
  const known = ctx.cachedComputed(item.source, name);
  if (known !== null) return known;
  const own = `${item.relation?.name}.${name}`;
  if (within.includes(own)) throw ctx.unsupported(`\`${own}\` as a part of itself`, undefined);
  if (sensitivity !== null) ctx.recordLabel({ relation: item.relation?.name ?? '', label: sensitivity });
  const env: BindEnvironment = {
    ...plainEnvironment(ctx, innerScope(null, [], new Map()), 'a computed column'),
    withinMetric: true,
    nameOf: (parts, at) => {
      const { column, of } = named(parts, item, ctx, at);
      if (column.computed !== undefined)
        return expandComputed(column.computed, of, [...within, own], ctx, bind);
      ctx.use(of.source, column.name);
      return columnRef(of.source, column.name, column.type);
    },
  };
  const value = ofManifest(
    ctx.nested(() => bind(expressionNode(expression), env)),
    ctx,
  );
  ctx.cacheComputed(item.source, name, value);
  return value;
}

/** Resolves `column` or `parent.column`. Each parent is named by its entity or by the relationship that leads to it. */
function named(
  parts: readonly string[],
  item: ScopeItem,
  ctx: BindContext,
  at: Location,
): { readonly column: ScopeColumn; readonly of: ScopeItem } {
  let of = item;
  for (const link of parts.slice(0, -1)) of = parentOf(of, link, ctx, at);
  const name = parts.at(-1) ?? '';
  const column = asDeclared(of).columns.get(name);
  if (column === undefined || column.source !== undefined)
    throw ctx.error('unknownColumn', { column: parts.join('.'), near: null }, at);
  if (column.denied) throw ctx.error('denied', { object: `${of.relation?.name}.${name}` }, at);
  return { column, of };
}

/**
 * Resolves `parent.column` in the text of a metric, across any number of parents. The metric's own entity may also be
 * named.
 *
 * @throws QueryError E0512 if the caller may not see the column, or if no row has a usable key to the parent; E2101 if
 * the column is denied
 */
export function parentColumn(
  parts: readonly string[],
  item: ScopeItem,
  ctx: BindContext,
  bind: (node: Node, env: BindEnvironment) => Expr,
): Expr {
  const [first = ''] = parts;
  const own = parts.length > 1 && first === item.relation?.name && !isLink(first, item, ctx);
  const { column, of } = named(own ? parts.slice(1) : parts, item, ctx, undefined);
  for (const { from, to } of keysOnWay(item, of))
    if (isNeverClear(from, ctx.catalog, ctx.access) || isNeverClear(to, ctx.catalog, ctx.access))
      throw ctx.error('unknownColumn', { column: parts.join('.'), near: null }, undefined);
  if (column.computed !== undefined) return computedValue(column.computed, of, ctx, bind);
  ctx.use(of.source, column.name);
  return columnRef(of.source, column.name, column.type);
}

function isLink(name: string, { relation }: ScopeItem, { catalog }: BindContext): boolean {
  return relation !== null && linksFrom(relation.name, catalog).some((e) => e.name === name);
}

function keysOnWay(
  item: ScopeItem,
  target: ScopeItem,
): readonly { readonly from: ReadColumn; readonly to: ReadColumn }[] {
  for (const { item: parent, on } of item.parents ?? []) {
    const beyond = parent === target ? [] : keysOnWay(parent, target);
    if (parent !== target && beyond.length === 0) continue;
    const own = on.flatMap(({ left, right }) => {
      if (left?.kind !== 'column' || right.kind !== 'column') return [];
      const from = { relation: item.relation?.name ?? '', column: left.name };
      return [{ from, to: { relation: parent.relation?.name ?? '', column: right.name } }];
    });
    return [...own, ...beyond];
  }
  return [];
}

function parentOf(item: ScopeItem, link: string, ctx: BindContext, at: Location): ScopeItem {
  const { relation, parents } = item;
  const edge = relation === null ? null : edgeNamed(link, relation, ctx, at);
  if (edge === null) {
    const links = relation === null ? [] : linksFrom(relation.name, ctx.catalog);
    const near = nearestIdentifier(
      link,
      links.flatMap((e) => (ctx.access.relations.has(e.to) ? [e.name, e.to] : [])),
    );
    throw ctx.error('unknownRelation', { relation: link, near }, at);
  }
  if (parents === undefined) throw ctx.unsupported(`a column of \`${edge.to}\` here`, at);
  const known = parents.find((p) => p.edge === edge.name);
  if (known !== undefined) return known.item;
  const parent = parentAt(item, edge, ctx);
  parents.push(parent);
  return parent.item;
}

function edgeNamed(link: string, relation: Relation, ctx: BindContext, at: Location): Edge | null {
  const edges = linksFrom(relation.name, ctx.catalog);
  const own = edges.find((e) => e.name === link);
  if (own !== undefined) return own;
  const [edge = null, ...more] = edges.filter((e) => e.to === link);
  if (more.length === 0) return edge;
  const ways = [edge, ...more].map((e) => `\`${identifier(e?.name ?? '')}\``).join(', ');
  const hint = `name the relationship: ${ways}`;
  throw ctx.unresolvable(`several relationships lead to \`${link}\``, at, hint);
}

function linksFrom(relation: string, { edges }: Catalog): readonly Edge[] {
  return edges.filter((e) => e.from === relation && e.bridge === null);
}

/** Creates a FROM item for an entity. @throws QueryError E0512 if the caller may not see the entity */
export function scanEntity(name: string, ctx: BindContext): { scan: EntityScan; item: ScopeItem } {
  const relation = ctx.catalog.relations.get(name);
  const access = ctx.access.relations.get(name);
  if (relation === undefined || access === undefined)
    throw ctx.error('unknownRelation', { relation: name, near: null }, undefined);
  const source = ctx.nextSource();
  const columns = columnsOf(relation, access, ctx);
  return {
    scan: Object.freeze({ kind: 'entity', id: source, relation, columns: [] }),
    item: { source, alias: name, columns, relation, parents: [] },
  };
}

/**
 * Creates a scan of the parent under the parent's own grants. A parent row that the caller may not see yields NULLs.
 */
function parentAt(item: ScopeItem, edge: Edge, ctx: BindContext): ParentItem {
  const { scan, item: parent } = scanEntity(edge.to, ctx);
  const on = edge.fromColumns.map((from, i): Operation => {
    const sides = [keyOf(item, from, ctx), keyOf(parent, edge.toColumns[i] ?? '', ctx)] as const;
    const equality = infix('=', ...sides, undefined, ctx);
    if (equality.kind === 'operation' && equality.left?.kind === 'column' && equality.right.kind === 'column')
      return equality;
    throw ctx.unsupported(`keys of types ${sides[0].type} and ${sides[1].type}`, undefined);
  });
  return Object.freeze({ edge: edge.name, item: parent, scan, on: Object.freeze(on) });
}

/** @throws QueryError E0512 if the caller may not see the key, E2101 if a rule denies it */
function keyOf(item: ScopeItem, name: string, ctx: BindContext): Expr {
  const { column } = named([name], item, ctx, undefined);
  ctx.use(item.source, name);
  return columnRef(item.source, name, column.type);
}

/**
 * Joins the parents needed by computed columns to `from`. Each row has at most one parent, so no row is repeated.
 * Parents are joined next to the scan they belong to, so that ON clauses can use them.
 */
export function joinParents(from: FromItem | null, items: readonly ScopeItem[]): FromItem | null {
  const bySource = new Map(
    items.flatMap(({ source, parents = [] }) => (parents.length === 0 ? [] : [[source, parents] as const])),
  );
  return from === null || bySource.size === 0 ? from : placed(from, bySource);
}

function placed(item: FromItem, bySource: ReadonlyMap<number, readonly ParentItem[]>): FromItem {
  if (item.kind === 'join')
    return Object.freeze({ ...item, left: placed(item.left, bySource), right: placed(item.right, bySource) });
  return item.kind === 'entity' ? beside(item, bySource.get(item.id) ?? []) : item;
}

function beside(item: FromItem, parents: readonly ParentItem[]): FromItem {
  return parents.reduce((left: FromItem, { scan, on, item: parent }): FromItem => {
    const join: FromItem = Object.freeze({
      kind: 'join',
      sealed: true,
      made: true,
      type: 'left',
      left,
      right: scan,
      on,
    });
    return beside(join, parent.parents ?? []);
  }, item);
}
