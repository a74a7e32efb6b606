import type { CollateClause, Node, TypeName as TypeNode } from '@pgsql/types';
import { castBetween } from '../../functions/conversions.js';
import { resolveFunction } from '../../functions/resolve.js';
import { CONFIGURATIONS } from '../../functions/special-types.js';
import { callNode, castTo } from '../../plan/nodes.js';
import type { BitNumber, Expr, Query } from '../../plan/plan.js';
import { COLLATIONS, explicitCollation } from '../../plan/properties.js';
import { allQueries, exprsOf, visitExpr } from '../../plan/walk.js';
import { nearest } from '../../text/text.js';
import { elementOf, isArray, TYPE_SPELLINGS, type TypeName, typeNamed } from '../../types/types.js';
import { integerOf, type Location, nameParts, required, stringOf } from '../ast.js';
import type { BindContext } from '../context.js';
import type { BindEnvironment } from '../scope.js';
import { bindExpression, bindValue } from './expression.js';
import { type BoundExpression, coerce } from './operands.js';

/** Binds `CAST(bound AS type)`, `bound::type` and `type 'literal'`. */
export function bindCast(
  bound: BoundExpression,
  node: TypeNode,
  location: Location,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  if (isOneByte(node) && node.arrayBounds === undefined) return bindOneByte(bound, location, ctx);
  const type = typeOfNode(node, env);
  const modifiers = (node.typmods ?? []).map((m) => integerOf(m) ?? -1);
  if (type === 'interval' && modifiers.length > 0) return bindIntervalCast(bound, modifiers, location, env);
  if (type === 'text' && modifiers.length > 0)
    return truncateText(convert(bound, type, location, env), modifiers, location, env);
  const value =
    bound.kind === 'untyped' && modifiers.length === 0
      ? coerce(bound, type, ctx)
      : convert(bound, type, location, env);
  if (modifiers.length === 0) return value;
  const least = type === 'bpchar' ? 1 : 0;
  if (!MODIFIABLE.has(type) || modifiers.some((m) => m < least)) {
    throw ctx.unsupported(`a length or precision of type ${type}`, location);
  }
  return ctx.at(
    Object.freeze({ kind: 'cast', arg: value, type, modifiers: Object.freeze(modifiers) }),
    location,
  );
}

/** Returns the literal in `'english'::regconfig` if it names a built-in configuration; null for other casts. */
export function configurationIn(
  bound: BoundExpression,
  { names, arrayBounds }: TypeNode,
): BoundExpression | null {
  if (nameParts(names).join('.') !== 'regconfig' || arrayBounds !== undefined) return null;
  const value = bound.kind === 'untyped' ? bound.value : null;
  const isKnown = (text: string): boolean => CONFIGURATIONS.has(text.toLowerCase());
  return value !== null && 'literal' in value && value.literal.holds(isKnown) ? bound : null;
}

const MODIFIABLE: ReadonlySet<TypeName> = new Set<TypeName>([
  'bpchar',
  'numeric',
  'time',
  'timestamp',
  'timestamptz',
]);

export function typeOfNode(node: TypeNode, env: BindEnvironment): TypeName {
  const parts = nameParts(node.names);
  const bounds = node.arrayBounds?.length ?? 0;
  const written = parts.join('.');
  const element = parts.length === 1 ? typeNamed(parts[0] ?? '') : null;
  const type = element === null || bounds === 0 ? element : typeNamed(`${element}[]`);
  if (
    type === null ||
    bounds > 1 ||
    node.setof === true ||
    node.pct_type === true ||
    isOneByte(node) ||
    (bounds > 0 && element !== null && isArray(element))
  ) {
    throw env.ctx.error(
      'unknownType',
      {
        type: `${written}${'[]'.repeat(bounds)}`,
        near: element === null ? nearest(written, TYPE_SPELLINGS) : null,
      },
      node.location,
    );
  }
  return type;
}

/** Converts `bound` to `type` as an explicit cast does. */
export function convert(
  bound: BoundExpression,
  type: TypeName,
  location: Location,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  if (bound.kind === 'untyped') return coerce(bound, type, ctx);
  if (bound.type === type) return ctx.enumColumns.has(bound) ? ctx.at(castTo(bound, type), location) : bound;
  if (!canCast(bound.type, type)) {
    throw ctx.mismatch(`type ${bound.type} cannot be cast to ${type}`, location, 'cast it to text first');
  }
  return ctx.at(castTo(bound, type), location);
}

/** True if an explicit cast from `from` to `to` exists. Arrays are cast element by element. */
function canCast(from: TypeName, to: TypeName): boolean {
  if (castBetween(from, to) !== null) return true;
  return isArray(from) && isArray(to) && castBetween(elementOf(from), elementOf(to)) !== null;
}

/** Truncates a text to n characters, as an explicit cast to `varchar(n)` does. */
function truncateText(
  value: Expr,
  modifiers: readonly number[],
  location: Location,
  env: BindEnvironment,
): Expr {
  const { ctx } = env;
  const length = modifiers[0] ?? -1;
  const left = resolveFunction('left', ['text', 'int4']);
  if (modifiers.length !== 1 || length < 1 || left === 'none' || left === 'ambiguous') {
    throw ctx.unsupported('this length of a text type', location);
  }
  const args = [value, ctx.constant(String(length), 'int4')];
  return ctx.at(callNode(left.definition, args, 'text'), location);
}

/** Postgres' bit masks for the fields in `INTERVAL '…' <field>`. */
const INTERVAL_FIELDS: ReadonlyMap<number, string> = new Map([
  [2, 'month'],
  [4, 'year'],
  [8, 'day'],
  [1024, 'hour'],
  [2048, 'minute'],
  [4096, 'second'],
]);

/** Binds `INTERVAL '7' DAY`, which means `INTERVAL '7 day'`. */
function bindIntervalCast(
  bound: BoundExpression,
  modifiers: readonly number[],
  location: Location,
  env: BindEnvironment,
): Expr {
  const field = INTERVAL_FIELDS.get(modifiers[0] ?? -1);
  const value = bound.kind === 'untyped' ? bound.value : null;
  if (
    modifiers.length !== 1 ||
    field === undefined ||
    value === null ||
    !('literal' in value) ||
    !/^\s*[+-]?\d+\s*$/.test(value.literal.read())
  ) {
    throw env.ctx.unsupported('this form of INTERVAL', location, "write INTERVAL '7 days'");
  }
  return env.ctx.at(env.ctx.constant(`${value.literal.read().trim()} ${field}`, 'interval'), location);
}

/** True for `"char"`, a single byte. The grammar reports an unquoted `char` as `pg_catalog.bpchar`. */
function isOneByte({ names = [] }: TypeNode): boolean {
  const [first, second] = names.map(stringOf);
  return (second ?? first) === 'char' && (second === undefined || first === 'pg_catalog');
}

/**
 * Binds `'r'::"char"`, the first byte of a literal, as text. It must be ASCII because other bytes are not valid text.
 *
 * @throws QueryError E0511
 */
function bindOneByte(bound: BoundExpression, at: Location, ctx: BindContext): Expr {
  const value = bound.kind === 'untyped' ? bound.value : { literal: null };
  if (value === null) return ctx.at(Object.freeze({ kind: 'null', type: 'text' }), at);
  const first = 'literal' in value ? value.literal?.read().slice(0, 1) : undefined;
  if (first === undefined || first > '\u007f')
    throw ctx.unsupported('`"char"` of anything but a literal in ASCII', at, 'use left(…, 1)');
  return ctx.at(ctx.constant(first, 'text'), at);
}

const BITS: ReadonlyMap<TypeName, number> = new Map<TypeName, number>([
  ['int4', 32],
  ['int8', 64],
]);

/**
 * Binds `text::bit(n)::bigint`, the idiom for converting hexadecimal digits (`'x' || md5(…)`) to a number. Since there
 * is no bit type, both casts become one node. Returns null if `arg` is not a cast.
 */
export function bindBitNumber(
  arg: Node | undefined,
  type: TypeName,
  location: Location,
  env: BindEnvironment,
): BitNumber | null {
  if (arg === undefined || !('TypeCast' in arg)) return null;
  const { ctx } = env;
  const most = BITS.get(type);
  const modifiers = arg.TypeCast.typeName?.typmods ?? [];
  const length = modifiers.length === 0 ? 1 : integerOf(modifiers[0]);
  if (most === undefined || length === null || modifiers.length > 1 || length < 1 || length > most) {
    const hint = 'bits are read as numbers: ::bit(64)::bigint, ::bit(32)::int';
    throw ctx.unsupported(`bit(${length ?? '…'}) as ${type}`, location, hint);
  }
  const bits = bindExpression(required(arg.TypeCast.arg), env);
  if (bits.kind !== 'untyped' && bits.type !== 'text') {
    throw ctx.mismatch(`a value of type ${bits.type} is not text of bits`, location, "write 'x' || md5(…)");
  }
  const text = coerce(bits, 'text', ctx);
  const number = Object.freeze({
    kind: 'bit_number',
    arg: text,
    length,
    type: type === 'int4' ? 'int4' : 'int8',
  });
  return ctx.at(number satisfies BitNumber, location);
}

export function isBitCast(node: Node | undefined): boolean {
  const type: TypeNode | undefined =
    node !== undefined && 'TypeCast' in node ? node.TypeCast.typeName : undefined;
  return nameParts(type?.names).join('.') === 'bit' && (type?.arrayBounds ?? []).length === 0;
}

/** Binds `arg COLLATE "C"`. Only the collations of a closed list are supported. */
export function bindCollate(node: CollateClause, env: BindEnvironment): Expr {
  const { ctx } = env;
  const name = nameParts(node.collname).join('.');
  if (!COLLATIONS.has(name)) {
    const hint = `there is ${[...COLLATIONS].map((c) => `"${c}"`).join(', ')}`;
    throw ctx.unsupported(`collation \`${name}\``, node.location, hint);
  }
  const arg = bindValue(required(node.arg), env);
  const { type } = arg;
  const element = isArray(type) ? elementOf(type) : type;
  if (element !== 'text' && element !== 'bpchar') {
    throw ctx.mismatch(`a value of type ${type} has no collation`, node.location, 'collate its text');
  }
  ctx.collates = true;
  return ctx.at(Object.freeze({ kind: 'collate', arg, collation: name, type }), node.location);
}

/** Refuses values with conflicting explicit collations, as Postgres does. @throws QueryError E0511 */
export function refuseCollationConflicts(root: Query, ctx: BindContext): void {
  if (!ctx.collates) return;
  for (const query of allQueries(root)) {
    for (const expr of exprsOf(query)) {
      visitExpr(expr, (e) => {
        if (explicitCollation(e) !== 'several') return;
        const detail = 'two collations meet in one value';
        throw ctx.mismatch(detail, ctx.locationOf(e), 'name one collation');
      });
    }
  }
}
