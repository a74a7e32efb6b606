import type { Node, SubLink } from '@pgsql/types';
import { calledName, literalOf, namesOf } from '../nodes.js';
import { asList, type CallerValue, callerValueOf, claimValue, unwrapped } from './caller-value.js';
import { membership } from './membership.js';
import { rowExpression } from './row-expression.js';
import { boundNode, type NameScope, operatorOf, resolve, Untranslatable } from './scope.js';
import type { ConditionPlace, Translation } from './translation.js';
import { type InlinedCall, inlined, membershipOfRole } from './translation.js';

/**
 * Writes a condition as a row filter over `range`. The filter accepts no row that the condition does not accept.
 *
 * @throws Untranslatable
 */
export function condition(node: Node, place: ConditionPlace): string {
  const { scope, range, context, positive } = place;
  const of = (inner: Node, isPositive = positive): string =>
    condition(inner, { ...place, positive: isPositive });
  const argument = resolvedArgument(node, scope);
  if (argument !== null) return condition(argument.node, { ...place, scope: argument.scope });
  if ('BoolExpr' in node) {
    const { boolop, args = [] } = node.BoolExpr;
    const [first] = args;
    if (boolop === 'NOT_EXPR' && first !== undefined) return negated(of(first, !positive));
    const parts = args.map((part) => of(part));
    return boolop === 'AND_EXPR' ? allOf(parts, context) : `(${parts.join(' or ')})`;
  }
  const member = membershipOfRole(node, context.user);
  if (member !== null) return String(member);
  const call = inlined(node, scope, context.functions, context.searchPath, context.user);
  if (call !== null)
    return condition(call.node, { ...place, scope: call.scope, context: callContext(context, call) });
  if ('TypeCast' in node && node.TypeCast.arg !== undefined && isBoolean(node)) return of(node.TypeCast.arg);
  if (isWrappedSelect(node)) return of(unwrapped(node));
  if ('SubLink' in node) return membership(node.SubLink, isScalar(node.SubLink), place);
  const caller = callerValue(node, context);
  if (caller !== null) return `true = attribute('${context.attributes.caller(caller)}')`;
  if ('NullTest' in node && node.NullTest.arg !== undefined) {
    const tested = callerValue(node.NullTest.arg, context);
    if (tested !== null) return presence(tested, node.NullTest.nulltesttype === 'IS_NOT_NULL', place);
  }
  const single = positive ? singleClaim(node) : null;
  if (single !== null) return presence(single, true, place);
  const compared = comparison(node, place);
  return compared ?? rowExpression(node, scope, range);
}

/** Joins filters with AND. Drops a presence test for an attribute that another part needs anyway. */
function allOf(parts: readonly string[], { attributes }: Translation): string {
  const needed = parts.filter((part, i) => {
    const [, name] = PRESENCE.exec(part) ?? [];
    const isNeeded = (other: string, j: number): boolean =>
      j !== i && attributes.needsOf(other).has(name ?? '') && (j < i || !PRESENCE.test(other));
    return name === undefined || !parts.some(isNeeded);
  });
  const [only, another] = needed;
  return only !== undefined && another === undefined ? only : `(${needed.join(' and ')})`;
}

const PRESENCE = /^\('' = attribute\('([^']+)'\) or true\)$/;

/** The claim in `jsonb_typeof(claim) = ANY (…)`, by which an export tests for a single value; otherwise null. */
function singleClaim(node: Node): CallerValue | null {
  if (!('A_Expr' in node) || node.A_Expr.kind !== 'AEXPR_OP_ANY' || operatorOf(node.A_Expr.name) !== '=')
    return null;
  const { lexpr, rexpr } = node.A_Expr;
  const tested = lexpr === undefined ? null : unwrapped(lexpr);
  if (tested === null || rexpr === undefined || !('FuncCall' in tested)) return null;
  const { schema, name } = calledName(tested.FuncCall);
  const [claim] = tested.FuncCall.args ?? [];
  if (schema !== null || name !== 'jsonb_typeof' || claim === undefined) return null;
  const types = elementsOf(rexpr).map((one) => literalOf(one));
  return ['string', 'number', 'boolean'].every((type) => types.includes(type)) ? claimValue(claim) : null;
}

function negated(text: string): string {
  if (text === 'true' || text === 'false') return String(text === 'false');
  return `not (${text})`;
}

/** Writes a presence test, the same for every row. It names the attribute, without which a filter accepts no row. */
function presence(value: CallerValue, isPresent: boolean, { context, positive }: ConditionPlace): string {
  if (isPresent !== positive) throw new Untranslatable('that a value of the caller is missing');
  const known = `'' = attribute('${context.attributes.caller(value)}')`;
  return isPresent ? `(${known} or true)` : `(${known} and false)`;
}

/** The context of a function's body: its own search_path, and the rows that its owner, or the current user, may read. */
function callContext(context: Translation, { searchPath, rights }: InlinedCall): Translation {
  const rows = rights?.rows ?? context.rowsOfUser;
  return {
    ...context,
    ...(searchPath !== null && { searchPath }),
    ...(rights !== null && { user: rights.user }),
    readableRows: rows,
    rowsOfUser: rows,
  };
}

/**
 * The value of the caller that a node reads; null for any other node.
 *
 * @throws Untranslatable for current_user in a SECURITY DEFINER function
 */
function callerValue(node: Node, { user }: Translation): CallerValue | null {
  const value = callerValueOf(node);
  if (value?.source.kind === 'database user' && !user.isCaller)
    throw new Untranslatable('current_user in a SECURITY DEFINER function, which is its owner there');
  return value;
}

function resolvedArgument(node: Node, scope: NameScope) {
  const found = resolve(node, scope);
  return found !== null && 'node' in found ? found : null;
}

/** True for a subquery used as a single value. */
function isScalar({ subLinkType }: SubLink): boolean {
  return subLinkType === 'EXPR_SUBLINK';
}

function isBoolean(node: Node): boolean {
  return 'TypeCast' in node && namesOf(node.TypeCast.typeName?.names).at(-1) === 'bool';
}

function isWrappedSelect(node: Node): boolean {
  return 'SubLink' in node && unwrapped(node) !== node;
}

/** Translates a comparison with a value of the caller or with rows of a table; returns null for any other node. */
function comparison(node: Node, place: ConditionPlace): string | null {
  const { scope, context, positive } = place;
  if (!('A_Expr' in node)) return null;
  const { kind, name, lexpr, rexpr } = node.A_Expr;
  if (lexpr === undefined || rexpr === undefined) return null;
  const operator = operatorOf(name);
  const [left, right] = [comparedValue(lexpr, scope, context), comparedValue(rexpr, scope, context)];
  if (kind === 'AEXPR_OP_ANY' && operator === '=') {
    if (right?.kind === 'caller') return matches(lexpr, asList(right.value), place);
    if (right?.kind === 'rows') return ofRows(lexpr, right, place);
    return left?.kind === 'caller' ? callerAmong(left.value, elementsOf(rexpr), operator, place) : null;
  }
  if (kind === 'AEXPR_IN' && left?.kind === 'caller')
    return callerAmong(left.value, elementsOf(rexpr), operator, place);
  if (kind !== 'AEXPR_OP') {
    if (left === null && right === null) return null;
    throw new Untranslatable(`a value of the caller in ${(kind ?? '').slice(6)}`);
  }
  if (operator === '?') {
    const list = claimValue(lexpr);
    if (list !== null) return matches(rexpr, asList(list), place);
  }
  const [value, other] = right === null ? [left, rexpr] : [right, lexpr];
  if (value === null) return null;
  if (left !== null && right !== null) throw new Untranslatable('a comparison of two values of the caller');
  if (operator !== '=' && operator !== '<>')
    throw new Untranslatable(
      `a value of the caller is compared by ${operator}: attributes are compared by = only`,
    );
  if (value.kind === 'caller') {
    const text = matches(other, value.value, place);
    return operator === '=' ? text : `not (${text})`;
  }
  return operator === '='
    ? ofRows(other, value, place)
    : `not (${ofRows(other, value, { ...place, positive: !positive })})`;
}

/** The elements of a list or of ARRAY[…]. @throws Untranslatable for any other array */
function elementsOf(list: Node): readonly Node[] {
  const inner = unwrapped(list);
  if ('List' in inner) return inner.List.items ?? [];
  if ('A_ArrayExpr' in inner) return inner.A_ArrayExpr.elements ?? [];
  throw new Untranslatable('a column that is a list, compared with a value of the caller');
}

type ComparisonOperand =
  | { readonly kind: 'caller'; readonly value: CallerValue }
  | {
      readonly kind: 'rows';
      readonly node: Node;
      readonly scope: NameScope;
      readonly context: Translation;
    };

/** The operand of a comparison if it is a value of the caller or the rows of a subquery; otherwise null. */
function comparedValue(node: Node, scope: NameScope, context: Translation): ComparisonOperand | null {
  const caller = callerValue(node, context);
  if (caller !== null) return { kind: 'caller', value: caller };
  const inner = unwrapped(node);
  const argument = resolvedArgument(inner, scope);
  if (argument !== null) return comparedValue(argument.node, argument.scope, context);
  if ('FuncCall' in inner) {
    const call = inlined(inner, scope, context.functions, context.searchPath, context.user);
    if (call !== null) return comparedValue(call.node, call.scope, callContext(context, call));
  }
  if (
    'SubLink' in inner &&
    (inner.SubLink.subLinkType === 'EXPR_SUBLINK' || inner.SubLink.subLinkType === 'ARRAY_SUBLINK')
  )
    return { kind: 'rows', node: inner, scope, context };
  return null;
}

/** Writes `expression = attribute('name')`. */
function matches(node: Node, value: CallerValue | null, { scope, range, context }: ConditionPlace): string {
  if (value === null) throw new Untranslatable('a list that is not a value of the caller');
  return `${rowExpression(node, scope, range)} = attribute('${context.attributes.caller(value)}')`;
}

function callerAmong(
  value: CallerValue,
  items: readonly Node[],
  operator: string,
  place: ConditionPlace,
): string {
  const each = items.map((item) => matches(item, value, place));
  return operator === '=' ? `(${each.join(' or ')})` : `not (${each.join(' or ')})`;
}

/** Writes a comparison with the rows of a scalar subquery or of ARRAY(SELECT …). */
function ofRows(
  compared: Node,
  { node, scope, context }: Extract<ComparisonOperand, { kind: 'rows' }>,
  place: ConditionPlace,
): string {
  if (!('SubLink' in node)) throw new Untranslatable('a list of rows');
  // An empty scalar subquery is NULL, so NOT accepts no row; NOT over an empty list accepts all.
  if (!place.positive && isScalar(node.SubLink))
    throw new Untranslatable('NOT over a comparison with a subquery');
  const link = {
    ...node.SubLink,
    subLinkType: 'ANY_SUBLINK' as const,
    testexpr: boundNode({ node: compared, scope: place.scope }),
  };
  return membership(link, isScalar(node.SubLink), { ...place, scope, context });
}
