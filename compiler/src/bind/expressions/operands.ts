import { castBetween, commonType as commonTypeOf } from '../../functions/conversions.js';
import type { OperatorDefinition } from '../../functions/define.js';
import { resolveOperator } from '../../functions/resolve.js';
import { castTo, operationNode } from '../../plan/nodes.js';
import type { Expr } from '../../plan/plan.js';
import type { PlainList } from '../../text/lexical.js';
import {
  arrayOf,
  elementOf,
  isArray,
  isComparable,
  isInteger,
  isNumber,
  type ScalarType,
  type TypeName,
} from '../../types/types.js';
import type { Location } from '../ast.js';
import type { BindContext } from '../context.js';
import {
  isPossibleDay,
  isPossibleMoment,
  isPossibleTime,
  type LiteralTest,
  WrittenLiteral,
} from '../literals.js';

/** A string literal, NULL or `$n` whose type is determined by its context. */
interface UntypedValue {
  readonly kind: 'untyped';
  readonly value: { readonly literal: WrittenLiteral } | { readonly parameter: number } | null;
  readonly location: Location;
}

export type BoundExpression = Expr | UntypedValue;

export function typeOfBound(bound: BoundExpression): TypeName | null {
  return bound.kind === 'untyped' ? null : bound.type;
}

/**
 * Converts `bound` to `type`, adding an implicit cast if needed.
 *
 * @throws QueryError E0511 if there is no implicit cast
 */
export function coerce(bound: BoundExpression, type: TypeName, ctx: BindContext, location?: Location): Expr {
  if (bound.kind === 'untyped') return typeLiteral(bound, type, ctx);
  if (bound.type === type) return bound;
  const cast = castBetween(bound.type, type);
  if (cast === null || cast.context !== 'implicit') {
    const detail = `a value of type ${bound.type} cannot be used as ${type} here`;
    throw ctx.mismatch(detail, location ?? ctx.locationOf(bound), 'an explicit cast may help');
  }
  // A float4 is rounded first: '0.1'::float4 is not the float8 0.1.
  const literal = bound.type === 'float4' ? null : ctx.literalIn(bound);
  if (literal !== null && isNumber(type) && isNumber(bound.type))
    return ctx.at(ctx.literal(literal, type), location);
  return ctx.at(castTo(bound, type), location);
}

/** Returns `bound` as a value; untyped ones become text. */
export function asValue(bound: BoundExpression, ctx: BindContext): Expr {
  return bound.kind === 'untyped' ? typeLiteral(bound, 'text', ctx) : bound;
}

function typeLiteral(untyped: UntypedValue, type: TypeName, ctx: BindContext): Expr {
  const { value, location } = untyped;
  if (value === null) return ctx.at(Object.freeze({ kind: 'null', type }), location);
  if ('literal' in value)
    return ctx.at(ctx.literal(checkedLiteral(value.literal, type, ctx, location), type), location);
  const parameter = ctx.clients.parameter(value.parameter, type, location);
  if (parameter.type === type) return ctx.at(parameter, location);
  return coerce(ctx.at(parameter, location), type, ctx, location);
}

function checkedLiteral(
  literal: WrittenLiteral,
  type: TypeName,
  ctx: BindContext,
  location: Location,
): WrittenLiteral {
  if (isArray(type)) return literal;
  const form = LITERAL_FORM.get(type);
  if (form !== undefined && !literal.holds(form)) throw ctx.error('invalidLiteral', { type }, location);
  const range = LITERAL_RANGE.get(type);
  if (range !== undefined && !literal.holds(range.holds))
    throw ctx.error('invalidLiteral', { type, sqlstate: range.sqlstate }, location);
  return literal;
}

const INTEGER = /^[+-]?(\d[\d_]*|0[xX][\da-fA-F_]+|0[oO][0-7_]+|0[bB][01_]+)$/;
const NUMBER = /^[+-]?((\d[\d_]*(\.\d*)?|\.\d+)([eE][+-]?\d+)?|nan|inf|infinity|0[xX][\da-fA-F_]+)$/i;
const BOOLEAN = /^(t|tr|tru|true|f|fa|fal|fals|false|y|ye|yes|n|no|on|of|off|0|1)$/i;
const UUID = /^\{?[\da-f]{4}-?([\da-f]{4}-?){7}\}?$/i;
const ADDRESS = /^[\da-f:.]+(\/\d{1,3})?$/i;
const matching =
  (pattern: RegExp): LiteralTest =>
  (text) =>
    pattern.test(text.trim());
const isIntegerText = matching(INTEGER);
const isNumberText = matching(NUMBER);
const LITERAL_FORM: ReadonlyMap<ScalarType, LiteralTest> = new Map<ScalarType, LiteralTest>([
  ['int2', isIntegerText],
  ['int4', isIntegerText],
  ['int8', isIntegerText],
  ['float4', isNumberText],
  ['float8', isNumberText],
  ['numeric', isNumberText],
  ['bool', matching(BOOLEAN)],
  ['uuid', matching(UUID)],
  ['inet', matching(ADDRESS)],
  ['cidr', matching(ADDRESS)],
]);

const LITERAL_RANGE: ReadonlyMap<ScalarType, { readonly holds: LiteralTest; readonly sqlstate: string }> =
  new Map<ScalarType, { readonly holds: LiteralTest; readonly sqlstate: string }>([
    ['int2', { holds: within(2n ** 15n), sqlstate: '22003' }],
    ['int4', { holds: within(2n ** 31n), sqlstate: '22003' }],
    ['int8', { holds: within(2n ** 63n), sqlstate: '22003' }],
    ['date', { holds: isPossibleDay, sqlstate: '22008' }],
    ['time', { holds: isPossibleTime, sqlstate: '22008' }],
    ['timestamp', { holds: isPossibleMoment, sqlstate: '22008' }],
    ['timestamptz', { holds: isPossibleMoment, sqlstate: '22008' }],
  ]);

/** Creates a test that rejects decimal integers outside [-limit, limit). */
function within(limit: bigint): LiteralTest {
  return (text) => {
    const digits = /^([+-]?)(\d+)$/.exec(text.trim());
    if (digits === null) return true; // other bases are left to the database
    const [, sign = '', written = ''] = digits;
    const size = written.replace(/^0+(?=\d)/, '');
    if (size.length > 20) return false;
    const value = BigInt(size);
    return sign === '-' ? value <= limit : value < limit;
  };
}

/** False if `text` is obviously not a value of `type`. The database checks the rest. */
export function couldBe(text: string, type: TypeName): boolean {
  if (isArray(type)) return true;
  const form = LITERAL_FORM.get(type);
  const range = LITERAL_RANGE.get(type);
  return (form === undefined || form(text)) && (range === undefined || range.holds(text));
}

/**
 * Converts the items of a long IN list to `elementType`. `type` is the list's type, or null for strings. The items are
 * not linked to syntax nodes because no template (reusable plan) is built for statements this long.
 *
 * @throws QueryError E0511 for an invalid item
 */
export function listOf(
  items: PlainList['items'],
  type: PlainList['type'],
  elementType: ScalarType,
  location: Location,
  ctx: BindContext,
): readonly WrittenLiteral[] {
  if (type !== null && !isNumber(elementType)) {
    const detail = `a value of type ${type} cannot be used as ${elementType} here`;
    throw ctx.mismatch(detail, location, 'an explicit cast may help');
  }
  const form = type === null ? LITERAL_FORM.get(elementType) : undefined;
  if (form !== undefined && !items.every(form))
    throw ctx.error('invalidLiteral', { type: elementType }, location);
  const range = LITERAL_RANGE.get(elementType);
  if (range !== undefined && !items.every(range.holds))
    throw ctx.error('invalidLiteral', { type: elementType, sqlstate: range.sqlstate }, location);
  return items.map((item) => new WrittenLiteral(item, null));
}

/** Returns the common type of `bounds` by Postgres' rules for CASE, UNION, COALESCE and IN; text if all are untyped. */
export function commonType(
  bounds: readonly BoundExpression[],
  ctx: BindContext,
  location: Location,
): TypeName {
  const types = bounds.map(typeOfBound);
  const common = commonTypeOf(types);
  if (common !== null) return common;
  const named = [...new Set(types.filter((t) => t !== null))].join(', ');
  throw ctx.mismatch(`types ${named} cannot be matched`, location, 'cast one of them');
}

export function arrayTypeOf(type: TypeName, ctx: BindContext, location: Location) {
  if (isArray(type)) throw ctx.unsupported('an array of arrays', location);
  return arrayOf(type);
}

export function elementTypeOf(type: TypeName, ctx: BindContext, location: Location): ScalarType {
  if (!isArray(type)) throw ctx.mismatch(`an array is needed here, not ${type}`, location);
  return elementOf(type);
}

/** Requires a type with an equality operator, for grouping, sorting and DISTINCT. @throws QueryError E0511, 42883 */
export function requireComparable(type: TypeName, at: Location, ctx: BindContext): void {
  if (!isComparable(type)) throw ctx.error('unknownOperator', { signature: `${type} = ${type}` }, at);
}

export function prefix(name: string, right: BoundExpression, location: Location, ctx: BindContext): Expr {
  const type = typeOfBound(right);
  if (name === '+' && (type === null || isNumber(type))) return coerce(right, type ?? 'float8', ctx);
  const found = resolveOperator(name, undefined, type);
  if (found === 'none' || found === 'ambiguous') {
    throw ctx.error('unknownOperator', { signature: `${name} ${type ?? 'unknown'}` }, location);
  }
  const arg = coerce(right, found.argumentTypes[0] ?? 'text', ctx);
  return ctx.at(operationNode(found.definition, null, arg, found.result), location);
}

export function infix(
  name: string,
  left: BoundExpression,
  right: BoundExpression,
  location: Location,
  ctx: BindContext,
): Expr {
  const found = operatorFor(name, typeOfBound(left), typeOfBound(right), location, ctx);
  const [leftType = 'text', rightType = 'text'] = found.argumentTypes;
  const sides = [coerce(left, leftType, ctx, location), coerce(right, rightType, ctx, location)] as const;
  return ctx.at(operationNode(found.definition, ...sides, found.result), location);
}

/** Resolves an infix operator by its operand types. A null type stands for an untyped literal. */
export function operatorFor(
  name: string,
  left: TypeName | null,
  right: TypeName | null,
  location: Location,
  ctx: BindContext,
) {
  const found = resolveOperator(name, left, right);
  if (found === 'ambiguous') {
    throw ctx.error(
      'ambiguous',
      { what: 'operator', name: `${left ?? 'unknown'} ${name} ${right ?? 'unknown'}` },
      location,
    );
  }
  if (found === 'none') {
    throw ctx.error(
      'unknownOperator',
      { signature: `${left ?? 'unknown'} ${name} ${right ?? 'unknown'}` },
      location,
    );
  }
  return found;
}

export function equalityOf(type: TypeName, location: Location, ctx: BindContext): OperatorDefinition {
  return operatorFor('=', type, type, location, ctx).definition;
}

/** Divides as metrics do: integers yield a fraction, and a zero divisor yields NULL. */
export function quotient(
  left: BoundExpression,
  right: BoundExpression,
  location: Location,
  ctx: BindContext,
): Expr {
  return infix('/', exact(left, ctx), nonZero(right, ctx), location, ctx);
}

export function remainder(
  left: BoundExpression,
  right: BoundExpression,
  location: Location,
  ctx: BindContext,
): Expr {
  return infix('%', left, nonZero(right, ctx), location, ctx);
}

function exact(bound: BoundExpression, ctx: BindContext): BoundExpression {
  return bound.kind !== 'untyped' && isInteger(bound.type) ? coerce(bound, 'numeric', ctx) : bound;
}

function nonZero(bound: BoundExpression, ctx: BindContext): BoundExpression {
  if (bound.kind === 'untyped') return bound;
  if (ctx.literalIn(bound)?.holds((text) => Number(text) !== 0) === true) return bound;
  const zero = coerce(ctx.constant('0', 'int4'), bound.type, ctx);
  return Object.freeze({
    kind: 'conditional',
    form: 'nullif',
    args: Object.freeze([bound, zero]),
    type: bound.type,
  });
}
