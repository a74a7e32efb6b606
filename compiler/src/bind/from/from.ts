import type { FuncCall, Node, RangeFunction, RangeSubselect, RangeTableSample, RangeVar } from '@pgsql/types';
import type { RelationAccess } from '../../access/access.js';
import type { Relation } from '../../catalog/catalog.js';
import { InternalError } from '../../errors/errors.js';
import type {
  CommonTableRef,
  DerivedTable,
  EntityScan,
  Parameter,
  RecursionRef,
  TableSample,
} from '../../plan/plan.js';
import { identifier, quoteLiteral } from '../../text/sql-text.js';
import { nearest, nearestIdentifier } from '../../text/text.js';
import { constructOf, firstLocation, type Location, nameParts, required } from '../ast.js';
import type { BindContext } from '../context.js';
import { coerce } from '../expressions/coerce.js';
import { bindExpression } from '../expressions/expression.js';
import { isRowInSubquery } from '../expressions/row.js';
import { columnsOf } from '../manifest/computed.js';
import { withDeniedContent, withEvidence } from '../runtime/evidence.js';
import { bindRetrieve } from '../runtime/retrieve.js';
import { bindTraverse } from '../runtime/traverse.js';
import {
  type BoundFrom,
  type BoundItem,
  type CommonTableEntry,
  innerScope,
  plainEnvironment,
  type Scope,
  type ScopeColumn,
  type ScopeItem,
  visibleColumn,
} from '../scope.js';
import { bindQuery } from '../select/query.js';
import { joinCommas } from './comma-join.js';
import { bindJoin, refuseDuplicateAliases } from './join.js';
import {
  aroundCall,
  bindRowSource,
  type CallModifier,
  isRowSource,
  renamedDerived,
  renamedEntity,
} from './row-functions.js';

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

/**
 * Binds `RETRIEVE(…)`, `TRAVERSE(…)` and set-returning functions.
 *
 * @param scope the scope for arguments of set-returning functions
 */
function bindTableFunction(node: RangeFunction, ctx: BindContext, scope: Scope): BoundItem {
  const list = node.functions?.[0];
  const item = list !== undefined && 'List' in list ? list.List.items?.[0] : undefined;
  const call = item !== undefined && 'FuncCall' in item ? item.FuncCall : {};
  const name = nameParts(call.funcname).join('.');
  if (isRowSource(name)) return bindRowSource(name, node, call, ctx, scope);
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
  const hint = 'table functions are RETRIEVE, TRAVERSE, and those that make rows, such as generate_series';
  throw ctx.unsupported(construct, call.location, hint);
}

function refuseAround(node: RangeFunction, call: FuncCall, ctx: BindContext): void {
  const list = node.functions?.[0];
  const columns = list !== undefined && 'List' in list ? (list.List.items ?? []).slice(1) : [];
  const defined = node.coldeflist !== undefined || columns.some((c) => Object.keys(c).length > 0);
  const around: readonly CallModifier[] = [
    [node.is_rowsfrom === true || node.functions?.length !== 1, 'ROWS FROM'],
    [node.lateral === true, 'LATERAL'],
    [node.ordinality === true, 'WITH ORDINALITY'],
    [node.alias?.colnames !== undefined, 'a list of column aliases'],
    [defined, 'a list of column definitions'],
    ...aroundCall(call),
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
  return ctx.error(
    'unknownRelation',
    { relation, near: nearestIdentifier(node.relname ?? '', ctx.access.relations.keys()) },
    node.location ?? 0,
  );
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
  const at = ctx.wordNear('tablesample', 'before', node.location);
  const { item } = bound;
  const method = METHODS.get(nameParts(node.method).join('.'));
  if (item.kind !== 'entity')
    throw ctx.unsupported('TABLESAMPLE of what is no table', at, 'sample the entity itself');
  const [percent, ...more] = node.args ?? [];
  if (method === undefined || percent === undefined || more.length > 0)
    throw ctx.unsupported('this method of TABLESAMPLE', at, 'use BERNOULLI (percent) or SYSTEM (percent)');
  const sample: TableSample = Object.freeze({
    method,
    percent: given(percent, 'float4', at, ctx),
    seed: node.repeatable === undefined ? null : given(node.repeatable, 'float8', at, ctx),
  });
  return { ...bound, item: Object.freeze({ ...item, sample }) };
}

function given(node: Node, type: 'float4' | 'float8', at: Location, ctx: BindContext): Parameter {
  const env = plainEnvironment(ctx, innerScope(null, [], new Map()), 'TABLESAMPLE');
  const value = coerce(bindExpression(node, env), type, ctx);
  if (value.kind === 'parameter') return value;
  throw ctx.unsupported('a computed number in TABLESAMPLE', at, 'write the number, or a parameter');
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
  const near = nearestTable(node, visible);
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
 * Returns the columns of a raw SQL table by upstream name. No column is marked as sealed because raw SQL may join on
 * any column; masked values never match.
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
