import {
  type AttributeMatch,
  assertNever,
  type Expr,
  fingerprint,
  type Relation,
  type TypeName,
} from 'osl-compiler';
import { attributesOf } from '../attributes.js';
import {
  and,
  arithmetic,
  boolean,
  equal,
  FALSE,
  type Formula,
  ifThenElse,
  isPrefix,
  less,
  not,
  number,
  or,
  TRUE,
  text,
  textLess,
  unknown,
  variable,
} from './formula.js';
import { momentOf, numberIn, rangeOf, rankIn } from './literals.js';

/**
 * Translates a predicate over a row to formulas, in SQL's three-valued logic. An expression outside the supported
 * fragment becomes an unknown value, the same for equal expressions of one row and caller: a proof then holds whatever
 * the value is, but a counterexample may be spurious.
 */

/** An SQL truth value as two formulas; the value is NULL if both are false. */
export interface Truth {
  readonly isTrue: Formula;
  readonly isFalse: Formula;
}

/**
 * A value other than a truth value.
 *
 * - `ordered`: numbers, dates and times. `rank` is 0 for finite values, -1 for -infinity, 1 for infinity, 2 for NaN.
 * - `text`: `isBytewise` if values are ordered by code point.
 * - `opaque`: only `isNull` is known.
 */
export type Value =
  | { readonly kind: 'ordered'; readonly isNull: Formula; readonly rank: Formula; readonly value: Formula }
  | { readonly kind: 'text'; readonly isNull: Formula; readonly value: Formula; readonly isBytewise: boolean }
  | { readonly kind: 'opaque'; readonly isNull: Formula };

/** A column of the row, represented by variables of the solver. */
export interface RowVariable {
  readonly column: string;
  readonly type: TypeName;
  /** Names of variables: true if NULL; value (null for unsupported types); rank (null for types without infinity). */
  readonly isNull: string;
  readonly value: string | null;
  readonly rank: string | null;
}

/** A comparison of a row value with an attribute. */
export interface AttributeComparison {
  readonly attribute: string;
  readonly type: TypeName;
  readonly args: readonly Formula[];
  /** The compared column; null if another expression is compared. */
  readonly value: RowVariable | null;
}

const FINITE = number('0', 'Int');
const NULL_TRUTH: Truth = { isTrue: FALSE, isFalse: FALSE };

/** A value that is compared with the values of an attribute. */
export interface ComparedValue {
  readonly type: TypeName;
  /** The value as arguments for `membership`; null if nothing is known about the value. */
  readonly args: readonly Formula[] | null;
  /** Key of the expression; equal expressions have equal keys. */
  readonly key: string;
  /** The column, if the expression is a column or its cast to text; otherwise null. */
  readonly column: RowVariable | null;
}

/** Encodes predicates over one row as formulas for one caller. */
export class Encoder {
  /** The columns in the formulas, by physical name. */
  readonly columns = new Map<string, RowVariable>();
  /** Constraints on variables: NOT NULL, ranges of types, labels of enums. */
  readonly facts: Formula[] = [];
  /** Descriptions of unknown values, by the name of their variable. */
  readonly unknowns = new Map<string, string>();
  /** Row values that predicates compare with attributes of the caller. */
  readonly memberships: AttributeComparison[] = [];
  /** All row values compared with attributes, including opaque ones and those added by `compare`. */
  readonly uses: { readonly attribute: string; readonly compared: ComparedValue }[] = [];
  /** Names of the caller's attributes, and keys of the conditions, in the formulas. */
  readonly attributes = new Set<string>();
  readonly conditions = new Set<string>();
  readonly relation: Relation;
  readonly caller: string;
  readonly #shared: Encoder | null;
  readonly #key: (expr: Expr) => string;
  readonly #truths = new Map<Expr, Truth>();

  /**
   * @param caller name of the caller, used in the names of variables
   * @param sameRow encoder of another caller who looks at the same row
   * @param key returns a text that is equal only for equal expressions
   */
  constructor(
    relation: Relation,
    caller = 'caller',
    sameRow: Encoder | null = null,
    key: (expr: Expr) => string = fingerprint,
  ) {
    this.relation = relation;
    this.caller = caller;
    this.#shared = sameRow;
    this.#key = key;
  }

  /** Returns a formula that is true if the row passes the filter: never if the caller lacks an attribute in it. */
  accepts(filter: Expr | null): Formula {
    if (filter === null) return TRUE;
    const hasAttributes = [...attributesOf(filter)].map((name) => not(this.attribute(name, 'missing')));
    return and(...hasAttributes, this.truth(filter).isTrue);
  }

  /** Returns a variable that is true if the caller's attribute has this property. */
  attribute(name: string, property: 'missing' | 'any' | 'empty'): Formula {
    this.attributes.add(name);
    return variable(`${this.caller} ${property} ${name}`, 'Bool');
  }

  /** Returns a variable that is true if the conditions of a grant hold; equal conditions share a variable. */
  condition(key: string): Formula {
    this.conditions.add(key);
    return variable(`${this.caller} holds ${key}`, 'Bool');
  }

  truth(expr: Expr): Truth {
    const cached = this.#truths.get(expr);
    if (cached !== undefined) return cached;
    const truth = this.#truth(expr);
    this.#truths.set(expr, truth);
    return truth;
  }

  #truth(expr: Expr): Truth {
    switch (expr.kind) {
      case 'boolean':
        return { isTrue: boolean(expr.value), isFalse: boolean(!expr.value) };
      case 'null':
        return NULL_TRUTH;
      case 'literal':
        return expr.value === 'true' || expr.value === 't'
          ? { isTrue: TRUE, isFalse: FALSE }
          : expr.value === 'false' || expr.value === 'f'
            ? { isTrue: FALSE, isFalse: TRUE }
            : this.#unknownTruth(expr, 'a literal');
      case 'base':
        return this.#flag(expr.column);
      case 'and': {
        const args = expr.args.map((a) => this.truth(a));
        return { isTrue: and(...args.map((a) => a.isTrue)), isFalse: or(...args.map((a) => a.isFalse)) };
      }
      case 'or': {
        const args = expr.args.map((a) => this.truth(a));
        return { isTrue: or(...args.map((a) => a.isTrue)), isFalse: and(...args.map((a) => a.isFalse)) };
      }
      case 'not': {
        const { isTrue, isFalse } = this.truth(expr.arg);
        return { isTrue: isFalse, isFalse: isTrue };
      }
      case 'null_test':
        return definite(this.#isNull(expr.arg), expr.negated);
      case 'truth_test': {
        const { isTrue, isFalse } = this.truth(expr.arg);
        const holds =
          expr.test === 'true' ? isTrue : expr.test === 'false' ? isFalse : and(not(isTrue), not(isFalse));
        return definite(holds, expr.negated);
      }
      case 'distinct_test':
        return this.#distinct(expr);
      case 'operation':
        return expr.left === null
          ? this.#unknownTruth(expr, `the operator ${expr.definition.name}`)
          : this.#comparison(expr.definition.name, expr.left, expr.right, expr);
      case 'quantified':
        return this.#quantified(expr);
      case 'membership': {
        const membership = anyOf(expr.items.map((item) => this.#comparison('=', expr.arg, item, expr)));
        return expr.negated ? { isTrue: membership.isFalse, isFalse: membership.isTrue } : membership;
      }
      case 'case': {
        const arms = expr.arms.map(({ when, result }) => [this.truth(when), this.truth(result)] as const);
        return arms.reduceRight<Truth>(
          (rest, [when, result]) => ({
            isTrue: ifThenElse(when.isTrue, result.isTrue, rest.isTrue),
            isFalse: ifThenElse(when.isTrue, result.isFalse, rest.isFalse),
          }),
          this.truth(expr.otherwise),
        );
      }
      case 'attribute_match':
        return this.#match(expr);
      case 'conditional':
        return expr.form === 'coalesce'
          ? expr.args.map((a) => this.truth(a)).reduceRight(coalesceTruth)
          : this.#unknownTruth(expr, expr.form);
      default:
        return this.#unknownTruth(expr, nameOf(expr));
    }
  }

  #isNull(expr: Expr): Formula {
    if (expr.type !== 'bool') return this.value(expr).isNull;
    const { isTrue, isFalse } = this.truth(expr);
    return and(not(isTrue), not(isFalse));
  }

  #comparison(operator: string, left: Expr, right: Expr, whole: Expr): Truth {
    if (left.type === 'bool' && right.type === 'bool')
      return this.#compareTruths(operator, left, right, whole);
    const [a, b] = [this.value(left), this.value(right)];
    const notNull = and(not(a.isNull), not(b.isNull));
    // LIKE sees the trailing blanks of a char(n), which are not part of its value here.
    const isPadded = left.type === 'bpchar' && PATTERNS.has(operator);
    const holds = isPadded ? null : comparison(operator, a, b);
    if (holds !== null) return { isTrue: and(notNull, holds), isFalse: and(notNull, not(holds)) };
    const { isTrue, isFalse } = this.#unknownTruth(whole, this.#culprit(operator, left, right));
    return { isTrue: and(notNull, isTrue), isFalse: and(notNull, isFalse) };
  }

  /** Names the part outside the supported fragment: an opaque side, or otherwise the operator. */
  #culprit(operator: string, left: Expr, right: Expr): string {
    const opaque = [left, right].find((side) => this.value(side).kind === 'opaque');
    return opaque === undefined ? `the operator ${operator} on ${left.type}` : nameOf(opaque);
  }

  #compareTruths(operator: string, left: Expr, right: Expr, whole: Expr): Truth {
    const [a, b] = [this.truth(left), this.truth(right)];
    const same = or(and(a.isTrue, b.isTrue), and(a.isFalse, b.isFalse));
    const other = or(and(a.isTrue, b.isFalse), and(a.isFalse, b.isTrue));
    if (operator === '=') return { isTrue: same, isFalse: other };
    if (operator === '<>') return { isTrue: other, isFalse: same };
    return this.#unknownTruth(whole, `the operator ${operator} on bool`);
  }

  #distinct(expr: Extract<Expr, { readonly kind: 'distinct_test' }>): Truth {
    const { isTrue, isFalse } = this.#comparison('=', expr.left, expr.right, expr);
    const [leftNull, rightNull] = [this.#isNull(expr.left), this.#isNull(expr.right)];
    const isSame = or(isTrue, and(leftNull, rightNull));
    const isOther = or(isFalse, and(leftNull, not(rightNull)), and(not(leftNull), rightNull));
    return expr.negated ? { isTrue: isSame, isFalse: isOther } : { isTrue: isOther, isFalse: isSame };
  }

  #quantified(expr: Extract<Expr, { readonly kind: 'quantified' }>): Truth {
    const { array, arg, definition, quantifier } = expr;
    const items = itemsOf(array, arg.type);
    if (items === null) return this.#unknownTruth(expr, nameOf(array));
    const each = items.map((item) => this.#comparison(definition.name, arg, item, expr));
    if (quantifier === 'any') return anyOf(each);
    return { isTrue: and(...each.map((t) => t.isTrue)), isFalse: or(...each.map((t) => t.isFalse)) };
  }

  /** Compares a value, even NULL, with an attribute: true if the attribute is `any`, false if it has no values. */
  #match({ attribute, arg }: AttributeMatch): Truth {
    const [any, empty] = [this.attribute(attribute, 'any'), this.attribute(attribute, 'empty')];
    const [isNull, among] = this.#among(arg, attribute);
    const hasValues = and(not(any), not(empty));
    return {
      isTrue: or(any, and(hasValues, not(isNull), among)),
      isFalse: or(and(not(any), empty), and(hasValues, not(isNull), not(among))),
    };
  }

  /** Returns a formula that is true if the caller's attribute has the value: an uninterpreted function of the value. */
  membership(attribute: string, type: TypeName, args: readonly Formula[]): Formula {
    return unknown(`${this.caller} has ${attribute} of ${type}`, args);
  }

  #among(arg: Expr, attribute: string): readonly [isNull: Formula, among: Formula] {
    const [isNull, args] = this.#argument(arg);
    const value = arg.kind === 'base' ? (this.#row.columns.get(arg.column) ?? null) : null;
    if (args === null)
      this.unknowns.set(this.#unknownName(this.#key(arg), `${attribute} among `), nameOf(arg));
    else this.memberships.push({ attribute, type: arg.type, args, value });
    const compared = { type: arg.type, args, key: this.#key(arg), column: value ?? this.#columnAsText(arg) };
    return [isNull, this.compare(attribute, compared)];
  }

  /** Like `hasValue`, but also adds the value to `uses`. */
  compare(attribute: string, compared: ComparedValue): Formula {
    this.uses.push({ attribute, compared });
    return this.hasValue(attribute, compared);
  }

  /** Returns a formula that is true if the attribute has the value; equal values have the same formula. */
  hasValue(attribute: string, { type, args, key }: ComparedValue): Formula {
    if (args !== null) return this.membership(attribute, type, args);
    return variable(this.#unknownName(key, `${attribute} among `), 'Bool');
  }

  #columnAsText(arg: Expr): RowVariable | null {
    const isText = arg.kind === 'cast' && arg.type === 'text' && arg.arg.kind === 'base';
    return isText && arg.arg.kind === 'base' ? (this.#row.columns.get(arg.arg.column) ?? null) : null;
  }

  #argument(arg: Expr): readonly [isNull: Formula, args: readonly Formula[] | null] {
    if (arg.type === 'bool') {
      const { isTrue } = this.truth(arg);
      return [this.#isNull(arg), [ifThenElse(isTrue, number('1', 'Int'), number('0', 'Int'))]];
    }
    const value = this.value(arg);
    return [value.isNull, argumentsOf(value)];
  }

  // -------------------------------------------------------------- values

  /** Encodes an expression that is not boolean. */
  value(expr: Expr): Value {
    switch (expr.kind) {
      case 'base':
        return this.#column(expr);
      case 'literal':
        return typeof expr.value === 'string' ? this.#literal(expr.value, expr.type) : this.#opaque(expr);
      case 'structural':
        return this.#literal(expr.text, 'text');
      case 'null':
        return { kind: 'opaque', isNull: TRUE };
      case 'collate': {
        const value = this.value(expr.arg);
        return value.kind === 'text' ? { ...value, isBytewise: expr.collation === 'C' } : value;
      }
      case 'cast':
        return this.#cast(expr);
      case 'operation':
        return this.#arithmetic(expr) ?? this.#opaque(expr);
      case 'conditional':
        return this.#conditional(expr);
      case 'case': {
        const arms = expr.arms.map(({ when, result }) => [this.truth(when), this.value(result)] as const);
        return arms.reduceRight<Value>(
          (rest, [when, result]) => choice(when.isTrue, result, rest) ?? this.#opaque(expr),
          this.value(expr.otherwise),
        );
      }
      default:
        return this.#opaque(expr);
    }
  }

  #literal(value: string, type: TypeName): Value {
    if (isTextual(type)) {
      const plain = type === 'bpchar' ? value.replace(/ +$/, '') : value;
      const fits = [...plain].every((c) => (c.codePointAt(0) ?? 0) <= MAX_CODE_POINT);
      return fits ? { kind: 'text', isNull: FALSE, value: text(plain), isBytewise: false } : UNKNOWN_LITERAL;
    }
    if (type === 'uuid')
      return UUID.test(value)
        ? { kind: 'text', isNull: FALSE, value: text(value.toLowerCase()), isBytewise: false }
        : UNKNOWN_LITERAL;
    const sort = sortOf(type);
    const rank = rankIn(value, type);
    const digits = rank === null ? (numberIn(value, type) ?? momentOf(value, type)) : '0';
    return digits === null || sort === null
      ? UNKNOWN_LITERAL
      : { kind: 'ordered', isNull: FALSE, rank: number(rank ?? '0', 'Int'), value: number(digits, sort) };
  }

  #cast({ arg, type, modifiers }: Extract<Expr, { readonly kind: 'cast' }>): Value {
    const value = this.value(arg);
    const isWider =
      modifiers.length === 0 &&
      ((isTextual(arg.type) && type === 'text') || WIDER.get(arg.type)?.has(type) === true);
    return isWider ? value : { kind: 'opaque', isNull: value.isNull };
  }

  /** Encodes sums, differences, and products with a literal; otherwise null. A result out of range is unknown. */
  #arithmetic(expr: Extract<Expr, { readonly kind: 'operation' }>): Value | null {
    const { definition, left, right, type } = expr;
    const op = definition.name;
    const range = rangeOf(type);
    if (left === null || (op !== '+' && op !== '-' && op !== '*')) return null;
    if (type !== 'numeric' && range === null) return null;
    if (op === '*' && left.kind !== 'literal' && right.kind !== 'literal') return null;
    const [a, b] = [this.value(left), this.value(right)];
    if (a.kind !== 'ordered' || b.kind !== 'ordered') return null;
    const value = arithmetic(op, a.value, b.value);
    const isNull = or(a.isNull, b.isNull);
    if (range === null) return { kind: 'ordered', isNull, rank: rankAfter(op, a, b), value };
    const fits = within(value, range);
    return { kind: 'ordered', isNull, rank: FINITE, value: ifThenElse(fits, value, this.#outOfRange(expr)) };
  }

  #conditional(expr: Extract<Expr, { readonly kind: 'conditional' }>): Value {
    const [first, second] = expr.args;
    if (expr.form === 'coalesce')
      return expr.args
        .map((a) => this.value(a))
        .reduceRight((rest, value) => choice(not(value.isNull), value, rest) ?? this.#opaque(expr));
    if (expr.form !== 'nullif' || first === undefined || second === undefined) return this.#opaque(expr);
    const value = this.value(first);
    const { isTrue } = this.#comparison('=', first, second, expr);
    return { ...value, isNull: or(value.isNull, isTrue) };
  }

  #column({ column, type, stored }: Extract<Expr, { readonly kind: 'base' }>): Value {
    const row = this.#row;
    const names = `row ${column}`;
    const isNull = variable(`${names} is null`, 'Bool');
    const sort = isTextual(type) || type === 'uuid' ? 'String' : stored === undefined ? sortOf(type) : null;
    const hasRank = sort !== null && sort !== 'String' && rangeOf(type) === null;
    if (!row.columns.has(column)) {
      row.columns.set(column, {
        column,
        type,
        isNull: `${names} is null`,
        value: sort === null ? null : names,
        rank: hasRank ? `${names} rank` : null,
      });
      if (sort === null) row.unknowns.set(`${names} is null`, `column ${column} of type ${type}`);
      const range = rangeOf(type);
      if (sort === 'Int' && range !== null) row.facts.push(within(variable(names, sort), range));
      if (type === 'uuid') row.facts.push(not(equal(variable(names, 'String'), text(''))));
      if (hasRank) row.facts.push(rankOf(variable(`${names} rank`, 'Int'), type));
      row.#addDeclaredFacts(column, isNull, names);
    }
    if (sort === null) return { kind: 'opaque', isNull };
    if (sort === 'String') return { kind: 'text', isNull, value: variable(names, sort), isBytewise: false };
    const rank = hasRank ? variable(`${names} rank`, 'Int') : FINITE;
    return { kind: 'ordered', isNull, rank, value: variable(names, sort) };
  }

  /** Adds the manifest's declarations of a column as facts: NOT NULL, and the labels of an enum. */
  #addDeclaredFacts(physical: string, isNull: Formula, value: string): void {
    const column = this.relation.columns.find((c) => c.physical === physical);
    if (column === undefined) return;
    if (!column.nullable || this.relation.primaryKey.includes(column.name)) this.facts.push(not(isNull));
    if (column.labels !== undefined)
      this.facts.push(
        or(isNull, ...column.labels.map((label) => equal(variable(value, 'String'), text(label)))),
      );
  }

  #flag(column: string): Truth {
    const row = this.#row;
    const [isNull, value] = [`row ${column} is null`, `row ${column}`];
    const [nullFlag, flag] = [variable(isNull, 'Bool'), variable(value, 'Bool')];
    if (!row.columns.has(column)) {
      row.columns.set(column, { column, type: 'bool', isNull, value, rank: null });
      row.#addDeclaredFacts(column, nullFlag, value);
    }
    return { isTrue: and(not(nullFlag), flag), isFalse: and(not(nullFlag), not(flag)) };
  }

  get #row(): Encoder {
    return this.#shared ?? this;
  }

  // -------------------------------------------------------------- unknown values

  #unknownTruth(expr: Expr, description: string, qualifier = ''): Truth {
    return this.unknownTruth(this.#key(expr), description, qualifier);
  }

  /** Returns an unknown truth value, the same for equal keys. @param description description of the value, for reports */
  unknownTruth(key: string, description: string, qualifier = ''): Truth {
    const name = this.#unknownName(key, qualifier);
    this.unknowns.set(name, description);
    const [isTrue, isFalse] = [variable(name, 'Bool'), variable(`${name} is false`, 'Bool')];
    return { isTrue, isFalse: and(not(isTrue), isFalse) };
  }

  /** Returns an opaque value, the same for equal keys; only whether it is NULL is represented. */
  unknownValue(key: string): Value {
    return { kind: 'opaque', isNull: variable(`${this.#unknownName(key)} is null`, 'Bool') };
  }

  #unknownName(key: string, qualifier = ''): string {
    return `${this.caller} unknown ${qualifier}${key}`;
  }

  /** Returns an unknown number for a result that the type cannot hold, which is an error in the database. */
  #outOfRange(expr: Expr): Formula {
    const name = this.#unknownName(this.#key(expr));
    this.unknowns.set(name, `a result beyond ${expr.type}`);
    return variable(name, 'Int');
  }

  #opaque(expr: Expr): Value {
    return this.unknownValue(this.#key(expr));
  }
}

/** Returns a value as arguments for `membership`; null if nothing is known about the value. */
export function argumentsOf(value: Value): readonly Formula[] | null {
  switch (value.kind) {
    case 'ordered':
      return [value.rank, value.value];
    case 'text':
      return [value.value];
    case 'opaque':
      return null;
    default:
      return assertNever(value);
  }
}

const PATTERNS: ReadonlySet<string> = new Set(['~~', '!~~', '^@']);

const UNKNOWN_LITERAL: Value = Object.freeze({ kind: 'opaque', isNull: FALSE });
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** The largest code point that the solver supports. */
const MAX_CODE_POINT = 0x2ffff;

/** Casts that keep the value: target types by source type. */
const WIDER: ReadonlyMap<TypeName, ReadonlySet<TypeName>> = new Map([
  ['int2', new Set<TypeName>(['int4', 'int8', 'numeric'])],
  ['int4', new Set<TypeName>(['int8', 'numeric'])],
  ['int8', new Set<TypeName>(['numeric'])],
  ['float4', new Set<TypeName>(['float8'])],
  ['uuid', new Set<TypeName>(['text'])],
]);

function isTextual(type: TypeName): boolean {
  return type === 'text' || type === 'bpchar';
}

/** Returns the solver's sort for an ordered type; null for types whose values are not represented as numbers. */
function sortOf(type: TypeName): 'Int' | 'Real' | null {
  switch (type) {
    case 'int2':
    case 'int4':
    case 'int8':
    case 'date':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
      return 'Int';
    case 'numeric':
    case 'float4':
    case 'float8':
      return 'Real';
    default:
      return null;
  }
}

export function coalesceTruth(rest: Truth, first: Truth): Truth {
  const isNull = and(not(first.isTrue), not(first.isFalse));
  return {
    isTrue: or(first.isTrue, and(isNull, rest.isTrue)),
    isFalse: or(first.isFalse, and(isNull, rest.isFalse)),
  };
}

/** Returns the elements of an array constructor or an array literal; null for any other array. */
function itemsOf(array: Expr, type: TypeName): readonly Expr[] | null {
  if (array.kind === 'array') return array.items;
  if (array.kind !== 'literal' || typeof array.value === 'string') return null;
  return array.value.map((value) =>
    value === null ? { kind: 'null', type } : { kind: 'literal', value, type },
  );
}

export function definite(holds: Formula, negated: boolean): Truth {
  return negated ? { isTrue: not(holds), isFalse: holds } : { isTrue: holds, isFalse: not(holds) };
}

export function anyOf(truths: readonly Truth[]): Truth {
  return { isTrue: or(...truths.map((t) => t.isTrue)), isFalse: and(...truths.map((t) => t.isFalse)) };
}

/** Encodes a comparison of two values that are not NULL; null if it cannot be expressed. */
export function comparison(operator: string, a: Value, b: Value): Formula | null {
  if (a.isNull === TRUE || b.isNull === TRUE) return FALSE; // the result is NULL in any case
  const same = sameValue(a, b);
  if (same !== null && operator === '=') return same;
  if (same !== null && operator === '<>') return not(same);
  if (a.kind === 'text' && b.kind === 'text' && operator === '~~') return likePrefix(a.value, b.value);
  if (a.kind === 'text' && b.kind === 'text' && operator === '!~~')
    return negated(likePrefix(a.value, b.value));
  if (a.kind === 'text' && b.kind === 'text' && operator === '^@') return isPrefix(b.value, a.value);
  switch (operator) {
    case '<':
      return lessValue(a, b);
    case '>':
      return lessValue(b, a);
    case '<=':
      return negated(lessValue(b, a));
    case '>=':
      return negated(lessValue(a, b));
    default:
      return null;
  }
}

function negated(formula: Formula | null): Formula | null {
  return formula === null ? null : not(formula);
}

function sameValue(a: Value, b: Value): Formula | null {
  if (a.kind === 'text' && b.kind === 'text') return equal(a.value, b.value);
  if (a.kind !== 'ordered' || b.kind !== 'ordered') return null;
  const finite = equal(a.rank, FINITE);
  return and(equal(a.rank, b.rank), or(not(finite), equal(a.value, b.value)));
}

function lessValue(a: Value, b: Value): Formula | null {
  if (a.kind === 'text' && b.kind === 'text')
    return a.isBytewise || b.isBytewise ? textLess(a.value, b.value) : null;
  if (a.kind !== 'ordered' || b.kind !== 'ordered') return null;
  if (isAlwaysFinite(a) && isAlwaysFinite(b)) return less(a.value, b.value);
  return or(less(a.rank, b.rank), and(equal(a.rank, FINITE), equal(b.rank, FINITE), less(a.value, b.value)));
}

/** True if the value is finite in every row. */
function isAlwaysFinite({ rank }: OrderedValue): boolean {
  return rank.kind === 'number' && rank.text === '0';
}

/** Encodes LIKE with a literal pattern that has no wildcard, or a single `%` at its end; null for other patterns. */
function likePrefix(value: Formula, pattern: Formula): Formula | null {
  if (pattern.kind !== 'text' || /[\\_]|%./s.test(pattern.value)) return null;
  const prefix = pattern.value.replace(/%$/, '');
  return prefix === pattern.value ? equal(value, pattern) : isPrefix(text(prefix), value);
}

export function choice(condition: Formula, a: Value, b: Value): Value | null {
  const isNull = ifThenElse(condition, a.isNull, b.isNull);
  if (a.isNull === TRUE) return { ...b, isNull };
  if (b.isNull === TRUE) return { ...a, isNull };
  if (a.kind === 'ordered' && b.kind === 'ordered')
    return {
      kind: 'ordered',
      isNull,
      rank: ifThenElse(condition, a.rank, b.rank),
      value: ifThenElse(condition, a.value, b.value),
    };
  if (a.kind === 'text' && b.kind === 'text')
    return {
      kind: 'text',
      isNull,
      value: ifThenElse(condition, a.value, b.value),
      isBytewise: a.isBytewise && b.isBytewise,
    };
  return null;
}

function within(value: Formula, { min, max }: { readonly min: string; readonly max: string }): Formula {
  return and(not(less(value, number(min, 'Int'))), not(less(number(max, 'Int'), value)));
}

type OrderedValue = Extract<Value, { readonly kind: 'ordered' }>;

/** The rank of a sum, difference or product of numerics; NaN if a side is NaN, and for inf - inf and inf * 0. */
function rankAfter(op: '+' | '-' | '*', a: OrderedValue, b: OrderedValue): Formula {
  const [left, right] = [a.rank, op === '-' ? opposite(b.rank) : b.rank];
  const isNan = or(equal(left, NAN), equal(right, NAN));
  const rank =
    op === '*'
      ? ifThenElse(equal(left, FINITE), rankTimesFactor(right, a.value), timesRank(left, right, b.value))
      : ifThenElse(
          equal(left, FINITE),
          right,
          ifThenElse(or(equal(right, FINITE), equal(left, right)), left, NAN),
        );
  return ifThenElse(isNan, NAN, rank);
}

const NAN = number('2', 'Int');

function opposite(rank: Formula): Formula {
  return ifThenElse(equal(rank, NAN), NAN, arithmetic('-', FINITE, rank));
}

/** Returns the rank of an infinite value times another: `value` is that of the other, which counts if it is finite. */
function timesRank(left: Formula, right: Formula, value: Formula): Formula {
  const sign = ifThenElse(equal(left, right), number('1', 'Int'), number('-1', 'Int'));
  return ifThenElse(equal(right, FINITE), rankTimesFactor(left, value), sign);
}

/** Returns the rank of a value with rank `rank` times a finite factor. */
function rankTimesFactor(rank: Formula, factor: Formula): Formula {
  const zero = number('0', factor.sort === 'Int' ? 'Int' : 'Real');
  const times = ifThenElse(less(zero, factor), rank, ifThenElse(less(factor, zero), opposite(rank), NAN));
  return ifThenElse(equal(rank, FINITE), FINITE, times);
}

/** Limits a rank to those that values of the type may have: dates and timestamps are never NaN. */
function rankOf(rank: Formula, type: TypeName): Formula {
  const max = sortOf(type) === 'Real' ? '2' : '1';
  return and(not(less(rank, number('-1', 'Int'))), not(less(number(max, 'Int'), rank)));
}

function nameOf(expr: Expr): string {
  switch (expr.kind) {
    case 'call':
      return `the function ${expr.definition.name}`;
    case 'operation':
      return `the operator ${expr.definition.name}`;
    case 'cast':
      return `a cast to ${expr.type}`;
    case 'base':
      return `column ${expr.column} of type ${expr.type}`;
    case 'literal':
      return `a literal of type ${expr.type}`;
    default:
      return `an expression of the kind ${expr.kind.replace('_', ' ')}`;
  }
}
