import type { Node } from '@pgsql/types';
import { assertNever, type QueryError, queryError } from '../../errors/errors.js';
import { resolveFunction, resolveOperator } from '../../functions/resolve.js';
import { callNode, inType, operationNode } from '../../plan/nodes.js';
import type { Cast, Expr, FunctionCall, LiteralValue, Operation } from '../../plan/plan.js';
import { mapChildren } from '../../plan/walk.js';
import { parse } from '../../text/parse.js';
import { isSettingsFreeType } from '../../types/column-form.js';
import { elementOf, isArray, type ScalarType, type TypeName } from '../../types/types.js';
import type { BindContext } from '../context.js';
import { isSettingsFree, WrittenLiteral, withOffset } from '../literals.js';

/**
 * Reads and creates literals. Policy expressions contain them inline; metric expressions refer to slots of the
 * statement.
 */
export interface LiteralForm {
  valueOf(expr: Expr): LiteralValue | null;
  make(value: LiteralValue, type: TypeName): Expr;
}

/**
 * Rewrites `expr` so that its value does not depend on TimeZone, DateStyle, IntervalStyle, `extra_float_digits` or
 * `bytea_output`; times use UTC. Policy and metrics need this because callers control the settings of their session.
 *
 * INVARIANT: the type stays the same, and every operator, cast and function whose result depends on those settings is
 * rewritten or refused.
 *
 * @throws QueryError E0511
 */
export function settingsFree(expr: Expr, literals: LiteralForm): Expr {
  const free = (e: Expr): Expr =>
    freeNode(
      mapChildren(e, free, (q) => q),
      literals,
    );
  return free(expr);
}

function freeNode(expr: Expr, literals: LiteralForm): Expr {
  switch (expr.kind) {
    case 'literal':
    case 'parameter':
      return freeLiteral(expr, literals);
    case 'cast':
      return freeCast(expr);
    case 'operation':
      return freeOperation(expr);
    case 'call':
      return freeCall(expr, literals);
    case 'aggregate':
      if (expr.definition.volatility === 'stable') requireNoText(expr.args, expr.definition.name);
      return expr;
    case 'distinct_test':
      return ofOneClock(expr, [expr.left, expr.right]);
    case 'row_comparison':
      for (const { left, right } of expr.pairs) ofOneClock(expr, [left, right]);
      return expr;
    case 'membership':
      return ofOneClock(expr, [expr.arg, ...expr.items]);
    case 'quantified':
      return ofOneClock(expr, [expr.arg, expr.array]);
    case 'conditional':
      return ofOneClock(expr, expr.args);
    case 'attribute_match':
      if (SETTING_READ.has(expr.arg.type)) throw refusal(`an attribute as ${expr.arg.type}`, AS_TEXT);
      return expr;
    case 'row_text':
      throw refusal('a whole row as text', 'name its columns');
    case 'window':
    case 'grouping':
    case 'scalar_query':
    case 'exists':
    case 'in_query':
      throw refusal('a query or a window function', null);
    case 'base':
      if (expr.stored !== undefined && !isSettingsFreeType(expr.stored))
        throw refusal(`the text of ${expr.stored}`, null);
      return expr;
    case 'column':
    case 'null':
    case 'boolean':
    case 'structural':
    case 'and':
    case 'or':
    case 'not':
    case 'null_test':
    case 'truth_test':
    case 'case':
    case 'array':
    case 'bit_number':
    case 'slice':
    case 'collate':
    case 'subscript':
    case 'distance':
    case 'stored_vector':
      return expr;
    default:
      return assertNever(expr);
  }
}

/** Types whose conversion from and to text depends on settings. */
const SETTING_READ: ReadonlySet<TypeName> = new Set<TypeName>([
  'date',
  'timestamp',
  'timestamptz',
  'interval',
  'timetz',
  'money',
  'daterange',
  'tsrange',
  'tstzrange',
  'datemultirange',
  'tsmultirange',
  'tstzmultirange',
]);
/** Types whose conversion to text depends on settings, each with the hint to show. */
const WRITTEN: ReadonlyMap<TypeName, string> = new Map<TypeName, string>([
  ...[...SETTING_READ].map((type): [TypeName, string] => [type, "use to_char(… at time zone 'UTC', '…')"]),
  ['float4', 'cast it to numeric first, or use to_char'],
  ['float8', 'cast it to numeric first, or use to_char'],
  ['bytea', "use encode(…, 'hex')"],
]);
const AS_TEXT = "compare the texts: to_char(at time zone 'UTC', 'YYYY-MM-DD')";
const AT_UTC = "say which clock: … at time zone 'UTC'";

function refusal(what: string, hint: string | null): QueryError {
  const detail = `${what} depends on the settings of the session, which policy, metrics and computed columns must not`;
  return queryError('typeMismatch', { detail, hint });
}

function elementType(type: TypeName): ScalarType {
  return isArray(type) ? elementOf(type) : type;
}

function requireNoText(args: readonly Expr[], name: string): void {
  const bad = args.find((a) => WRITTEN.has(elementType(a.type)));
  if (bad === undefined) return;
  throw refusal(`${name} of ${bad.type}`, WRITTEN.get(elementType(bad.type)) ?? null);
}

function freeLiteral(expr: Expr, literals: LiteralForm): Expr {
  const value = literals.valueOf(expr);
  const element = elementType(expr.type);
  if (value === null || (!SETTING_READ.has(element) && element !== 'time')) return expr;
  const items = typeof value === 'string' ? [value] : value;
  const bad = items.find((text) => text !== null && !isSettingsFree(text, element));
  if (bad !== undefined) throw refusal(`\`${bad}\` as ${element}`, "write it as '2026-01-31 15:00:00+00'");
  if (element !== 'timestamptz' || isArray(expr.type) !== (typeof value !== 'string')) return expr;
  const fixed =
    typeof value === 'string' ? withOffset(value) : value.map((v) => (v === null ? null : withOffset(v)));
  return JSON.stringify(fixed) === JSON.stringify(value) ? expr : literals.make(fixed, expr.type);
}

const CLOCKED: ReadonlySet<TypeName> = new Set<TypeName>(['date', 'timestamp']);
const TEXTS: ReadonlySet<TypeName> = new Set<TypeName>(['text', 'bpchar']);

function freeCast(expr: Cast): Expr {
  const { arg, type } = expr;
  const [from, to] = [elementType(arg.type), elementType(type)];
  if (from === to) return expr;
  const crosses =
    (from === 'timestamptz' && (CLOCKED.has(to) || to === 'time')) ||
    (to === 'timestamptz' && CLOCKED.has(from));
  if (crosses) {
    if (isArray(type)) throw refusal(`${arg.type} as ${type}`, null);
    const moved = to === 'timestamptz' ? inUtc(inType(arg, 'timestamp')) : inUtc(arg);
    return moved.type === type && expr.modifiers.length === 0
      ? moved
      : Object.freeze({ ...expr, arg: moved });
  }
  if (to === 'timetz') throw refusal(`${arg.type} as timetz`, AT_UTC);
  if (from === 'money' || to === 'money') throw refusal(`${arg.type} as ${type}`, null);
  if (TEXTS.has(to) && WRITTEN.has(from)) throw refusal(`${arg.type} as text`, WRITTEN.get(from) ?? null);
  if (TEXTS.has(from) && (SETTING_READ.has(to) || to === 'time'))
    throw refusal(`a text as ${type}`, "use to_date(…, 'YYYY-MM-DD')");
  return expr;
}

const UTC: Expr = Object.freeze({ kind: 'structural', text: 'UTC', type: 'text' });

function inUtc(time: Expr): Expr {
  return callOf('timezone', [UTC, time]);
}

function callOf(name: string, args: readonly Expr[]): Expr {
  const types = args.map((a) => a.type);
  const found = resolveFunction(name, types);
  if (found === 'none' || found === 'ambiguous') throw refusal(`${name}(${types.join(', ')})`, AT_UTC);
  const [unit] = args;
  const units = found.definition.structural.get(0);
  if (units !== undefined && (unit?.kind !== 'structural' || !units.has(unit.text.toLowerCase())))
    throw refusal(`this field of ${name}`, AT_UTC);
  return callNode(found.definition, args, found.result);
}

function freeOperation(expr: Operation): Expr {
  const { left, right, definition } = expr;
  if (left === null) return expr;
  const types = [left.type, right.type];
  if (types.includes('timestamptz') && types.includes('interval') && expr.type === 'timestamptz') {
    const clock = (e: Expr): Expr => (e.type === 'timestamptz' ? inUtc(e) : e);
    return inUtc(operationOf(definition.name, clock(left), clock(right)));
  }
  if (types.includes('timestamptz') && types.some((t) => CLOCKED.has(t))) {
    const moment = (e: Expr): Expr => (e.type === 'timestamptz' ? e : inUtc(inType(e, 'timestamp')));
    return operationOf(definition.name, moment(left), moment(right));
  }
  if (definition.name === '@@' && left.type === 'text') throw refusal('the words of a text', null);
  if (definition.name === '||' && (left.type === 'text') !== (right.type === 'text'))
    requireNoText([left, right], '||');
  return ofOneClock(expr, [left, right]);
}

function operationOf(name: string, left: Expr, right: Expr): Expr {
  const found = resolveOperator(name, left.type, right.type);
  if (found === 'none' || found === 'ambiguous') throw refusal(`${left.type} ${name} ${right.type}`, AT_UTC);
  return operationNode(found.definition, left, right, found.result);
}

/** Refuses implicit conversion between timestamptz and date or timestamp. */
function ofOneClock<E extends Expr>(expr: E, args: readonly Expr[]): E {
  const types = args.map((a) => elementType(a.type));
  if (types.includes('timestamptz') && types.some((t) => CLOCKED.has(t)))
    throw refusal('comparing a timestamptz with a date or timestamp', AT_UTC);
  return expr;
}

/** Stable functions whose result does not depend on settings. */
const FREE: ReadonlySet<string> = new Set(['now', 'transaction_timestamp', 'statement_timestamp', 'to_date']);
const FREE_OF_TYPES: ReadonlySet<string> = new Set(['to_number', 'to_char']);
const WRITERS: ReadonlySet<string> = new Set([
  'array_to_string',
  'concat',
  'concat_ws',
  'format',
  'quote_literal',
  'quote_nullable',
  'to_jsonb',
  'jsonb_build_array',
  'jsonb_build_object',
]);
/** Functions that use the session's time zone for timestamptz. */
const ON_A_CLOCK: ReadonlySet<string> = new Set([
  'date_trunc',
  'extract',
  'date_part',
  'date',
  'age',
  'to_char',
]);

function freeCall(expr: FunctionCall, literals: LiteralForm): Expr {
  const { definition, args } = expr;
  const { name } = definition;
  if (definition.volatility === 'volatile')
    throw queryError('unsupported', { construct: `${name} in policy or a metric`, hint: null });
  const ofMoments = args.some((a) => a.type === 'timestamptz');
  if (ON_A_CLOCK.has(name) && ofMoments && !(name === 'date_trunc' && args.length === 3)) {
    if (name === 'to_char') requireNoZoneIn(args[1], literals);
    if (name === 'age' && args.length === 1) throw refusal('age of one argument', 'write age(now(), …)');
    const moved = callOf(
      name,
      args.map((a) => (a.type === 'timestamptz' ? inUtc(a) : a)),
    );
    return moved.type === 'timestamp' ? inUtc(moved) : moved;
  }
  if (definition.volatility !== 'stable') return ofOneClock(expr, args);
  if (WRITERS.has(name)) {
    requireNoText(args, name);
    return expr;
  }
  const known =
    FREE.has(name) ||
    FREE_OF_TYPES.has(name) ||
    (name === 'date_trunc' && args.length === 3) ||
    (name === 'make_timestamptz' && args.length === 7);
  if (!known) throw refusal(`${name}(${args.map((a) => a.type).join(', ')})`, AT_UTC);
  return expr;
}

/** Refuses format templates that include the time zone, or that are not literals. */
function requireNoZoneIn(template: Expr | undefined, literals: LiteralForm): void {
  const text = template === undefined ? null : literals.valueOf(template);
  if (typeof text !== 'string' || /tz|of/i.test(text)) throw refusal('to_char with this template', AT_UTC);
}

/** Prepended to an expression to make a statement that the parser accepts. */
export const PREFIX = 'select ';

/** Caches syntax trees of manifest and policy texts, which repeat. The trees are never modified. */
const NODES = new Map<string, Node>();
/**
 * Maximum number of cached texts; when it is reached, the cache is cleared. One manifest has far fewer, but texts of
 * replaced manifests remain cached.
 */
const MOST_NODES = 10_000;

/**
 * Parses a text of the manifest or policy as a single value expression, with caching. Texts of callers are parsed by
 * `parseExpression`, without caching.
 */
export function expressionNode(text: string): Node {
  const known = NODES.get(text);
  if (known !== undefined) return known;
  const node = parseExpression(text);
  if (NODES.size >= MOST_NODES) NODES.clear();
  NODES.set(text, node);
  return node;
}

/** Parses `text` as a single value expression. @throws QueryError E0511 */
export function parseExpression(text: string): Node {
  const { node } = parse(`${PREFIX}${text}`);
  const select = 'SelectStmt' in node ? node.SelectStmt : {};
  const target = select.targetList?.[0];
  const value = target !== undefined && 'ResTarget' in target ? target.ResTarget : {};
  const plain = Object.keys(select).every((k) => k === 'targetList' || k === 'limitOption' || k === 'op');
  if (value.val === undefined || value.name !== undefined || select.targetList?.length !== 1 || !plain) {
    throw queryError('syntax', { detail: 'one expression is needed here' });
  }
  return value.val;
}

/** Makes a manifest expression independent of session settings. Its literals are stored in the slots of `ctx`. */
export function ofManifest(value: Expr, ctx: BindContext): Expr {
  return settingsFree(value, {
    valueOf: (e) => ctx.literalValue(e),
    make: (v, type) =>
      ctx.literal(
        typeof v === 'string'
          ? new WrittenLiteral(v, null)
          : v.map((item) => (item === null ? null : new WrittenLiteral(item, null))),
        type,
      ),
  });
}
