import type { Node } from '@pgsql/types';
import type { TypeName } from 'osl-compiler';
import {
  and,
  argumentsOf,
  boolean,
  type ComparedValue,
  columnKey,
  comparison,
  type Encoder,
  equal,
  type Formula,
  ifThenElse,
  literalKey,
  NULL_KEY,
  not,
  number,
  operationKey,
  or,
  type RowVariable,
  TRUE,
  type Truth,
  text,
  type Value,
  variable,
} from '../../../policy/proof/index.js';
import { type ColumnOf, type Home, NotUnderstood } from './scope.js';

/** Value of an expression in a policy, as formulas over one row and one caller. */
export type Term = TruthTerm | ValueTerm | CallerTerm | ClaimsTerm | ElementsTerm | ArrayTerm;

export interface TruthTerm {
  readonly kind: 'truth';
  readonly truth: Truth;
  readonly key: string;
}

export interface ValueTerm {
  readonly kind: 'value';
  readonly value: Value;
  /** Null if unknown, as for a literal whose type follows from its context. */
  readonly type: TypeName | null;
  readonly key: string;
  readonly column: RowVariable | null;
  /** Text of a literal; null for anything else. */
  readonly literal: string | null;
}

/** A single value of the caller: a setting, or a claim as text. */
export interface CallerTerm {
  readonly kind: 'caller';
  /** Name of the attribute; if there is none, a name for the setting or claim. */
  readonly attribute: string;
  /** Type of the last cast; text without a cast. */
  readonly type: TypeName;
  /** True if an empty text counts as NULL. */
  readonly emptyIsNull: boolean;
  /** Value that replaces NULL, as in COALESCE. */
  readonly otherwise: ValueTerm | TruthTerm | null;
  readonly key: string;
}

/** Claims as JSON: all claims, or the value at a path. */
interface ClaimsTerm {
  readonly kind: 'claims';
  readonly path: readonly string[];
  readonly key: string;
}

/** The elements of a list of the caller. */
export interface ElementsTerm {
  readonly kind: 'elements';
  readonly attribute: string;
  readonly type: TypeName;
  /** True if a missing list has no elements; false if a missing list is NULL. */
  readonly missingIsEmpty: boolean;
  readonly key: string;
}

interface ArrayTerm {
  readonly kind: 'array';
  readonly items: readonly Term[];
  readonly key: string;
}

/** True if a setting or claim of the caller is an empty text, which counts as a missing attribute. */
function isBlank(attribute: string, encoder: Encoder): Formula {
  const missing = encoder.attribute(attribute, 'missing');
  return and(missing, variable(`${encoder.caller} blank ${attribute}`, 'Bool'));
}

export function isNull(term: Term, encoder: Encoder): Formula | null {
  switch (term.kind) {
    case 'truth':
      return and(not(term.truth.isTrue), not(term.truth.isFalse));
    case 'value':
      return term.value.isNull;
    case 'caller': {
      const none = isCallerNull(term, encoder);
      return term.otherwise === null ? none : and(none, isNull(term.otherwise, encoder) ?? none);
    }
    case 'claims':
    case 'elements':
    case 'array':
      return null;
  }
}

function isCallerNull({ attribute, type, emptyIsNull }: CallerTerm, encoder: Encoder): Formula {
  const missing = encoder.attribute(attribute, 'missing');
  // Casting an empty text to another type fails in the database, so the result does not matter.
  return emptyIsNull || type !== 'text' ? missing : and(missing, not(isBlank(attribute, encoder)));
}

const INTEGERS: ReadonlySet<TypeName> = new Set(['int2', 'int4', 'int8']);

function isTextual(type: TypeName): boolean {
  return type === 'text' || type === 'bpchar';
}

/** True if Postgres compares values of these types in the same way as this logic. */
function areCompared(a: TypeName, b: TypeName): boolean {
  if (a === b || (isTextual(a) && isTextual(b))) return true;
  const exact = (type: TypeName): boolean => INTEGERS.has(type) || type === 'numeric';
  return exact(a) && exact(b);
}

/** Truth of `x = caller`, NULLs included; null if the logic has no such comparison. */
export function callerEquals(
  caller: CallerTerm,
  other: ValueTerm | TruthTerm,
  encoder: Encoder,
): Truth | null {
  const term = other.kind === 'value' ? typed(other, caller.type, encoder) : other;
  const type = term.kind === 'truth' ? 'bool' : (term.type ?? 'text');
  const fits = type === caller.type || areAlike(type, caller.type);
  if (!fits) return null;
  const missing = encoder.attribute(caller.attribute, 'missing');
  const matches = and(not(missing), encoder.compare(caller.attribute, comparedValue(term, type)));
  const blank = isBlank(caller.attribute, encoder);
  const isText = caller.type === 'text' && !caller.emptyIsNull && term.kind === 'value';
  const emptyMatches =
    isText && term.value.kind === 'text' ? and(blank, equal(term.value.value, text(''))) : or();
  const none = isCallerNull(caller, encoder);
  const usual = valuesEqual(caller.otherwise, term, encoder);
  if (usual === null) return null;
  const isTrue = or(matches, emptyMatches, and(none, usual.isTrue));
  const unknown = isNull(term, encoder) ?? or();
  const isFalse = or(and(not(none), not(matches), not(emptyMatches)), and(none, usual.isFalse));
  return { isTrue: and(not(unknown), isTrue), isFalse: and(not(unknown), isFalse) };
}

function areAlike(a: TypeName, b: TypeName): boolean {
  return (INTEGERS.has(a) && INTEGERS.has(b)) || (isTextual(a) && isTextual(b));
}

function valuesEqual(a: CallerTerm['otherwise'], b: ValueTerm | TruthTerm, encoder: Encoder): Truth | null {
  if (a === null) return { isTrue: or(), isFalse: or() };
  if (a.kind === 'truth' && b.kind === 'truth') return truthsEqual(a.truth, b.truth);
  return a.kind === 'value' && b.kind === 'value' ? compareValues('=', a, b, encoder) : null;
}

/** Truth of `x = ANY (list)` for a list of the caller; null if the logic has no such comparison. */
export function isElement(list: ElementsTerm, other: ValueTerm | TruthTerm, encoder: Encoder): Truth | null {
  const term = other.kind === 'value' ? typed(other, list.type, encoder) : other;
  const type = term.kind === 'truth' ? 'bool' : (term.type ?? 'text');
  if (type !== list.type && !areAlike(type, list.type)) return null;
  const missing = encoder.attribute(list.attribute, 'missing');
  const empty = encoder.attribute(list.attribute, 'empty');
  const has = encoder.compare(list.attribute, comparedValue(term, type));
  const unknown = isNull(term, encoder) ?? or();
  const none = list.missingIsEmpty ? missing : isBlank(list.attribute, encoder);
  const some = and(not(missing), not(empty), not(unknown));
  return { isTrue: and(some, has), isFalse: or(none, and(not(missing), empty), and(some, not(has))) };
}

export function comparedValue(term: ValueTerm | TruthTerm, type: TypeName): ComparedValue {
  if (term.kind === 'truth') {
    const digit = ifThenElse(term.truth.isTrue, number('1', 'Int'), number('0', 'Int'));
    return { type: 'bool', args: [digit], key: term.key, column: null };
  }
  return { type, args: argumentsOf(term.value), key: term.key, column: term.column };
}

/** Gives an untyped literal the type of its context, or text. Leaves other terms unchanged. */
export function typed(term: ValueTerm, type: TypeName | null, encoder: Encoder): ValueTerm {
  if (term.type !== null || term.literal === null) return term;
  return literalTerm(term.literal, type ?? 'text', encoder);
}

export function literalTerm(literal: string, type: TypeName, encoder: Encoder): ValueTerm {
  const value = encoder.value({ kind: 'literal', value: literal, type });
  return { kind: 'value', value, type, key: literalKey(literal, type), column: null, literal };
}

function truthsEqual(a: Truth, b: Truth): Truth {
  return {
    isTrue: or(and(a.isTrue, b.isTrue), and(a.isFalse, b.isFalse)),
    isFalse: or(and(a.isTrue, b.isFalse), and(a.isFalse, b.isTrue)),
  };
}

/** Operators that compare two values. */
export const COMPARISONS: ReadonlySet<string> = new Set(
  '= <> < > <= >= ~~ !~~ ~~* !~~* ^@ ~ ~* !~ !~* @> <@ && ? ?| ?&'.split(' '),
);
const PATTERNS: ReadonlySet<string> = new Set(['~~', '!~~', '^@']);

/**
 * Compares two values of rows or literals. For an unsupported operator, returns an unknown truth value that is the same
 * for the same operands.
 */
function compareValues(operator: string, left: ValueTerm, right: ValueTerm, encoder: Encoder): Truth {
  const [a, b] = [typed(left, right.type, encoder), typed(right, left.type, encoder)];
  const [from, to] = [a.type ?? 'text', b.type ?? 'text'];
  const isPadded = from === 'bpchar' && PATTERNS.has(operator);
  const holds = isPadded || !areCompared(from, to) ? null : comparison(operator, a.value, b.value);
  const known = and(not(a.value.isNull), not(b.value.isNull));
  if (holds !== null) return { isTrue: and(known, holds), isFalse: and(known, not(holds)) };
  const key = operationKey(operator, a.key, b.key);
  const { isTrue, isFalse } = encoder.unknownTruth(key, `the operator ${operator} on ${from}`);
  return { isTrue: and(known, isTrue), isFalse: and(known, isFalse) };
}

/** A comparison of two terms; null if the logic has no such comparison. */
export function compareTerms(operator: string, a: Term, b: Term, encoder: Encoder): Truth | null {
  if (a.kind === 'value' && b.kind === 'value') return compareValues(operator, a, b, encoder);
  if (operator !== '=' && operator !== '<>') return null;
  const same = equalTerms(a, b, encoder) ?? equalTerms(b, a, encoder);
  if (same === null || operator === '=') return same;
  return { isTrue: same.isFalse, isFalse: same.isTrue };
}

function equalTerms(a: Term, b: Term, encoder: Encoder): Truth | null {
  if (a.kind === 'truth' && b.kind === 'truth') return truthsEqual(a.truth, b.truth);
  return a.kind === 'caller' && (b.kind === 'value' || b.kind === 'truth')
    ? callerEquals(a, b, encoder)
    : null;
}

/** True for a value or truth value; false for values and lists of the caller. */
export function isRowTerm(term: Term): term is ValueTerm | TruthTerm {
  return term.kind === 'value' || term.kind === 'truth';
}

export const NULL_TERM: ValueTerm = {
  kind: 'value',
  value: { kind: 'opaque', isNull: TRUE },
  type: null,
  key: NULL_KEY,
  column: null,
  literal: null,
};

export function truthLiteral(literal: string): TruthTerm {
  const value = /^(t|true|on|yes|1)$/i.test(literal.trim());
  const isFalse = /^(f|false|off|no|0)$/i.test(literal.trim());
  if (!value && !isFalse) throw new NotUnderstood(`the literal ${literal} as boolean`);
  return {
    kind: 'truth',
    truth: { isTrue: boolean(value), isFalse: boolean(!value) },
    key: literalKey(String(value), 'bool'),
  };
}

export function columnTerm({ range, column }: ColumnOf, home: Home): Term {
  const { encoder } = home;
  if (range !== home.range) throw new NotUnderstood(`the column ${range.alias}.${column} of another table`);
  const own = range.entity?.columns.find(({ physical }) => physical === column);
  if (own === undefined) throw new NotUnderstood(`the column ${column}, which the model does not have`);
  const { type, stored } = own;
  const base = { kind: 'base' as const, column, type, ...(stored !== undefined && { stored }) };
  const key = columnKey(column);
  if (type === 'bool' && stored === undefined) return { kind: 'truth', truth: encoder.truth(base), key };
  const value = encoder.value(base);
  const found = encoder.columns.get(column) ?? null;
  // A type that OSL-SQL treats as text may compare differently from text.
  const isPlain = stored === undefined || own.labels !== undefined || stored === 'name';
  return isPlain
    ? { kind: 'value', value, type, key, column: found, literal: null }
    : {
        kind: 'value',
        value: { kind: 'opaque', isNull: value.isNull },
        type: null,
        key,
        column: found,
        literal: null,
      };
}

export function constantTerm(node: Extract<Node, { A_Const: unknown }>, encoder: Encoder): Term {
  const { sval, ival, fval, boolval, isnull } = node.A_Const;
  if (isnull === true) return NULL_TERM;
  if (boolval !== undefined) return truthLiteral(String(boolval.boolval === true));
  if (ival !== undefined) return literalTerm(String(ival.ival ?? 0), 'int4', encoder);
  if (fval !== undefined) {
    const digits = fval.fval ?? '0';
    return literalTerm(digits, digits.includes('.') ? 'numeric' : 'int8', encoder);
  }
  if (sval === undefined) throw new NotUnderstood('a bit string');
  return { ...literalTerm(sval.sval ?? '', 'text', encoder), type: null };
}

export function isSameCaller(a: CallerTerm, b: CallerTerm): boolean {
  return a.attribute === b.attribute && a.type === b.type && a.otherwise === null && b.otherwise === null;
}
