import type { Node, RangeSubselect, RangeTableSample, RangeVar } from '@pgsql/types';
import type { RelationAccess } from '../../access/access.js';
import type { Relation } from '../../catalog/catalog.js';
import { InternalError, type QueryError } from '../../errors/errors.js';
import type {
  CommonTableRef,
  DerivedTable,
  EntityScan,
  Operation,
  Parameter,
  RecursionRef,
  TableSample,
} from '../../plan/plan.js';
import { leavesOf } from '../../plan/walk.js';
import { identifier, quoteLiteral } from '../../text/sql-text.js';
import { nearest, nearestIdentifier } from '../../text/text.js';
import { constructOf, firstLocation, nameParts, required, stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { bindExpression } from '../expressions/expression.js';
import { coerce } from '../expressions/operands.js';
import { isRowInSubquery } from '../expressions/row.js';
import { columnsOf } from '../manifest/computed.js';
import { withDeniedContent, withEvidence } from '../runtime/evidence.js';
import {
  type BoundFrom,
  type BoundItem,
  type CommonTableEntry,
  innerScope,
  lookUp,
  plainEnvironment,
  referenceOf,
  resolveColumn,
  type Scope,
  type ScopeColumn,
  type ScopeItem,
  visibleColumn,
} from '../scope.js';
import { bindQuery } from '../select/query.js';
import { bindJoin, isGenerated, joined, plainEquality, refuseDuplicateAliases } from './join.js';
import { bindTableFunction, renamedDerived, renamedEntity } from './row-functions.js';

/** @param where the conjuncts of WHERE, which may include conditions of comma joins */
export function bindFrom(
  nodes: readonly Node[],
  where: readonly Node[],
  ctx: BindContext,
  outer: Scope | null,
  tables: Scope['tables'],
): BoundFrom | null {
  const [first] = nodes;
  if (first === undefined) return null;
  const before: ScopeItem[] = [];
  const placed = nodes.map((node) => {
    const bound = bindItem(node, ctx, outer, tables, before);
    before.push(...bound.items);
    return { bound, node };
  });
  const from = joinCommas(placed, where, ctx);
  const isBridge = from.item.kind === 'entity' && from.item.relation.kind === 'bridge';
  if (isBridge && !isWithin(outer) && ctx.world === 'semantic') {
    const construct = `bridge \`${from.items[0]?.relation?.name}\` alone in FROM`;
    throw ctx.unsupported(construct, firstLocation(first), 'join it to one of the entities that it links');
  }
  refuseDuplicateAliases(from.items, ctx);
  return from;
}

function isWithin(outer: Scope | null): boolean {
  return outer !== null && (outer.items.length > 0 || isWithin(outer.parent));
}

/** @param before the FROM items to the left, whose columns function arguments may use */
export function bindItem(
  node: Node,
  ctx: BindContext,
  outer: Scope | null,
  tables: Scope['tables'],
  before: readonly ScopeItem[],
): BoundItem {
  if ('RangeVar' in node) return bindRelation(node.RangeVar, ctx, tables);
  if ('JoinExpr' in node) return ctx.nested(() => bindJoin(node.JoinExpr, ctx, outer, tables, before));
  if ('RangeSubselect' in node) return bindDerived(node.RangeSubselect, ctx, outer, tables, before);
  if ('RangeFunction' in node)
    return bindTableFunction(node.RangeFunction, ctx, { parent: outer, items: before, tables });
  if ('RangeTableSample' in node) {
    const { relation } = node.RangeTableSample;
    return sampled(node.RangeTableSample, bindItem(required(relation), ctx, outer, tables, before), ctx);
  }
  throw ctx.unsupported(`${constructOf(node)} in FROM`, firstLocation(node));
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
  ctx.recordPosition(id, node.location);
  ctx.enumColumns.ofRelation(id, relation);
  const columns = physical ? physicalColumnsFor(relation, access) : columnsOf(relation, access, ctx);
  const alias = node.alias?.aliasname ?? (physical ? relation.table : relation.name);
  const item: EntityScan = Object.freeze({ kind: 'entity', id, relation, columns: [] });
  const content = withEvidence(item, columns, ctx);
  const schema = physical ? relation.schema : 'entities';
  const named = {
    source: id,
    alias,
    ...(node.alias === undefined ? { schema } : {}),
    location: node.location,
    relation,
    parents: [],
  };
  const shown = withDeniedContent(relation, content?.columns ?? columns, ctx);
  const hydration = content === null ? {} : { hydration: content.draft };
  const aliased = renamedEntity(shown, node.alias, node.location, ctx);
  return { item, items: [{ ...named, ...aliased, ...hydration }], named: true, content: false };
}

function visibleRelation(node: RangeVar, ctx: BindContext): Relation {
  const { catalogname, schemaname, relname } = node;
  const known = ctx.catalog.relations.get(relname ?? '');
  const here = (catalogname ?? 'osl') === 'osl' && (schemaname ?? 'entities') === 'entities';
  if (here) ctx.refuseDenied(known?.name, relname ?? '', node.location ?? 0);
  if (!here || known === undefined || !ctx.access.relations.has(known.name)) throw unknownRelation(node, ctx);
  if (known.kind === 'facet') {
    const hint = `FROM RETRIEVE(facet => ${quoteLiteral(known.name)}, query => '…', top_k => 5)`;
    throw ctx.unsupported(`facet \`${known.name}\` as a table`, node.location ?? 0, hint);
  }
  return known;
}

function unknownRelation(node: RangeVar, ctx: BindContext) {
  const relation = [node.catalogname, node.schemaname, node.relname].filter((p) => p !== undefined).join('.');
  const near = metricsOf(node, ctx) ?? nearestIdentifier(node.relname ?? '', ctx.access.relations.keys());
  return ctx.error('unknownRelation', { relation, near }, node.location ?? 0);
}

/** Text that queries the metrics which the Postgres catalog lists as the named view; null for any other name. */
function metricsOf({ schemaname, relname = '' }: RangeVar, { access }: BindContext): string | null {
  const entity = relname.replace(/_metrics$/, '');
  if (schemaname !== 'metrics' || entity === relname || !access.relations.has(entity)) return null;
  return `measure(…) from ${identifier(entity)}`;
}

function commonItem({ table, columns, stepOf }: CommonTableEntry, id: number): CommonTableRef | RecursionRef {
  if (stepOf !== undefined) {
    const types = Object.freeze(columns.map((c) => c.type));
    return Object.freeze({ kind: 'recursion', id, table: stepOf, columns: types });
  }
  const plain = { kind: 'cte', id, table: table.id } as const;
  return Object.freeze(table.recursive === true ? { ...plain, recursive: columns.length } : plain);
}

function bindCommon(entry: CommonTableEntry, node: RangeVar, ctx: BindContext): BoundItem {
  const id = ctx.nextSource();
  if (entry.content) ctx.countContentRead();
  ctx.enumColumns.ofQuery(id, entry.table.query);
  const item = commonItem(entry, id);
  const columns = renamedDerived(entry.columns, node.alias, node.location, ctx);
  return {
    item,
    named: false,
    content: entry.content,
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

function bindDerived(
  node: RangeSubselect,
  ctx: BindContext,
  outer: Scope | null,
  tables: Scope['tables'],
  left: readonly ScopeItem[],
): BoundItem {
  const subquery = node.subquery;
  const lateral = node.lateral === true;
  if (subquery === undefined || !('SelectStmt' in subquery)) {
    throw ctx.unsupported('this derived table', undefined);
  }
  if (!isRowInSubquery(node)) ctx.requireFeature('derived_tables', firstLocation(subquery));
  // A derived table sees common tables and outer queries, and preceding FROM items only if it is LATERAL.
  const beyond = outer === null ? innerScope(null, [], tables) : { ...outer, tables };
  const around = lateral ? innerScope(outer, left, tables) : beyond;
  const before = ctx.contentRead;
  const { query, columns } = bindQuery(subquery.SelectStmt, ctx, around);
  if (isRowInSubquery(node) && columns.length > (node.alias?.colnames?.length ?? 0))
    throw ctx.mismatch('the subquery has more columns than the row', firstLocation(subquery));
  const id = ctx.nextSource();
  ctx.enumColumns.ofQuery(id, query);
  const content = ctx.contentRead > before;
  const item: DerivedTable = Object.freeze({ kind: 'derived', id, query, ...(lateral ? { lateral } : {}) });
  const alias = node.alias?.aliasname ?? `derived ${id}`;
  return {
    item,
    named: false,
    content,
    items: [
      {
        source: id,
        alias,
        location: firstLocation(subquery),
        columns: renamedDerived(columns, node.alias, firstLocation(subquery), ctx),
        relation: null,
      },
    ],
  };
}

const METHODS: ReadonlyMap<string, TableSample['method']> = new Map([
  ['bernoulli', 'bernoulli'],
  ['system', 'system'],
]);

/** Binds `item TABLESAMPLE method (percent) [REPEATABLE (seed)]`. Policy later decides whether it is allowed. */
function sampled(node: RangeTableSample, bound: BoundItem, ctx: BindContext): BoundItem {
  const { item } = bound;
  const unsupported = (construct: string, hint: string): QueryError =>
    ctx.unsupported(construct, ctx.wordNear('tablesample', 'before', node.location), hint);
  const method = METHODS.get(nameParts(node.method).join('.'));
  if (item.kind !== 'entity')
    throw unsupported('TABLESAMPLE of what is not a table', 'sample the entity itself');
  const [percent, ...more] = node.args ?? [];
  if (method === undefined || percent === undefined || more.length > 0)
    throw unsupported('this method of TABLESAMPLE', 'use BERNOULLI (percent) or SYSTEM (percent)');
  const sample: TableSample = Object.freeze({
    method,
    percent: given(percent, 'float4', unsupported, ctx),
    seed: node.repeatable === undefined ? null : given(node.repeatable, 'float8', unsupported, ctx),
  });
  return { ...bound, item: Object.freeze({ ...item, sample }) };
}

function given(
  node: Node,
  type: 'float4' | 'float8',
  unsupported: (construct: string, hint: string) => QueryError,
  ctx: BindContext,
): Parameter {
  const env = plainEnvironment(ctx, innerScope(null, [], new Map()), 'TABLESAMPLE');
  const value = coerce(bindExpression(node, env), type, ctx);
  if (value.kind === 'parameter') return value;
  throw unsupported('a computed number in TABLESAMPLE', 'write the number, or a parameter');
}

const DEFAULT_SCHEMA = 'public';

/**
 * Finds the entity that governs a table of raw SQL. All other tables produce the same error, whether they are
 * disallowed, undeclared, hidden or system tables.
 */
function allowedTable(node: RangeVar, ctx: BindContext): Relation {
  const tables = ctx.catalog.rawTables ?? new Map<string, Relation>();
  const key = `${node.schemaname ?? DEFAULT_SCHEMA}.${node.relname ?? ''}`;
  const governing = tables.get(key);
  // Authoring routes qualify tables with the connector's name as the database.
  const database = node.catalogname ?? 'osl';
  const relation = database === 'osl' || database === governing?.connector ? governing : undefined;
  if (relation !== undefined && ctx.access.relations.has(relation.name)) return relation;
  const table = [node.catalogname, node.schemaname, node.relname].filter((p) => p !== undefined).join('.');
  ctx.refuseDenied(relation?.name, key, node.location ?? 0);
  const visible = [...tables.values()].filter((r) => ctx.access.relations.has(r.name));
  const near = metricsOf(node, ctx) ?? nearestTable(node, visible);
  throw ctx.error('outsideAllowlist', { table, near }, node.location ?? 0);
}

/** Suggests a table with the same name in another schema, or with a similar name in the same schema. */
function nearestTable({ schemaname, relname = '' }: RangeVar, visible: readonly Relation[]): string | null {
  const elsewhere = visible.find((r) => r.table === relname);
  if (elsewhere !== undefined) return nameOfTable(elsewhere.schema, relname);
  // Unquoted names arrive in lower case, but declared names may contain upper case.
  const schema = (schemaname ?? DEFAULT_SCHEMA).toLowerCase();
  const beside = visible.filter((r) => r.schema.toLowerCase() === schema);
  const near = nearest(
    relname,
    beside.map((r) => r.table),
  );
  const found = beside.find((r) => r.table === near);
  return found === undefined ? null : nameOfTable(found.schema, found.table);
}

function nameOfTable(schema: string, table: string): string {
  return `${identifier(schema)}.${identifier(table)}`;
}

const visibleColumns = new WeakMap<
  RelationAccess,
  { relation: Relation; columns: ReadonlyMap<string, ScopeColumn> }
>();

/**
 * Returns the columns of a raw SQL table by their names in the database. None is marked as sealed (allowed as a join
 * key) because raw SQL may join on any column; masked values never match.
 */
function physicalColumnsFor(relation: Relation, access: RelationAccess): ReadonlyMap<string, ScopeColumn> {
  const known = visibleColumns.get(access);
  if (known?.relation === relation) return known.columns;
  const columns = new Map<string, ScopeColumn>();
  for (const { name, physical } of relation.columns) {
    const column = visibleColumn(relation, name, access);
    if (column === null) continue;
    if (columns.has(physical)) throw new InternalError(`${relation.name} exposes ${physical} twice`);
    columns.set(physical, { ...column, sealed: false });
  }
  visibleColumns.set(access, { relation, columns });
  return columns;
}

interface CommaItem {
  readonly bound: BoundItem;
  readonly node: Node;
}

interface CommaEquality {
  readonly node: Node;
  readonly order: number;
  readonly equality: Operation;
  readonly sources: readonly number[];
}

/**
 * Joins comma-separated FROM items. WHERE conjuncts that equate sealed keys become join conditions; all others remain
 * filters.
 */
function joinCommas(placed: readonly CommaItem[], where: readonly Node[], ctx: BindContext): BoundFrom {
  const made = placed.some(isLateral) ? [] : placed.filter((p) => isGenerated(p.bound.item));
  if (made.length === 0 || made.length === placed.length) return joinOnKeys(placed, where, ctx);
  // Set-returning functions are joined last.
  const others = joinOnKeys(
    placed.filter((p) => !made.includes(p)),
    where,
    ctx,
  );
  const whole = made.reduce<BoundItem>((all, p) => joined(all, p.bound, 'inner', []), others);
  return { ...others, item: whole.item, items: placed.flatMap((p) => p.bound.items) };
}

/** True if the item may refer to columns of preceding items, in which case the order must not change. */
function isLateral({ bound }: CommaItem): boolean {
  return leavesOf(bound.item).some((l) => l.kind === 'derived' && l.lateral === true);
}

function joinOnKeys(placed: readonly CommaItem[], where: readonly Node[], ctx: BindContext): BoundFrom {
  const items = placed.flatMap((p) => p.bound.items);
  const using = placed.flatMap((p) => p.bound.using ?? []);
  refuseDuplicateAliases(items, ctx);
  const [first, ...rest] = placed;
  if (first === undefined) throw ctx.syntax('FROM is empty', undefined);
  const { named, content } = first.bound;
  if (rest.length === 0) return { item: first.bound.item, items, using, keys: NO_KEYS, named, content };
  const keys = new Set<Node>();
  let whole = first.bound;
  const links = ctx.world === 'physical' ? [] : linksIn(where, items, ctx);
  const near = neighbours(placed, links);
  const joinedSoFar = new Set<number>([0]);
  const reachable = new Set(near.get(0)?.keys());
  const waiting = rest.map((p, i) => ({ p, at: i + 1 }));
  const inOrder = placed.some(isLateral);
  while (waiting.length > 0) {
    const before = whole;
    const eligible = inOrder ? waiting.slice(0, 1) : waiting;
    const linked = eligible.findIndex(({ at }) => reachable.has(at));
    // Otherwise prefer items without content (passages, traversals, evidence), so that content is joined after items
    // linked to it.
    const free = before.content ? -1 : eligible.findIndex(({ p }) => !p.bound.content);
    const [next] = waiting.splice(Math.max(linked >= 0 ? linked : free, 0), 1);
    if (next === undefined) break;
    const used = [...(near.get(next.at) ?? [])].flatMap(([at, found]) => (joinedSoFar.has(at) ? found : []));
    used.sort((a, b) => a.order - b.order);
    joinedSoFar.add(next.at);
    for (const at of near.get(next.at)?.keys() ?? []) reachable.add(at);
    for (const { node } of used) keys.add(node);
    whole = joined(
      before,
      next.p.bound,
      'inner',
      used.map((l) => l.equality),
    );
  }
  return { ...whole, items, using, keys };
}

const NO_KEYS: ReadonlySet<Node> = new Set();

function linksIn(
  where: readonly Node[],
  items: readonly ScopeItem[],
  ctx: BindContext,
): readonly CommaEquality[] {
  return where.flatMap((node, order) => {
    const equality = sealedEquality(node, items, ctx);
    return equality === null ? [] : [{ node, order, ...equality }];
  });
}

/** Parses `node` as an equality of two sealed columns of `items`; null for anything else. */
function sealedEquality(node: Node, items: readonly ScopeItem[], ctx: BindContext) {
  const expr = 'A_Expr' in node ? node.A_Expr : null;
  if (expr?.kind !== 'AEXPR_OP' || nameParts(expr.name).join('.') !== '=') return null;
  const [a, b] = [expr.lexpr, expr.rexpr].map((side) => sealedHere(side, items, ctx));
  if (a === undefined || a === null || b === undefined || b === null) return null;
  const equality = plainEquality(a, b, firstLocation(node), ctx);
  return equality === null ? null : { equality, sources: [a.source, b.source] };
}

/** Resolves `side` to a sealed column of `items`; null for anything else, including outer columns. */
function sealedHere(side: Node | undefined, items: readonly ScopeItem[], ctx: BindContext) {
  if (side === undefined || !('ColumnRef' in side)) return null;
  const fields = side.ColumnRef.fields ?? [];
  const parts = fields.map(stringOf);
  const reference = fields.some((f) => 'A_Star' in f) ? null : referenceOf(parts, ctx.world);
  const scope = innerScope(null, items, new Map());
  const { location } = side.ColumnRef;
  if (reference === null || lookUp(scope, reference, ctx, location)?.column.sealed !== true) return null;
  return resolveColumn(scope, parts, ctx, location).ref;
}

function neighbours(placed: readonly CommaItem[], links: readonly CommaEquality[]) {
  const placeOfSource = new Map(
    placed.flatMap((p, i) => p.bound.items.map((item) => [item.source, i] as const)),
  );
  const near = new Map<number, Map<number, CommaEquality[]>>();
  const note = (from: number, to: number, link: CommaEquality): void => {
    const others = near.get(from) ?? new Map<number, CommaEquality[]>();
    near.set(from, others);
    others.set(to, [...(others.get(to) ?? []), link]);
  };
  for (const link of links) {
    const [a, b] = link.sources.map((source) => placeOfSource.get(source));
    if (a === undefined || b === undefined || a === b) continue;
    note(a, b, link);
    note(b, a, link);
  }
  return near;
}
