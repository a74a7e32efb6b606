import type { A_Expr, Node, SubLink } from '@pgsql/types';
import {
  and,
  anyOf,
  definite,
  FALSE,
  type Formula,
  ifThenElse,
  not,
  operationKey,
  or,
  type Truth,
} from '../../../policy/proof/index.js';
import { firstTarget, namesOf } from '../nodes.js';
import { aloneIn, type CalledQuery, calledQuery, type Subquery, selectOf, subqueryOf } from './functions.js';
import { at, type Home, NotUnderstood, operatorOf, type PlacedExpression } from './scope.js';
import {
  COMPARISONS,
  callerEquals,
  compareTerms,
  type ElementsTerm,
  isElement,
  isNull,
  isRowTerm,
  type Term,
  type TruthTerm,
  truthLiteral,
  typed,
  type ValueTerm,
} from './terms.js';
import { type TranslationContext, Values } from './values.js';

export interface ConditionContext extends TranslationContext {
  /** Returns a formula that is true if a subquery has a row. @throws NotUnderstood */
  hasRow(subquery: Subquery, home: Home): Formula;
}

/**
 * Translates conditions of row security to formulas, with the semantics of Postgres. A part that it does not understand
 * becomes an unknown truth value that differs from every other.
 */
export class ConditionEncoder {
  readonly #context: ConditionContext;
  readonly #values: Values;
  #unknown = 0;

  constructor(context: ConditionContext) {
    this.#context = context;
    this.#values = new Values(context, {
      truth: (place, home) => this.truth(place, home),
      equal: (left, right, home) => this.#compared('=', left, right, home),
    });
  }

  truth(place: PlacedExpression, home: Home): Truth {
    return this.#understood(home, () => this.#truth(place, home));
  }

  equal(left: PlacedExpression, right: PlacedExpression, home: Home): Truth {
    return this.#understood(home, () => this.#compared('=', left, right, home));
  }

  /** Translates a value of the row or a literal. @throws NotUnderstood for a value of the caller */
  rowTerm(place: PlacedExpression, home: Home): ValueTerm | TruthTerm {
    const term = this.#values.term(place, home);
    if (isRowTerm(term)) return term.kind === 'value' ? typed(term, 'text', home.encoder) : term;
    throw new NotUnderstood('a value of the caller among rows of a subquery');
  }

  #understood({ encoder }: Home, work: () => Truth): Truth {
    try {
      return work();
    } catch (error) {
      if (!(error instanceof NotUnderstood)) throw error;
      return encoder.unknownTruth(`not understood ${this.#unknown++}`, error.message);
    }
  }

  #truth(place: PlacedExpression, home: Home): Truth {
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
      const none = isNull(this.#values.term(at(place, node.NullTest.arg), home), home.encoder);
      if (none === null) throw new NotUnderstood('IS NULL of a list');
      return definite(none, node.NullTest.nulltesttype === 'IS_NOT_NULL');
    }
    if ('BooleanTest' in node) {
      const { isTrue, isFalse } = of(node.BooleanTest.arg);
      const test = node.BooleanTest.booltesttype ?? '';
      const holds = test.endsWith('TRUE') ? isTrue : test.endsWith('FALSE') ? isFalse : nor(isTrue, isFalse);
      return definite(holds, test.startsWith('IS_NOT'));
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
    return this.#truthOf(this.#values.term(place, home), home);
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

  #case(place: PlacedExpression, home: Home): Truth {
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
        isTrue: ifThenElse(isTrue, result.isTrue, rest.isTrue),
        isFalse: ifThenElse(isTrue, result.isFalse, rest.isFalse),
      };
    }, otherwise);
  }

  // -------------------------------------------------------------- subqueries

  #subquery(link: SubLink, place: PlacedExpression, home: Home): Truth {
    const select = selectOf(link.subselect);
    const test = { select, place, firstRow: false, equalTo: null, isTrue: false };
    switch (link.subLinkType) {
      case 'EXISTS_SUBLINK':
        return definite(this.#context.hasRow(test, home), false);
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

  /** Translates `x IN (SELECT …)` and `x = (SELECT …)`. */
  #isAmong(tested: PlacedExpression, subquery: Subquery, home: Home): Truth {
    const { select, place } = subquery;
    const target = firstTarget(select);
    if (select.fromClause === undefined && target !== null && 'FuncCall' in target) {
      const elements = this.#values.elements(at(place, target), home, true);
      if (elements !== null) return this.#amongElements(tested, elements, home);
      const called = calledQuery(at(place, target), this.#context.database);
      if (called?.returnsSet === true) {
        const inner = { ...subquery, select: selectOf(called.query.node), place: called.query };
        return this.#isAmong(tested, inner, home);
      }
    }
    return this.#orNotTrue(this.#context.hasRow({ ...subquery, equalTo: tested }, home), home);
  }

  /** A truth value of which only `isTrue` is known; otherwise it may be false or NULL. */
  #orNotTrue(isTrue: Formula, home: Home): Truth {
    const key = `false or NULL ${this.#unknown++}`;
    const { isFalse } = home.encoder.unknownTruth(key, 'a subquery that is false or NULL');
    return { isTrue, isFalse: and(not(isTrue), isFalse) };
  }

  #amongElements(tested: PlacedExpression, elements: ElementsTerm, home: Home): Truth {
    const term = this.#values.term(tested, home);
    const found = isRowTerm(term) ? isElement(elements, term, home.encoder) : null;
    if (found === null) throw new NotUnderstood('a list of the caller that is compared with something else');
    return found;
  }

  #calledTruth(called: CalledQuery, home: Home): Truth {
    const { isTrue, isFalse } = this.#bodyTruth(called, home);
    const given = this.#values.notNull(called, home);
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

  // -------------------------------------------------------------- operators

  /** Translates an operator; null if its result is not a truth value. */
  #operation(expression: A_Expr, place: PlacedExpression, home: Home): Truth | null {
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

  #compared(operator: string, left: PlacedExpression, right: PlacedExpression, home: Home): Truth {
    for (const [side, other] of [
      [left, right],
      [right, left],
    ] as const) {
      const rows = subqueryOf(side, this.#context.database);
      if (rows === null) continue;
      if (operator !== '=') throw new NotUnderstood(`a subquery that is compared by ${operator}`);
      return this.#isAmong(other, rows, home);
    }
    const [a, b] = [this.#values.term(left, home), this.#values.term(right, home)];
    if (operator === '?' && a.kind === 'claims')
      return this.#amongElements(right, this.#values.listOf(a.path, 'text', false), home);
    const found = compareTerms(operator, a, b, home.encoder);
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

  #distinct(left: PlacedExpression, right: PlacedExpression, isNegated: boolean, home: Home): Truth {
    const { isTrue, isFalse } = this.#compared('=', left, right, home);
    const [none, other] = [left, right].map((side) => isNull(this.#values.term(side, home), home.encoder));
    if (none == null || other == null) throw new NotUnderstood('IS DISTINCT FROM of a list');
    const isSame = or(isTrue, and(none, other));
    const isOther = or(isFalse, and(none, not(other)), and(not(none), other));
    return isNegated ? { isTrue: isSame, isFalse: isOther } : { isTrue: isOther, isFalse: isSame };
  }

  #quantified(
    operator: string,
    isAny: boolean,
    left: PlacedExpression,
    right: PlacedExpression,
    home: Home,
  ): Truth {
    const rows = subqueryOf(right, this.#context.database);
    if (rows !== null) {
      if (operator !== '=' || !isAny) throw new NotUnderstood('a subquery with ALL');
      return this.#isAmong(left, rows, home);
    }
    const list = this.#values.term(right, home);
    if (list.kind === 'elements') {
      if (operator !== '=' || !isAny) throw new NotUnderstood('a list of the caller with ALL');
      return this.#amongElements(left, list, home);
    }
    if (list.kind !== 'array') throw new NotUnderstood(`ANY or ALL of ${list.key}`);
    const term = this.#values.term(left, home);
    const each = list.items.map((item) => {
      const truth = compareTerms(operator, term, item, home.encoder);
      if (truth === null) throw new NotUnderstood(`the operator ${operator} with a list`);
      return truth;
    });
    if (isAny) return anyOf(each);
    return { isTrue: and(...each.map((t) => t.isTrue)), isFalse: or(...each.map((t) => t.isFalse)) };
  }
}

const TRUE_TERM: TruthTerm = truthLiteral('true');

function nor(a: Formula, b: Formula): Formula {
  return and(not(a), not(b));
}

function equality(left: Node, right: Node | undefined): Node {
  if (right === undefined) throw new NotUnderstood('CASE');
  return { A_Expr: { kind: 'AEXPR_OP', name: [{ String: { sval: '=' } }], lexpr: left, rexpr: right } };
}
