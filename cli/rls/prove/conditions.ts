import type { A_Expr, FuncCall, Node, SelectStmt, SubLink, TypeName as TypeNode } from '@pgsql/types';
import { arrayElements, type TypeName, typeNamed } from 'osl-compiler';
import {
  and,
  anyOf,
  applicationKey,
  castKey,
  certain,
  choice,
  type Encoder,
  either,
  FALSE,
  type Formula,
  firstOf,
  literalKey,
  NULL_KEY,
  not,
  operationKey,
  or,
  TRUE,
  type Truth,
} from '../../../policy/proof/index.js';
import type { CheckedDatabase } from '../checked-database.js';
import { calledName, firstTarget, literalOf, namesOf } from '../nodes.js';
import { type CallerValueNames, CLAIMS_SETTING, sourceOfSetting } from './caller-values.js';
import { type CalledQuery, calledQuery } from './functions.js';
import {
  castCaller,
  castItem,
  columnTerm,
  constantTerm,
  isSameCaller,
  KEEPING,
  NULL_TERM,
  truthLiteral,
} from './leaf-terms.js';
import { type Home, NotUnderstood, type Placed, referenceOf } from './scope.js';
import {
  type CallerTerm,
  callerEquals,
  compareValues,
  type ElementsTerm,
  isElement,
  isNull,
  literalTerm,
  type Term,
  type TruthTerm,
  truthsEqual,
  typed,
  type ValueTerm,
} from './terms.js';

/** A subquery in a condition. */
export interface Subquery {
  readonly select: SelectStmt;
  /** Where it stands: its tables and arguments, and the rights under which it runs. */
  readonly place: Placed;
  /** Only its first row counts, as of a function; otherwise several rows where one is expected are an error. */
  readonly firstRow: boolean;
  /** A value that its select list must be equal to; null if there need only be a row. */
  readonly equalTo: Placed | null;
  /** The value of its select list must be true. */
  readonly isTrue: boolean;
}

/** Decides if a subquery has a row, as a formula. @throws NotUnderstood */
type RowTest = (subquery: Subquery, home: Home) => Formula;

export interface ConditionContext {
  readonly database: CheckedDatabase;
  readonly names: CallerValueNames;
  /** Names of the types of columns whose labels the model declares, such as `app.status`. */
  readonly enums: ReadonlySet<string>;
  hasRow: RowTest;
  /** Conditions under which the database does not fail; translations add to them. */
  readonly assumed: Set<string>;
}

/**
 * Translates conditions of row security, as Postgres has them, into formulas. What it does not understand becomes an
 * unknown truth value, which is equal to no other one.
 */
export class Conditions {
  readonly #context: ConditionContext;
  #unknown = 0;

  constructor(context: ConditionContext) {
    this.#context = context;
  }

  truth(place: Placed, home: Home): Truth {
    try {
      return this.#truth(place, home);
    } catch (error) {
      if (!(error instanceof NotUnderstood)) throw error;
      return this.#notUnderstood(error, home);
    }
  }

  equal(left: Placed, right: Placed, home: Home): Truth {
    try {
      return this.#compared('=', left, right, home);
    } catch (error) {
      if (!(error instanceof NotUnderstood)) throw error;
      return this.#notUnderstood(error, home);
    }
  }

  /** A value of the row or a literal. @throws NotUnderstood for a value of the caller */
  rowTerm(place: Placed, home: Home): ValueTerm | TruthTerm {
    const term = this.#term(place, home);
    if (isRowTerm(term)) return term.kind === 'value' ? typed(term, 'text', home.encoder) : term;
    throw new NotUnderstood('a value of the caller among rows of a subquery');
  }

  #notUnderstood({ message }: NotUnderstood, { encoder }: Home): Truth {
    return encoder.unknownTruth(`not understood ${this.#unknown++}`, message);
  }

  #truth(place: Placed, home: Home): Truth {
    const { node } = place;
    const of = (inner: Node | undefined): Truth => this.truth(at(place, inner), home);
    if ('BoolExpr' in node) {
      const parts = (node.BoolExpr.args ?? []).map(of);
      const [first] = parts;
      if (node.BoolExpr.boolop === 'OR_EXPR') return anyOf(parts);
      if (node.BoolExpr.boolop === 'NOT_EXPR' && first !== undefined)
        return { isTrue: first.isFalse, isFalse: first.isTrue };
      return { isTrue: and(...parts.map((t) => t.isTrue)), isFalse: or(...parts.map((t) => t.isFalse)) };
    }
    if ('NullTest' in node) {
      const none = isNull(this.#term(at(place, node.NullTest.arg), home), home.encoder);
      if (none === null) throw new NotUnderstood('IS NULL of a list');
      return certain(none, node.NullTest.nulltesttype === 'IS_NOT_NULL');
    }
    if ('BooleanTest' in node) {
      const { isTrue, isFalse } = of(node.BooleanTest.arg);
      const test = node.BooleanTest.booltesttype ?? '';
      const holds = test.endsWith('TRUE') ? isTrue : test.endsWith('FALSE') ? isFalse : nor(isTrue, isFalse);
      return certain(holds, test.startsWith('IS_NOT'));
    }
    if ('CaseExpr' in node) return this.#case(place, home);
    if ('SubLink' in node) return this.#subquery(node.SubLink, place, home);
    if ('A_Expr' in node) {
      const found = this.#operation(node.A_Expr, place, home);
      if (found !== null) return found;
    }
    if ('FuncCall' in node) {
      const called = calledQuery(place, this.#context.database);
      if (called !== null) return this.#calledTruth(called, home);
    }
    return this.#truthOf(this.#term(place, home), home);
  }

  #truthOf(term: Term, { encoder }: Home): Truth {
    if (term.kind === 'truth') return term.truth;
    if (term.kind === 'caller') {
      const found = callerEquals({ ...term, type: 'bool' }, TRUE_TERM, encoder);
      if (found !== null) return found;
    }
    if (term.kind !== 'value') throw new NotUnderstood('a list as a condition');
    const { isTrue, isFalse } = encoder.unknownTruth(term.key, 'a condition');
    const known = not(term.value.isNull);
    return { isTrue: and(known, isTrue), isFalse: and(known, isFalse) };
  }

  #case(place: Placed, home: Home): Truth {
    if (!('CaseExpr' in place.node)) throw new NotUnderstood('CASE');
    const { arg, args = [], defresult } = place.node.CaseExpr;
    const none: Truth = { isTrue: FALSE, isFalse: FALSE };
    const otherwise = defresult === undefined ? none : this.truth(at(place, defresult), home);
    return args.reduceRight<Truth>((rest, branch) => {
      if (!('CaseWhen' in branch)) throw new NotUnderstood('CASE');
      const when = arg === undefined ? branch.CaseWhen.expr : equality(arg, branch.CaseWhen.expr);
      const { isTrue } = this.truth(at(place, when), home);
      const result = this.truth(at(place, branch.CaseWhen.result), home);
      return {
        isTrue: either(isTrue, result.isTrue, rest.isTrue),
        isFalse: either(isTrue, result.isFalse, rest.isFalse),
      };
    }, otherwise);
  }

  // -------------------------------------------------------------- subqueries

  #subquery(link: SubLink, place: Placed, home: Home): Truth {
    const select = selectOf(link.subselect);
    const test = { select, place, firstRow: false, equalTo: null, isTrue: false };
    switch (link.subLinkType) {
      case 'EXISTS_SUBLINK':
        return certain(this.#context.hasRow(test, home), false);
      case 'EXPR_SUBLINK': {
        const alone = aloneIn(select);
        if (alone !== null) return this.truth(at(place, alone), home);
        return this.#orNotTrue(this.#context.hasRow({ ...test, isTrue: true }, home), home);
      }
      case 'ANY_SUBLINK':
        if (link.operName !== undefined && namesOf(link.operName).at(-1) !== '=')
          throw new NotUnderstood('a subquery that is compared by another operator than =');
        return this.#isAmong(at(place, link.testexpr), test, home);
      default:
        throw new NotUnderstood('a subquery with ALL');
    }
  }

  /** `x IN (SELECT …)`, `x = (SELECT …)`. */
  #isAmong(tested: Placed, subquery: Subquery, home: Home): Truth {
    const { select, place } = subquery;
    const target = firstTarget(select);
    if (select.fromClause === undefined && target !== null && 'FuncCall' in target) {
      const elements = this.#elements(at(place, target), home, true);
      if (elements !== null) return this.#amongElements(tested, elements, home);
      const called = calledQuery(at(place, target), this.#context.database);
      if (called?.returnsSet === true) {
        const inner = { ...subquery, select: selectOf(called.query.node), place: called.query };
        return this.#isAmong(tested, inner, home);
      }
    }
    return this.#orNotTrue(this.#context.hasRow({ ...subquery, equalTo: tested }, home), home);
  }

  /** A condition of which it is known when it is true, and not when it is false or NULL. */
  #orNotTrue(isTrue: Formula, home: Home): Truth {
    const key = `false or NULL ${this.#unknown++}`;
    const { isFalse } = home.encoder.unknownTruth(key, 'a subquery that is false or NULL');
    return { isTrue, isFalse: and(not(isTrue), isFalse) };
  }

  #amongElements(tested: Placed, elements: ElementsTerm, home: Home): Truth {
    const term = this.#term(tested, home);
    const found = isRowTerm(term) ? isElement(elements, term, home.encoder) : null;
    if (found === null) throw new NotUnderstood('a list of the caller that is compared with something else');
    return found;
  }

  #calledTruth(called: CalledQuery, home: Home): Truth {
    const { isTrue, isFalse } = this.#bodyTruth(called, home);
    const given = this.#notNull(called, home);
    return { isTrue: and(given, isTrue), isFalse: and(given, isFalse) };
  }

  #bodyTruth({ query, returnsSet }: CalledQuery, home: Home): Truth {
    if (returnsSet) throw new NotUnderstood('a function that returns rows as a condition');
    const select = selectOf(query.node);
    const alone = aloneIn(select);
    if (alone !== null) return this.truth(at(query, alone), home);
    const test = { select, place: query, firstRow: true, equalTo: null, isTrue: true };
    return this.#orNotTrue(this.#context.hasRow(test, home), home);
  }

  /** True unless a STRICT function has a NULL among its arguments. */
  #notNull({ strict, args }: CalledQuery, home: Home): Formula {
    if (!strict) return TRUE;
    return and(
      ...args.map((arg) => {
        const none = isNull(this.#term(arg, home), home.encoder);
        if (none === null) throw new NotUnderstood('a list as argument of a STRICT function');
        return not(none);
      }),
    );
  }

  // -------------------------------------------------------------- operators

  /** Null for an operation whose result is no truth value. */
  #operation(expression: A_Expr, place: Placed, home: Home): Truth | null {
    const { kind, lexpr, rexpr } = expression;
    const operator = operatorOf(expression);
    const [left, right] = [at(place, lexpr), at(place, rexpr)];
    const compared = (name: string, other: Node): Truth => this.#compared(name, left, at(place, other), home);
    switch (kind) {
      case 'AEXPR_OP':
        if (lexpr === undefined || !COMPARISONS.has(operator)) return null;
        return this.#compared(operator, left, right, home);
      case 'AEXPR_IN': {
        const items = 'List' in right.node ? (right.node.List.items ?? []) : [];
        const found = anyOf(items.map((item) => compared('=', item)));
        return operator === '<>' ? { isTrue: found.isFalse, isFalse: found.isTrue } : found;
      }
      case 'AEXPR_OP_ANY':
      case 'AEXPR_OP_ALL':
        return this.#quantified(operator, kind === 'AEXPR_OP_ANY', left, right, home);
      case 'AEXPR_DISTINCT':
      case 'AEXPR_NOT_DISTINCT':
        return this.#distinct(left, right, kind === 'AEXPR_NOT_DISTINCT', home);
      case 'AEXPR_LIKE':
        return this.#compared(operator, left, right, home);
      case 'AEXPR_BETWEEN': {
        const [low, high] = 'List' in right.node ? (right.node.List.items ?? []) : [];
        if (low === undefined || high === undefined) throw new NotUnderstood('BETWEEN');
        const [from, to] = [compared('>=', low), compared('<=', high)];
        return { isTrue: and(from.isTrue, to.isTrue), isFalse: or(from.isFalse, to.isFalse) };
      }
      case 'AEXPR_NULLIF':
        return null;
      default:
        throw new NotUnderstood(`the operator ${operator}`);
    }
  }

  #compared(operator: string, left: Placed, right: Placed, home: Home): Truth {
    for (const [side, other] of [
      [left, right],
      [right, left],
    ] as const) {
      const rows = this.#rowsOf(side);
      if (rows === null) continue;
      if (operator !== '=') throw new NotUnderstood(`a subquery that is compared by ${operator}`);
      return this.#isAmong(other, rows, home);
    }
    const [a, b] = [this.#term(left, home), this.#term(right, home)];
    if (operator === '?' && a.kind === 'claims')
      return this.#amongElements(right, this.#listOf(a.path, 'text', false), home);
    const found = this.#comparedTerms(operator, a, b, home);
    if (found !== null) return found;
    const [none, other] = [isNull(a, home.encoder), isNull(b, home.encoder)];
    const key = operationKey(operator, a.key, b.key);
    const { isTrue, isFalse } = home.encoder.unknownTruth(
      key,
      `the operator ${operator} on values of the caller`,
    );
    const known = and(not(none ?? FALSE), not(other ?? FALSE));
    return { isTrue: and(known, isTrue), isFalse: and(known, isFalse) };
  }

  /** Null if the logic has no such comparison. */
  #comparedTerms(operator: string, a: Term, b: Term, { encoder }: Home): Truth | null {
    if (a.kind === 'value' && b.kind === 'value') return compareValues(operator, a, b, encoder);
    if (operator !== '=' && operator !== '<>') return null;
    const same = this.#equalTerms(a, b, encoder) ?? this.#equalTerms(b, a, encoder);
    if (same === null || operator === '=') return same;
    return { isTrue: same.isFalse, isFalse: same.isTrue };
  }

  #equalTerms(a: Term, b: Term, encoder: Encoder): Truth | null {
    if (a.kind === 'truth' && b.kind === 'truth') return truthsEqual(a.truth, b.truth);
    return a.kind === 'caller' && (b.kind === 'value' || b.kind === 'truth')
      ? callerEquals(a, b, encoder)
      : null;
  }

  #distinct(left: Placed, right: Placed, isNegated: boolean, home: Home): Truth {
    const { isTrue, isFalse } = this.#compared('=', left, right, home);
    const [none, other] = [left, right].map((side) => isNull(this.#term(side, home), home.encoder));
    if (none == null || other == null) throw new NotUnderstood('IS DISTINCT FROM of a list');
    const isSame = or(isTrue, and(none, other));
    const isOther = or(isFalse, and(none, not(other)), and(not(none), other));
    return isNegated ? { isTrue: isSame, isFalse: isOther } : { isTrue: isOther, isFalse: isSame };
  }

  #quantified(operator: string, isAny: boolean, left: Placed, right: Placed, home: Home): Truth {
    const rows = this.#rowsOf(right);
    if (rows !== null) {
      if (operator !== '=' || !isAny) throw new NotUnderstood('a subquery with ALL');
      return this.#isAmong(left, rows, home);
    }
    const list = this.#term(right, home);
    if (list.kind === 'elements') {
      if (operator !== '=' || !isAny) throw new NotUnderstood('a list of the caller with ALL');
      return this.#amongElements(left, list, home);
    }
    if (list.kind !== 'array') throw new NotUnderstood(`ANY or ALL of ${list.key}`);
    const term = this.#term(left, home);
    const each = list.items.map((item) => {
      const truth = this.#comparedTerms(operator, term, item, home);
      if (truth === null) throw new NotUnderstood(`the operator ${operator} with a list`);
      return truth;
    });
    if (isAny) return anyOf(each);
    return { isTrue: and(...each.map((t) => t.isTrue)), isFalse: or(...each.map((t) => t.isFalse)) };
  }

  /** The subquery that an operand is, through casts, arguments and functions; null for any other operand. */
  #rowsOf(place: Placed): Subquery | null {
    const { node } = place;
    if ('TypeCast' in node && node.TypeCast.arg !== undefined)
      return this.#rowsOf(at(place, node.TypeCast.arg));
    const reference = referenceOf(place);
    if (reference !== null) return 'node' in reference ? this.#rowsOf(reference) : null;
    if ('FuncCall' in node) {
      const called = calledQuery(place, this.#context.database);
      if (called === null) return null;
      const select = selectOf(called.query.node);
      const alone = aloneIn(select);
      if (alone !== null) return called.returnsSet ? null : this.#rowsOf(at(called.query, alone));
      if (called.strict && called.args.length > 0)
        throw new NotUnderstood('a STRICT function that reads rows');
      const firstRow = !called.returnsSet;
      return { select, place: called.query, firstRow, equalTo: null, isTrue: false };
    }
    if (!('SubLink' in node)) return null;
    const { subLinkType, subselect } = node.SubLink;
    if (subLinkType !== 'EXPR_SUBLINK' && subLinkType !== 'ARRAY_SUBLINK') return null;
    const select = selectOf(subselect);
    const alone = aloneIn(select);
    if (alone !== null) return subLinkType === 'EXPR_SUBLINK' ? this.#rowsOf(at(place, alone)) : null;
    return { select, place, firstRow: false, equalTo: null, isTrue: false };
  }

  // -------------------------------------------------------------- values

  #term(place: Placed, home: Home): Term {
    const { node } = place;
    const { encoder } = home;
    const reference = referenceOf(place);
    if (reference !== null)
      return 'node' in reference ? this.#term(reference, home) : columnTerm(reference, home);
    if ('A_Const' in node) return constantTerm(node, encoder);
    if ('TypeCast' in node) return this.#cast(place, node.TypeCast.typeName, node.TypeCast.arg, home);
    if ('CoalesceExpr' in node)
      return this.#coalesce(
        (node.CoalesceExpr.args ?? []).map((arg) => this.#term(at(place, arg), home)),
        home,
      );
    if ('SQLValueFunction' in node) return this.#sessionValue(node.SQLValueFunction.op ?? '', place, home);
    if ('A_ArrayExpr' in node) {
      const items = (node.A_ArrayExpr.elements ?? []).map((item) => this.#term(at(place, item), home));
      return {
        kind: 'array',
        items,
        key: applicationKey(
          'array',
          items.map((item) => item.key),
        ),
      };
    }
    if ('SubLink' in node) {
      const alone =
        node.SubLink.subLinkType === 'EXPR_SUBLINK' ? aloneIn(selectOf(node.SubLink.subselect)) : null;
      if (alone !== null) return this.#term(at(place, alone), home);
    }
    if ('FuncCall' in node) return this.#call(node.FuncCall, place, home);
    if ('A_Expr' in node) {
      const found = this.#valueOperation(node.A_Expr, place, home);
      if (found !== null) return found;
    }
    if (TRUTHS.some((kind) => kind in node))
      return { kind: 'truth', truth: this.truth(place, home), key: `condition ${this.#unknown++}` };
    throw new NotUnderstood(`an expression of the kind ${Object.keys(node)[0] ?? ''}`);
  }

  #valueOperation(expression: A_Expr, place: Placed, home: Home): Term | null {
    const operator = operatorOf(expression);
    const [left, right] = [at(place, expression.lexpr), at(place, expression.rexpr)];
    if (expression.kind === 'AEXPR_NULLIF') return this.#nullIf(left, right, home);
    if (expression.kind !== 'AEXPR_OP' || COMPARISONS.has(operator)) return null;
    const path = JSON_PATHS.get(operator);
    const [a, literal] = [this.#term(left, home), literalOf(right.node)];
    if (a.kind === 'claims' && path !== undefined && literal !== null) {
      const steps = path === 'step' ? [literal] : literal.replace(/^\{|\}$/g, '').split(',');
      const whole = [...a.path, ...steps];
      if (!operator.endsWith('>>')) return { kind: 'claims', path: whole, key: claimsKey(whole) };
      return this.#callerTerm({ kind: 'claim', path: whole });
    }
    const key = applicationKey(operator, [a.key, this.#term(right, home).key]);
    return { ...NULL_TERM, value: home.encoder.unknownValue(key), type: null, key, literal: null };
  }

  #nullIf(left: Placed, right: Placed, home: Home): Term {
    const term = this.#term(left, home);
    if (term.kind === 'caller' && literalOf(right.node) === '' && term.otherwise === null)
      return { ...term, emptyIsNull: true };
    if (term.kind === 'claims' && literalOf(right.node) === '') return term;
    if (term.kind !== 'value') throw new NotUnderstood('NULLIF of a value of the caller');
    const { isTrue } = this.#compared('=', left, right, home);
    const value = { ...term.value, isNull: or(term.value.isNull, isTrue) };
    return {
      ...term,
      value,
      key: applicationKey('nullif', [term.key, this.#term(right, home).key]),
      column: null,
    };
  }

  #coalesce(terms: readonly Term[], home: Home): Term {
    const { encoder } = home;
    const [first, second, ...rest] = terms;
    if (first === undefined || second === undefined) {
      if (first === undefined) throw new NotUnderstood('COALESCE');
      return first;
    }
    const next = rest.length === 0 ? second : this.#coalesce([second, ...rest], home);
    if (first.kind === 'caller' && next.kind === 'caller' && isSameCaller(first, next))
      // The second is the same value, so it decides what an empty text is if the first is NULL for one.
      return first.emptyIsNull ? { ...next } : first;
    if (
      first.kind === 'caller' &&
      (next.kind === 'value' || next.kind === 'truth') &&
      first.otherwise === null
    ) {
      const otherwise = next.kind === 'value' ? typed(next, first.type, encoder) : next;
      return { ...first, otherwise, key: applicationKey('coalesce', [first.key, next.key]) };
    }
    const key = applicationKey('coalesce', [first.key, next.key]);
    if (first.kind === 'truth' && next.kind === 'truth')
      return { kind: 'truth', truth: firstOf(next.truth, first.truth), key };
    if (first.kind !== 'value' || next.kind !== 'value')
      throw new NotUnderstood('COALESCE of values of the caller');
    const [a, b] = [typed(first, next.type, encoder), typed(next, first.type, encoder)];
    const value = choice(not(a.value.isNull), a.value, b.value) ?? encoder.unknownValue(key);
    return { kind: 'value', value, type: a.type ?? b.type, key, column: null, literal: null };
  }

  #sessionValue(op: string, place: Placed, home: Home): Term {
    const role = this.#context.database.catalog.roles.get(place.rights.role)?.name;
    if (op === 'SVFOP_CURRENT_USER' || op === 'SVFOP_CURRENT_ROLE' || op === 'SVFOP_USER') {
      if (role === undefined) throw new NotUnderstood('current_user');
      return literalTerm(role, 'text', home.encoder);
    }
    if (op === 'SVFOP_SESSION_USER') throw new NotUnderstood('session_user');
    const key = applicationKey(op, []);
    return { ...NULL_TERM, value: home.encoder.unknownValue(key), type: null, key };
  }

  #callerTerm(source: Parameters<CallerValueNames['nameOf']>[0]): CallerTerm {
    const attribute = this.#context.names.nameOf(source, false);
    return {
      kind: 'caller',
      attribute,
      type: 'text',
      emptyIsNull: false,
      otherwise: null,
      key: `caller ${attribute}`,
    };
  }

  #listOf(path: readonly string[], type: TypeName, missingIsEmpty: boolean): ElementsTerm {
    const attribute = this.#context.names.nameOf({ kind: 'claim', path }, true);
    return { kind: 'elements', attribute, type, missingIsEmpty, key: `elements ${attribute}` };
  }

  #call(call: FuncCall, place: Placed, home: Home): Term {
    const called = calledQuery(place, this.#context.database);
    if (called !== null) return this.#calledTerm(called, place, home);
    const { name } = calledName(call);
    if (name === 'current_setting') return this.#setting(call, place);
    const elements = this.#elements(place, home, false);
    if (elements !== null) return elements;
    const args = (call.args ?? []).map((arg) => this.#term(at(place, arg), home));
    // A function that is not immutable may depend on settings, such as the time zone, which the gateway has otherwise.
    if (this.#context.database.catalog.systemFunctions.has(name) && !CLOCKS.has(name))
      throw new NotUnderstood(`the function ${name}, which depends on settings or is volatile`);
    const key = applicationKey(
      name,
      args.map((arg) => arg.key),
    );
    return { ...NULL_TERM, value: home.encoder.unknownValue(key), type: null, key };
  }

  #calledTerm(called: CalledQuery, place: Placed, home: Home): Term {
    const alone = aloneIn(selectOf(called.query.node));
    if (alone === null || called.returnsSet)
      throw new NotUnderstood(`rows of ${functionName(place)} as a value`);
    const term = this.#term(at(called.query, alone), home);
    if (!called.strict || called.args.length === 0) return term;
    const given = this.#notNull(called, home);
    if (term.kind === 'truth')
      return {
        ...term,
        truth: { isTrue: and(given, term.truth.isTrue), isFalse: and(given, term.truth.isFalse) },
      };
    if (term.kind !== 'value') throw new NotUnderstood(`${functionName(place)}, which is STRICT`);
    return { ...term, value: { ...term.value, isNull: or(term.value.isNull, not(given)) }, column: null };
  }

  #setting(call: FuncCall, place: Placed): Term {
    const [nameNode, missing] = call.args ?? [];
    const name = nameNode === undefined ? null : this.#literal(at(place, nameNode));
    if (name === null) throw new NotUnderstood('a setting whose name is computed');
    const mayMiss = missing !== undefined && this.#literal(at(place, missing)) === 'true';
    if (!mayMiss) this.#context.assumed.add(`the setting ${name} is set`);
    if (name === CLAIMS_SETTING) return { kind: 'claims', path: [], key: claimsKey([]) };
    return this.#callerTerm(sourceOfSetting(name));
  }

  /** Text of a literal, through arguments. */
  #literal(place: Placed): string | null {
    const reference = 'ColumnRef' in place.node || 'ParamRef' in place.node ? referenceOf(place) : null;
    if (reference !== null) return 'node' in reference ? this.#literal(reference) : null;
    const text = literalOf(place.node);
    return text === 't' ? 'true' : text;
  }

  /** The list whose elements a function returns, as rows or as an array; null for other functions. */
  #elements(place: Placed, home: Home, asRows: boolean): ElementsTerm | null {
    if (!('FuncCall' in place.node)) return null;
    const { schema, name } = calledName(place.node.FuncCall);
    const [of] = place.node.FuncCall.args ?? [];
    if (of === undefined || schema !== null) return null;
    if (asRows && (name === 'jsonb_array_elements_text' || name === 'json_array_elements_text')) {
      const list = this.#term(at(place, of), home);
      return list.kind === 'claims' ? this.#listOf(list.path, 'text', true) : null;
    }
    if (asRows && name === 'unnest') {
      const list = this.#term(at(place, of), home);
      return list.kind === 'elements' ? { ...list, missingIsEmpty: true } : null;
    }
    if (name !== 'string_to_array' && name !== 'regexp_split_to_array') return null;
    const whole = this.#term(at(place, of), home);
    if (whole.kind !== 'caller' || whole.otherwise !== null) return null;
    const known = this.#context.names.named(whole.attribute);
    if (known === null) return null;
    const attribute = this.#context.names.nameOf(known.source, true);
    return { kind: 'elements', attribute, type: 'text', missingIsEmpty: false, key: `elements ${attribute}` };
  }

  #cast(place: Placed, target: TypeNode | undefined, arg: Node | undefined, home: Home): Term {
    const names = namesOf(target?.names).filter((name) => name !== 'pg_catalog');
    const name = names.join('.');
    const isList = (target?.arrayBounds ?? []).length > 0;
    const type = names.length === 1 ? typeNamed(name) : null;
    const inner = this.#term(at(place, arg), home);
    const isLimited = (target?.typmods ?? []).length > 0;
    switch (inner.kind) {
      case 'claims':
        return inner;
      case 'array':
        return { ...inner, items: inner.items.map((item) => castItem(item, type, home.encoder)) };
      case 'elements':
        if (type === null || !isList) throw new NotUnderstood(`a list as ${name}`);
        return { ...inner, type };
      case 'truth':
        if (type === 'bool') return inner;
        throw new NotUnderstood(`a condition as ${name}`);
      case 'caller':
        if (type === null || isLimited || isList) throw new NotUnderstood(`a value of the caller as ${name}`);
        if (inner.type !== type && type !== 'text')
          this.#context.assumed.add(`${inner.attribute} can be read as ${type}`);
        return castCaller(inner, type, home.encoder);
      case 'value':
        return this.#castValue(inner, { type, name, isList, isLimited }, home);
    }
  }

  #castValue(
    term: ValueTerm,
    {
      type,
      name,
      isList,
      isLimited,
    }: { type: TypeName | null; name: string; isList: boolean; isLimited: boolean },
    { encoder }: Home,
  ): Term {
    if (term.key === NULL_KEY) return { ...term, type };
    if (isList && term.literal !== null && type !== null) {
      const items = arrayElements(term.literal);
      if (items !== null)
        return {
          kind: 'array',
          items: items.map((item) => (item === null ? NULL_TERM : literalTerm(item, type, encoder))),
          key: literalKey(term.literal, `${type}[]`),
        };
    }
    if (term.literal !== null && term.type === null && type !== null && !isList && !isLimited)
      return type === 'bool' ? truthLiteral(term.literal) : literalTerm(term.literal, type, encoder);
    // A label of an enum is a text; other types of users may compare in another way.
    if (term.literal !== null && type === null && this.#isEnum(name))
      return literalTerm(term.literal, 'text', encoder);
    if (type !== null && ZONED.has(type) && (term.type === null || term.type !== type) && isMoment(term))
      throw new NotUnderstood(`a cast to ${name} that depends on the time zone`);
    const target = isLimited || type === null || isList ? `${name}${isList ? '[]' : ''} limited` : type;
    const key = castKey(term.key, term.type, target);
    if (key === term.key) return { ...term, type };
    const column = type === 'text' ? term.column : null;
    if (KEEPING.has(`${term.type} ${target}`)) return { ...term, type, key, column };
    return {
      kind: 'value',
      value: { kind: 'opaque', isNull: term.value.isNull },
      type,
      key,
      column,
      literal: null,
    };
  }

  #isEnum(name: string): boolean {
    return this.#context.enums.has(name);
  }
}

const COMPARISONS: ReadonlySet<string> = new Set(
  '= <> < > <= >= ~~ !~~ ~~* !~~* ^@ ~ ~* !~ !~* @> <@ && ? ?| ?&'.split(' '),
);
const JSON_PATHS: ReadonlyMap<string, 'step' | 'path'> = new Map([
  ['->', 'step'],
  ['->>', 'step'],
  ['#>', 'path'],
  ['#>>', 'path'],
]);
/** Kinds of expressions that are truth values, whatever is in them. */
const TRUTHS = ['BoolExpr', 'NullTest', 'BooleanTest', 'A_Expr', 'SubLink'] as const;
/** Functions with the time of the transaction, which settings do not change. */
const CLOCKS: ReadonlySet<string> = new Set(['now', 'transaction_timestamp', 'statement_timestamp']);
const ZONED: ReadonlySet<TypeName> = new Set(['date', 'time', 'timestamp', 'timestamptz', 'text']);

/** True if a value is a point in time, or may be one. */
function isMoment({ type, literal }: ValueTerm): boolean {
  const isTime = type === 'date' || type === 'timestamp' || type === 'timestamptz';
  return isTime || (type === null && literal === null);
}

const TRUE_TERM: TruthTerm = truthLiteral('true');

function isRowTerm(term: Term): term is ValueTerm | TruthTerm {
  return term.kind === 'value' || term.kind === 'truth';
}

function nor(a: Formula, b: Formula): Formula {
  return and(not(a), not(b));
}

function at(place: Placed, node: Node | undefined): Placed {
  if (node === undefined) throw new NotUnderstood('an expression that is cut off');
  return { ...place, node };
}

function equality(left: Node, right: Node | undefined): Node {
  if (right === undefined) throw new NotUnderstood('CASE');
  return { A_Expr: { kind: 'AEXPR_OP', name: [{ String: { sval: '=' } }], lexpr: left, rexpr: right } };
}

/** The name of an operator of Postgres. @throws NotUnderstood for those of users and extensions */
export function operatorOf({ name }: A_Expr): string {
  const names = namesOf(name);
  const [schema, operator] = names.length > 1 ? names : ['pg_catalog', names[0]];
  if (schema !== 'pg_catalog' || operator === undefined)
    throw new NotUnderstood(`the operator ${names.join('.')}`);
  return operator;
}

function functionName({ node }: Placed): string {
  return 'FuncCall' in node ? namesOf(node.FuncCall.funcname).join('.') : 'a function';
}

/** @throws NotUnderstood if it is another statement */
function selectOf(query: Node | undefined): SelectStmt {
  if (query === undefined || !('SelectStmt' in query))
    throw new NotUnderstood('a subquery that is no SELECT');
  return query.SelectStmt;
}

/** The value of a query that is a single expression, such as `(SELECT auth.uid())`; null for any other query. */
function aloneIn(select: SelectStmt): Node | null {
  const { fromClause, whereClause, groupClause, havingClause, limitCount, limitOffset, op, valuesLists } =
    select;
  const parts = [fromClause, whereClause, groupClause, havingClause, limitCount, limitOffset, valuesLists];
  const isPlain = parts.every((part) => part === undefined) && (op === undefined || op === 'SETOP_NONE');
  return isPlain && select.withClause === undefined && select.targetList?.length === 1
    ? firstTarget(select)
    : null;
}

function claimsKey(path: readonly string[]): string {
  return `claims ${JSON.stringify(path)}`;
}
