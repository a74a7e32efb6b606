import type {
  FuncCall,
  JsonAggConstructor,
  JsonArrayAgg,
  JsonArrayConstructor,
  JsonFormat,
  JsonObjectAgg,
  JsonObjectConstructor,
  JsonOutput,
  JsonValueExpr,
  Node,
} from '@pgsql/types';
import { constantText, constructOf, type Location, nameParts, required, ZERO } from '../ast.js';
import type { BindContext } from '../context.js';

/**
 * Translates SQL/JSON syntax (JSON_OBJECT, JSON_ARRAY, JSON_OBJECTAGG, JSON_ARRAYAGG, JSON_SCALAR, JSON(),
 * JSON_SERIALIZE) into older functions with identical results, because Postgres supports it only from version 16 or 17.
 * Null for other nodes.
 */
export function translateStandardJson(node: Node, ctx: BindContext): Node | null {
  if ('JsonObjectConstructor' in node) return objectOf(node.JsonObjectConstructor, ctx);
  if ('JsonArrayConstructor' in node) return arrayOf(node.JsonArrayConstructor, ctx);
  if ('JsonObjectAgg' in node) return objectOfRows(node.JsonObjectAgg, ctx);
  if ('JsonArrayAgg' in node) return arrayOfRows(node.JsonArrayAgg, ctx);
  if ('JsonScalarExpr' in node) {
    const { expr, location } = node.JsonScalarExpr;
    return asJson(required(expr), location);
  }
  if ('JsonParseExpr' in node) {
    const { expr, unique_keys: unique, location } = node.JsonParseExpr;
    if (unique === true) throw uniqueKeys(location, ctx);
    return cast(documentOf(expr, ctx), 'json', location);
  }
  if ('JsonSerializeExpr' in node) {
    const { expr, output, location } = node.JsonSerializeExpr;
    const json = cast(documentOf(expr, ctx), 'json', location);
    return returned(json, output ?? TO_TEXT, location, ctx);
  }
  if ('JsonFuncExpr' in node)
    throw ctx.unsupported(
      constructOf(node),
      node.JsonFuncExpr.location,
      '`->>` and jsonb_path_query_first read values',
    );
  return null;
}

/** Postgres' default column names of SQL/JSON expressions. */
export const STANDARD_JSON_NAMES: ReadonlyMap<string, string> = new Map([
  ['JsonObjectConstructor', 'json_object'],
  ['JsonArrayConstructor', 'json_array'],
  ['JsonObjectAgg', 'json_objectagg'],
  ['JsonArrayAgg', 'json_arrayagg'],
  ['JsonScalarExpr', 'json_scalar'],
  ['JsonParseExpr', 'json'],
  ['JsonSerializeExpr', 'json_serialize'],
]);

const TO_TEXT: JsonOutput = { typeName: { names: [{ String: { sval: 'text' } }], typemod: -1 } };

function objectOf(node: JsonObjectConstructor, ctx: BindContext): Node {
  const { exprs = [], output, absent_on_null: absent, unique, location } = node;
  if (unique === true) throw uniqueKeys(location, ctx);
  const members = exprs.map((expr) => {
    const { key, value } = 'JsonKeyValue' in expr ? expr.JsonKeyValue : {};
    return { key: required(key), value: memberValue(value, ctx) };
  });
  if (absent !== true) {
    const args = members.flatMap(({ key, value }) => [key, value]);
    return built('build_object', args, output, location, ctx);
  }
  const pieces = members.map(({ key, value }) => {
    if (constantText(key) === null)
      throw ctx.unsupported('ABSENT ON NULL beside a key that is not a constant', location, NULL_ON_NULL);
    return joined(joined(asText(key, location), text(' : '), location), asText(value, location), location);
  });
  return written('{', pieces, '}', output, location, ctx);
}

const NULL_ON_NULL = 'write NULL ON NULL';

function arrayOf(node: JsonArrayConstructor, ctx: BindContext): Node {
  const { exprs = [], output, absent_on_null: absent, location } = node;
  const items = exprs.map((expr) =>
    memberValue('JsonValueExpr' in expr ? expr.JsonValueExpr : { raw_expr: expr }, ctx),
  );
  if (absent !== true) return built('build_array', items, output, location, ctx);
  return written(
    '[',
    items.map((item) => asText(item, location)),
    ']',
    output,
    location,
    ctx,
  );
}

function objectOfRows(node: JsonObjectAgg, ctx: BindContext): Node {
  const { constructor: aggregate = {}, arg = {}, absent_on_null: absent, unique } = node;
  const { location } = aggregate;
  if (unique === true) throw uniqueKeys(location, ctx);
  if (absent === true) throw ctx.unsupported('ABSENT ON NULL in JSON_OBJECTAGG', location, 'filter the rows');
  const args = [required(arg.key), memberValue(arg.value, ctx)];
  const { base, output } = baseOf(aggregate.output, ctx);
  return returned(call(`${base}_object_agg`, args, location, overRows(aggregate)), output, location, ctx);
}

/** Omits NULLs unless NULL ON NULL is given. If there are only NULLs, the result is an empty array. */
function arrayOfRows(node: JsonArrayAgg, ctx: BindContext): Node {
  const { constructor: aggregate = {}, arg, absent_on_null: absent } = node;
  const { location, agg_filter: filter, over } = aggregate;
  const value = memberValue(arg, ctx);
  const { base, output } = baseOf(aggregate.output, ctx);
  const rows = overRows(aggregate);
  if (absent !== true) return returned(call(`${base}_agg`, [value], location, rows), output, location, ctx);
  const present: Node = { NullTest: { arg: value, nulltesttype: 'IS_NOT_NULL', ...at(location) } };
  const both: Node =
    filter === undefined
      ? present
      : { BoolExpr: { boolop: 'AND_EXPR', args: [filter, present], ...at(location) } };
  const some = call(`${base}_agg`, [value], location, { ...rows, agg_filter: both });
  const counted = call('count', [], location, {
    agg_star: true,
    ...(filter && { agg_filter: filter }),
    ...(over && { over }),
  });
  const any: Node = {
    A_Expr: { kind: 'AEXPR_OP', name: [name('>')], lexpr: counted, rexpr: ZERO, ...at(location) },
  };
  const none: Node = { CaseWhen: { expr: any, result: cast(text('[]'), base, location) } };
  const empty: Node = { CaseExpr: { args: [none], ...at(location) } };
  return returned({ CoalesceExpr: { args: [some, empty], ...at(location) } }, output, location, ctx);
}

function overRows({ agg_filter, agg_order, over }: JsonAggConstructor): Partial<FuncCall> {
  return { ...(agg_filter && { agg_filter }), ...(agg_order && { agg_order }), ...(over && { over }) };
}

function memberValue(value: JsonValueExpr | undefined, ctx: BindContext): Node {
  const { raw_expr: raw, format } = value ?? {};
  return isFormatted(format, ctx) ? cast(required(raw), 'json', format?.location) : required(raw);
}

function documentOf(value: JsonValueExpr | undefined, ctx: BindContext): Node {
  isFormatted(value?.format, ctx);
  return required(value?.raw_expr);
}

function isFormatted(format: JsonFormat | undefined, ctx: BindContext): boolean {
  const { format_type: type, encoding = 'JS_ENC_DEFAULT', location } = format ?? {};
  if (encoding !== 'JS_ENC_DEFAULT') throw ctx.unsupported('ENCODING', location);
  return type === 'JS_FORMAT_JSON';
}

/**
 * Converts `value` to JSON. An untyped constant is taken as text, as in functions that accept arguments of any type.
 */
function asJson(value: Node, location: Location): Node {
  const untyped = 'A_Const' in value && (value.A_Const.isnull === true || constantText(value) !== null);
  return call('to_json', [untyped ? cast(value, 'text', location) : value], location);
}

function asText(value: Node, location: Location): Node {
  return cast(asJson(value, location), 'text', location);
}

function written(
  open: string,
  pieces: readonly Node[],
  close: string,
  output: JsonOutput | undefined,
  location: Location,
  ctx: BindContext,
): Node {
  const list: Node = { A_ArrayExpr: { elements: [...pieces], ...at(location) } };
  const inside = pieces.length === 0 ? text('') : call('array_to_string', [list, text(', ')], location);
  const whole = joined(joined(text(open), inside, location), text(close), location);
  return returned(cast(whole, 'json', location), output, location, ctx);
}

function built(
  what: 'build_object' | 'build_array',
  args: readonly Node[],
  output: JsonOutput | undefined,
  location: Location,
  ctx: BindContext,
): Node {
  const { base, output: rest } = baseOf(output, ctx);
  return returned(call(`${base}_${what}`, args, location), rest, location, ctx);
}

/**
 * Returns the function family for a RETURNING clause, and the clause if `returned` still has to apply it: for RETURNING
 * jsonb, the jsonb functions return that type directly.
 */
function baseOf(
  output: JsonOutput | undefined,
  ctx: BindContext,
): { readonly base: 'json' | 'jsonb'; readonly output: JsonOutput | undefined } {
  isFormatted(output?.returning?.format, ctx);
  const isBinary = nameParts(output?.typeName?.names).at(-1) === 'jsonb';
  return isBinary ? { base: 'jsonb', output: undefined } : { base: 'json', output };
}

function returned(json: Node, output: JsonOutput | undefined, location: Location, ctx: BindContext): Node {
  const { typeName, returning } = output ?? {};
  isFormatted(returning?.format, ctx);
  if (typeName === undefined) return json;
  const type = nameParts(typeName.names).at(-1) ?? '';
  if (type === 'json') return json;
  if (type === 'jsonb' || type === 'text' || type === 'varchar') return cast(json, type, location);
  throw ctx.unsupported(`RETURNING ${type}`, location, 'json, jsonb and text are returned');
}

function uniqueKeys(location: Location, ctx: BindContext): Error {
  return ctx.unsupported('WITH UNIQUE KEYS', location, 'jsonb keeps the last of equal keys');
}

function at(location: Location): { location?: number } {
  return location === undefined ? {} : { location };
}

function name(sval: string): Node {
  return { String: { sval } };
}

function text(sval: string): Node {
  return { A_Const: { sval: { sval } } };
}

function call(of: string, args: readonly Node[], location: Location, more: Partial<FuncCall> = {}): Node {
  return { FuncCall: { funcname: [name(of)], args: [...args], ...more, ...at(location) } };
}

function cast(arg: Node, type: string, location: Location): Node {
  return { TypeCast: { arg, typeName: { names: [name(type)], typemod: -1 }, ...at(location) } };
}

function joined(left: Node, right: Node, location: Location): Node {
  return { A_Expr: { kind: 'AEXPR_OP', name: [name('||')], lexpr: left, rexpr: right, ...at(location) } };
}
