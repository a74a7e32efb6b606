import type { Alias, FuncCall, Node, RangeFunction } from '@pgsql/types';
import { functionsNamed } from '../../functions/resolve.js';
import { columnsOfRows } from '../../functions/set-returning.js';
import type { RowSource } from '../../plan/plan.js';
import { arrayOf, type TypeName } from '../../types/types.js';
import { type Location, nameParts, stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import { chooseOverload } from '../expressions/call.js';
import { typeOfNode } from '../expressions/cast.js';
import { bindExpression } from '../expressions/expression.js';
import { coerce } from '../expressions/operands.js';
import { bindArgument } from '../expressions/row.js';
import { bindRetrieve } from '../runtime/retrieve.js';
import { bindTraverse } from '../runtime/traverse.js';
import {
  type BindEnvironment,
  type BoundColumn,
  type BoundItem,
  DUPLICATE_MARK,
  plainEnvironment,
  type Scope,
  type ScopeColumn,
  type ScopeItem,
} from '../scope.js';

/**
 * Binds `RETRIEVE(…)`, `TRAVERSE(…)` and set-returning functions.
 *
 * @param scope the scope for arguments of set-returning functions
 */
export function bindTableFunction(node: RangeFunction, ctx: BindContext, scope: Scope): BoundItem {
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
    refuseAroundRuntime(node, call, ctx);
    const bindFunction = name === 'retrieve' ? bindRetrieve : bindTraverse;
    return bindFunction(call, node.alias?.aliasname, ctx);
  }
  const construct = `\`${name === '' ? 'this function' : name}\` in FROM`;
  const hint = 'table functions are RETRIEVE, TRAVERSE, and those that make rows, such as generate_series';
  throw ctx.unsupported(construct, call.location, hint);
}

function refuseAroundRuntime(node: RangeFunction, call: FuncCall, ctx: BindContext): void {
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

/**
 * Maps each function that takes a column definition list to the set-returning function that yields its JSON objects.
 */
const OF_OBJECTS: ReadonlyMap<string, string> = new Map([
  ['jsonb_to_recordset', 'jsonb_array_elements'],
  ['jsonb_to_record', 'unnest'],
  ['json_to_recordset', 'json_array_elements'],
  ['json_to_record', 'unnest'],
]);

function isRowSource(name: string): boolean {
  return OF_OBJECTS.has(name) || functionsNamed(name)[0]?.kind === 'rows';
}

interface RowFunctionColumn {
  readonly name: string;
  readonly type: TypeName;
}

/**
 * Binds `generate_series(…)`, `unnest(…)`, `jsonb_each(…)` etc. in FROM, with ordinality and column aliases. Arguments
 * may refer to preceding items and outer queries, LATERAL or not.
 */
function bindRowSource(
  name: string,
  node: RangeFunction,
  call: FuncCall,
  ctx: BindContext,
  scope: Scope,
): BoundItem {
  refuseAroundRows(node, call, ctx);
  ctx.requireFeature('row_functions', call.location);
  const env = plainEnvironment(ctx, scope, 'FROM');
  const alias = node.alias?.aliasname ?? name;
  const listed = node.coldeflist ?? [];
  const made = OF_OBJECTS.has(name)
    ? readFromObjects(name, listed, call, env)
    : madeBy(name, listed, call, alias, env);
  const numbered = node.ordinality === true;
  const columns = numbered ? [...made.columns, { name: 'ordinality', type: 'int8' as const }] : made.columns;
  const id = ctx.nextSource();
  ctx.recordPosition(id, call.location);
  const item: RowSource = Object.freeze({
    kind: 'rows',
    id,
    ...made.source,
    columns: Object.freeze(made.columns.map((c) => c.type)),
    numbered,
  });
  const shown = columns.map((c): BoundColumn => ({ ...c, sealed: false }));
  const names = renamedDerived(shown, node.alias, call.location, ctx);
  const scalar = columns.length === 1 && listed.length === 0 ? { scalar: true as const } : {};
  return {
    item,
    items: [{ source: id, alias, location: call.location, columns: names, relation: null, ...scalar }],
    named: false,
    content: false,
  };
}

interface BoundRowFunction {
  readonly source: Pick<RowSource, 'definition' | 'args' | 'fields'>;
  readonly columns: readonly RowFunctionColumn[];
}

function madeBy(
  name: string,
  listed: readonly Node[],
  call: FuncCall,
  alias: string,
  env: BindEnvironment,
): BoundRowFunction {
  const { ctx } = env;
  if (listed.length > 0) {
    const construct = `a list of column definitions at \`${name}\``;
    throw ctx.unsupported(construct, call.location, `${name} has columns of its own`);
  }
  const nodes = call.args ?? [];
  // With several arrays, `unnest` pads the shorter ones with NULLs.
  const calls = name === 'unnest' && nodes.length > 1 ? nodes.map((n) => [n]) : [nodes];
  const resolved = calls.map((args) =>
    chooseOverload(
      name,
      args.map((a, i) => bindArgument(a, name, i, env)),
      call.location,
      ctx,
    ),
  );
  const [first] = resolved;
  if (first === undefined) throw ctx.unsupported(`\`${name}\` of nothing`, call.location);
  const unnamed = calls.length === 1 ? alias : name;
  const columns = resolved.flatMap(({ definition, type }) =>
    columnsOfRows(definition, type).map((c) => ({ name: c.name ?? unnamed, type: c.type })),
  );
  const args = Object.freeze(resolved.flatMap((r) => r.args));
  return { source: { definition: first.definition, args, fields: null }, columns };
}

/** Binds `jsonb_to_recordset(…) AS t(a int, b text)` by extracting each column from the objects by name. */
function readFromObjects(
  name: string,
  listed: readonly Node[],
  call: FuncCall,
  env: BindEnvironment,
): BoundRowFunction {
  const { ctx } = env;
  const at = call.location;
  const [only, ...more] = call.args ?? [];
  if (only === undefined || more.length > 0 || listed.length === 0) {
    const construct = `\`${name}\` without one value and a list of column definitions`;
    throw ctx.unsupported(construct, at, `${name}(…) AS t(a int, b text)`);
  }
  const columns = listed.map((n) => columnDefined(n, env, at));
  const json = name.startsWith('jsonb') ? 'jsonb' : 'json';
  const value = coerce(bindExpression(only, env), json, ctx);
  const whole = name === `${json}_to_record`;
  const given = whole
    ? Object.freeze({ kind: 'array' as const, items: Object.freeze([value]), type: arrayOf(json) })
    : value;
  const { definition, args } = chooseOverload(OF_OBJECTS.get(name) ?? name, [given], at, ctx);
  const fields = Object.freeze(columns.map((c) => ctx.constant(c.name, 'text')));
  return { source: { definition, args, fields }, columns };
}

function columnDefined(node: Node, env: BindEnvironment, at: Location): RowFunctionColumn {
  const { ctx } = env;
  const { colname, typeName } = 'ColumnDef' in node ? node.ColumnDef : {};
  if (colname === undefined || typeName === undefined) throw ctx.unsupported('this column definition', at);
  const type = typeOfNode(typeName, env);
  if ((typeName.typmods ?? []).length > 0 || type.endsWith('[]')) {
    const construct = 'an array, a length or a precision in a list of column definitions';
    throw ctx.unsupported(construct, at, 'cast in the select list');
  }
  return { name: colname, type };
}

function refuseAroundRows(node: RangeFunction, call: FuncCall, ctx: BindContext): void {
  const list = node.functions?.[0];
  const own = list !== undefined && 'List' in list ? (list.List.items ?? []).slice(1) : [];
  const around: readonly CallModifier[] = [
    [node.is_rowsfrom === true || node.functions?.length !== 1, 'ROWS FROM'],
    [own.some((c) => Object.keys(c).length > 0), 'a list of column definitions within ROWS FROM'],
    ...aroundCall(call),
    [(call.args ?? []).some((a) => 'NamedArgExpr' in a), 'a named argument'],
  ];
  const construct = around.find(([is]) => is)?.[1];
  if (construct === undefined) return;
  throw ctx.unsupported(`${construct} at a function in FROM`, call.location);
}

/**
 * A construct that a call may contain: `is` is true if the call contains it, and `construct` is its name in messages.
 */
type CallModifier = readonly [is: boolean, construct: string];

/** Lists the call modifiers that no function in FROM supports. */
function aroundCall(call: FuncCall): readonly CallModifier[] {
  return [
    [call.agg_distinct === true, 'DISTINCT'],
    [call.agg_order !== undefined, 'ORDER BY among arguments'],
    [call.agg_filter !== undefined, 'FILTER'],
    [call.agg_within_group === true, 'WITHIN GROUP'],
    [call.agg_star === true, '`*` as an argument'],
    [call.over !== undefined, 'OVER'],
    [call.func_variadic === true, 'VARIADIC'],
  ];
}

/** Maps columns by name. Duplicate names get keys that SQL cannot express, so only `*` includes these columns. */
function toColumns(columns: readonly BoundColumn[]): ReadonlyMap<string, ScopeColumn> {
  const counts = new Map<string, number>();
  for (const c of columns) counts.set(c.name, (counts.get(c.name) ?? 0) + 1);
  return new Map(
    columns.map((c, i) => [
      counts.get(c.name) === 1 ? c.name : `${c.name}${DUPLICATE_MARK}${i}`,
      { name: `c${i + 1}`, type: c.type, sealed: c.sealed, denied: false, starred: true },
    ]),
  );
}

/** Returns the columns of a derived or common table, renamed by its alias. */
export function renamedDerived(
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

/**
 * Returns the columns of an entity, renamed by the alias's column list, in the order in which `*` lists them for this
 * caller. Not supported in raw SQL, where positions include hidden columns.
 */
export function renamedEntity(
  columns: ReadonlyMap<string, ScopeColumn>,
  alias: Alias | undefined,
  location: Location,
  ctx: BindContext,
): Pick<ScopeItem, 'columns' | 'declared'> {
  const names = alias?.colnames?.map(stringOf);
  if (names === undefined) return { columns };
  if (ctx.world === 'physical')
    throw ctx.unsupported('a list of column aliases on a table', location, 'use AS in a derived table');
  const starred = [...columns].filter(([, c]) => c.starred);
  if (names.length > starred.length)
    throw ctx.mismatch(`the alias lists ${names.length} columns of ${starred.length}`, location);
  const shown = starred.map(([name, column], i): [string, ScopeColumn] => [names[i] ?? name, column]);
  const taken = new Set(shown.map(([name]) => name));
  const rest = [...columns].filter(([name, c]) => !c.starred && !taken.has(name));
  const counts = new Map<string, number>();
  for (const [name] of shown) counts.set(name, (counts.get(name) ?? 0) + 1);
  const once = shown.map(([name, column], i): [string, ScopeColumn] => [
    counts.get(name) === 1 ? name : `${name}${DUPLICATE_MARK}${i}`,
    column,
  ]);
  return { columns: new Map([...once, ...rest]), declared: columns };
}
