import type { Alias, JoinExpr, Node, RangeFunction, RangeSubselect, RangeVar } from '@pgsql/types';
import type { Relation } from '../catalog.js';
import type { CommonTableRef, Derived, EntityScan, FromItem, Join, Operation } from '../plan.js';
import { nearest } from '../text.js';
import { infix } from './a-expr.js';
import { nameParts, stringOf } from './ast.js';
import type { BindContext, Location } from './context.js';
import type { Environment } from './environment.js';
import { withEvidence } from './joint.js';
import { type BoundColumn, bindQuery } from './query.js';
import { bindRetrieve } from './retrieve.js';
import {
  type CommonTableEntry,
  columnsFor,
  innerScope,
  type Scope,
  type ScopeColumn,
  type ScopeItem,
  TWICE,
} from './scope.js';
import { sealedColumn, sealedHint } from './subquery.js';
import { bindTraverse } from './traverse.js';

/** A FROM clause: its tree, and its items as names see them, left to right. */
export interface BoundFrom {
  readonly item: FromItem;
  readonly items: readonly ScopeItem[];
}

export function bindFrom(
  nodes: readonly Node[],
  ctx: BindContext,
  outer: Scope | null,
  tables: Scope['tables'],
): BoundFrom | null {
  const [first, second] = nodes;
  if (first === undefined) return null;
  if (second !== undefined) {
    throw ctx.error(
      'unsealedJoin',
      { detail: 'a comma in FROM joins on no key', hint: 'write JOIN … ON with an equality of sealed keys' },
      locationOfItem(second),
    );
  }
  const from = bindItem(first, ctx, outer, tables);
  const inSubquery = outer !== null && outer.items.length > 0;
  if (from.item.kind === 'entity' && from.item.relation.kind === 'bridge' && !inSubquery) {
    const construct = `bridge \`${from.item.relation.name}\` alone in FROM`;
    throw ctx.error(
      'unsupported',
      { construct, hint: 'join it to one of the entities that it links' },
      locationOfItem(first),
    );
  }
  const seen = new Set<string>();
  for (const { alias } of from.items) {
    if (seen.has(alias)) throw ctx.error('duplicateAlias', { alias }, locationOfItem(first));
    seen.add(alias);
  }
  return from;
}

function locationOfItem(node: Node): Location {
  if ('RangeVar' in node) return node.RangeVar.location ?? 0;
  return undefined;
}

function bindItem(node: Node, ctx: BindContext, outer: Scope | null, tables: Scope['tables']): BoundFrom {
  if ('RangeVar' in node) return bindRelation(node.RangeVar, ctx, tables);
  if ('JoinExpr' in node) return ctx.nested(() => bindJoin(node.JoinExpr, ctx, outer, tables));
  if ('RangeSubselect' in node) return bindDerived(node.RangeSubselect, ctx, tables);
  if ('RangeFunction' in node) return bindTableFunction(node.RangeFunction, ctx);
  if ('RangeTableSample' in node) {
    throw ctx.error('unsupported', { construct: 'TABLESAMPLE', hint: null }, node.RangeTableSample.location);
  }
  throw ctx.error('unsupported', { construct: 'this FROM item', hint: null }, undefined);
}

/** `RETRIEVE(…)` and `TRAVERSE(…)`; no other function stands in FROM. */
function bindTableFunction(node: RangeFunction, ctx: BindContext): BoundFrom {
  const list = node.functions?.[0];
  const item = list !== undefined && 'List' in list ? list.List.items?.[0] : undefined;
  const call = item !== undefined && 'FuncCall' in item ? item.FuncCall : {};
  const name = nameParts(call.funcname).join('.');
  const plain =
    node.functions?.length === 1 &&
    node.lateral !== true &&
    node.ordinality !== true &&
    node.alias?.colnames === undefined;
  if (plain && name === 'retrieve') return bindRetrieve(call, node.alias?.aliasname, ctx);
  if (plain && name === 'traverse') return bindTraverse(call, node.alias?.aliasname, ctx);
  const construct = `\`${name === '' ? 'this function' : name}\` in FROM`;
  throw ctx.error(
    'unsupported',
    { construct, hint: 'table functions are RETRIEVE and TRAVERSE' },
    call.location,
  );
}

function bindRelation(node: RangeVar, ctx: BindContext, tables: Scope['tables']): BoundFrom {
  const name = node.relname ?? '';
  const common = node.schemaname === undefined ? tables.get(name) : undefined;
  if (common !== undefined) return bindCommon(common, node, ctx);
  const relation = visibleRelation(node, ctx);
  const access = ctx.access.relations.get(relation.name);
  if (access === undefined) throw unknownRelation(node, ctx);
  const id = ctx.nextSource();
  const columns = columnsFor(relation, access);
  const alias = node.alias?.aliasname ?? relation.name;
  const item: EntityScan = { kind: 'entity', id, relation, columns: [] };
  const plain = renamed(columns, node.alias, ctx);
  const content = withEvidence(item, plain, ctx);
  if (content === null) return { item, items: [{ source: id, alias, columns: plain, relation }] };
  return {
    item,
    items: [{ source: id, alias, columns: content.columns, relation, hydration: content.draft }],
  };
}

/** Column aliases rename by position, which would let a caller name a column by counting; they have no node. */
function renamed(columns: ReadonlyMap<string, ScopeColumn>, alias: Alias | undefined, ctx: BindContext) {
  if (alias?.colnames !== undefined) {
    throw ctx.error(
      'unsupported',
      { construct: 'a list of column aliases on an entity', hint: 'use AS in a derived table' },
      undefined,
    );
  }
  return columns;
}

function visibleRelation(node: RangeVar, ctx: BindContext): Relation {
  const { catalogname, schemaname, relname } = node;
  const known = ctx.catalog.relations.get(relname ?? '');
  const here = (catalogname ?? 'osl') === 'osl' && (schemaname ?? 'entities') === 'entities';
  if (!here || known === undefined || !ctx.access.relations.has(known.name)) throw unknownRelation(node, ctx);
  if (known.kind === 'facet') {
    const hint = `FROM RETRIEVE(facet => '${known.name}', query => '…', top_k => 5)`;
    throw ctx.error(
      'unsupported',
      { construct: `facet \`${known.name}\` as a table`, hint },
      node.location ?? 0,
    );
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

function bindCommon(entry: CommonTableEntry, node: RangeVar, ctx: BindContext): BoundFrom {
  const id = ctx.nextSource();
  const item: CommonTableRef = { kind: 'cte', id, table: entry.table.id };
  const columns = renamedDerived(entry.columns, node.alias, ctx);
  return {
    item,
    items: [{ source: id, alias: node.alias?.aliasname ?? node.relname ?? '', columns, relation: null }],
  };
}

function bindDerived(node: RangeSubselect, ctx: BindContext, tables: Scope['tables']): BoundFrom {
  if (node.lateral === true) throw ctx.error('unsupported', { construct: 'LATERAL', hint: null }, undefined);
  const subquery = node.subquery;
  if (subquery === undefined || !('SelectStmt' in subquery)) {
    throw ctx.error('unsupported', { construct: 'this derived table', hint: null }, undefined);
  }
  // A derived table sees the common tables around it, and no FROM item.
  const { query, columns } = bindQuery(subquery.SelectStmt, ctx, innerScope(null, [], tables));
  const id = ctx.nextSource();
  const item: Derived = { kind: 'derived', id, query };
  const alias = node.alias?.aliasname ?? `derived ${id}`;
  return {
    item,
    items: [{ source: id, alias, columns: renamedDerived(columns, node.alias, ctx), relation: null }],
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
function renamedDerived(columns: readonly BoundColumn[], alias: Alias | undefined, ctx: BindContext) {
  const names = (alias?.colnames ?? []).map(stringOf);
  if (names.length > columns.length) {
    const detail = `there are ${columns.length} columns, ${names.length} aliases`;
    throw ctx.error('typeMismatch', { detail, hint: null }, undefined);
  }
  return toColumns(columns.map((c, i) => ({ ...c, name: names[i] ?? c.name })));
}

function bindJoin(node: JoinExpr, ctx: BindContext, outer: Scope | null, tables: Scope['tables']): BoundFrom {
  if (node.isNatural === true || node.usingClause !== undefined) {
    const how = node.isNatural === true ? 'NATURAL JOIN' : 'USING';
    throw ctx.error(
      'unsealedJoin',
      {
        detail: `${how} joins by name, not by a sealed key`,
        hint: 'write ON with an equality of sealed keys',
      },
      undefined,
    );
  }
  if (node.alias !== undefined)
    throw ctx.error('unsupported', { construct: 'an alias of a join', hint: null }, undefined);
  const type = joinType(node, ctx);
  if (node.larg === undefined || node.rarg === undefined || node.quals === undefined) {
    throw ctx.error(
      'unsealedJoin',
      { detail: 'a join without ON joins on no key', hint: 'write ON with an equality of sealed keys' },
      undefined,
    );
  }
  const left = bindItem(node.larg, ctx, outer, tables);
  const right = bindItem(node.rarg, ctx, outer, tables);
  const swapped = type === 'right';
  const items = [...left.items, ...right.items];
  const on = bindCondition(node.quals, left.items, right.items, ctx, tables);
  const item: Join = Object.freeze({
    kind: 'join',
    type: swapped ? 'left' : type,
    left: swapped ? right.item : left.item,
    right: swapped ? left.item : right.item,
    on: Object.freeze(on),
  });
  return { item, items };
}

function joinType(node: JoinExpr, ctx: BindContext): 'inner' | 'left' | 'right' {
  switch (node.jointype) {
    case 'JOIN_INNER':
      return 'inner';
    case 'JOIN_LEFT':
      return 'left';
    case 'JOIN_RIGHT':
      return 'right';
    default:
      throw ctx.error('unsupported', { construct: 'FULL JOIN', hint: 'use LEFT JOIN' }, undefined);
  }
}

/** ON: one or more equalities of a sealed key of the left side and one of the right side. */
function bindCondition(
  quals: Node,
  left: readonly ScopeItem[],
  right: readonly ScopeItem[],
  ctx: BindContext,
  tables: Scope['tables'],
): readonly Operation[] {
  const scope = innerScope(null, [...left, ...right], tables);
  const env: Environment = {
    ctx,
    scope,
    clause: 'ON',
    aggregates: false,
    windows: false,
    namedWindows: new Map(),
    policy: false,
  };
  const conjuncts =
    'BoolExpr' in quals && quals.BoolExpr.boolop === 'AND_EXPR' ? (quals.BoolExpr.args ?? []) : [quals];
  return conjuncts.map((c) => sealedEquality(c, left, right, env));
}

function sealedEquality(
  node: Node,
  left: readonly ScopeItem[],
  right: readonly ScopeItem[],
  env: Environment,
): Operation {
  const { ctx } = env;
  const expr = 'A_Expr' in node ? node.A_Expr : null;
  const isEquality = expr?.kind === 'AEXPR_OP' && nameParts(expr.name).join('.') === '=';
  const sides = [expr?.lexpr, expr?.rexpr].map((s) =>
    isEquality && s !== undefined ? sealedColumn(s, env) : null,
  );
  const [a, b] = sides;
  const belongs = (e: typeof a, items: readonly ScopeItem[]): boolean =>
    e?.kind === 'column' && items.some((i) => i.source === e.source);
  const straight = belongs(a, left) && belongs(b, right);
  const crossed = belongs(a, right) && belongs(b, left);
  if (a === undefined || a === null || b === undefined || b === null || !(straight || crossed)) {
    const detail = 'ON must be an equality of sealed keys, one of each side';
    throw ctx.error('unsealedJoin', { detail, hint: sealedHint(env) }, expr?.location);
  }
  const equality = infix('=', a, b, expr?.location, ctx);
  if (equality.kind !== 'operation' || equality.left?.kind !== 'column' || equality.right.kind !== 'column') {
    throw ctx.error(
      'unsealedJoin',
      { detail: `keys of types ${a.type} and ${b.type} cannot be joined`, hint: sealedHint(env) },
      expr?.location,
    );
  }
  return equality;
}
