import type { A_Expr, FuncCall } from '@pgsql/types';
import type { TypeName } from 'osl-compiler';
import {
  and,
  applicationKey,
  choice,
  coalesceTruth,
  type Formula,
  not,
  or,
  TRUE,
  type Truth,
} from '../../../policy/proof/index.js';
import type { CheckedDatabase } from '../database.js';
import { calledName, literalOf, namesOf } from '../nodes.js';
import { type CallerValueNames, CLAIMS_SETTING, sourceOfSetting } from './caller-values.js';
import { type CastContext, castTerm } from './casts.js';
import { aloneIn, type CalledQuery, calledQuery, selectOf } from './functions.js';
import { at, type Home, NotUnderstood, operatorOf, type PlacedExpression, referenceOf } from './scope.js';
import {
  type CallerTerm,
  COMPARISONS,
  columnTerm,
  constantTerm,
  type ElementsTerm,
  isNull,
  isSameCaller,
  literalTerm,
  NULL_TERM,
  type Term,
  typed,
} from './terms.js';

export interface TranslationContext extends CastContext {
  readonly database: CheckedDatabase;
  readonly names: CallerValueNames;
}

/** Translates conditions inside values. */
interface InnerConditions {
  truth(place: PlacedExpression, home: Home): Truth;
  /** @throws NotUnderstood */
  equal(left: PlacedExpression, right: PlacedExpression, home: Home): Truth;
}

/** Translates the values in conditions of row security: values of the row, values of the caller, and literals. */
export class Values {
  readonly #context: TranslationContext;
  readonly #conditions: InnerConditions;
  #conditionCount = 0;

  constructor(context: TranslationContext, conditions: InnerConditions) {
    this.#context = context;
    this.#conditions = conditions;
  }

  /** Translates a value. @throws NotUnderstood */
  term(place: PlacedExpression, home: Home): Term {
    const { node } = place;
    const { encoder } = home;
    const reference = referenceOf(place);
    if (reference !== null)
      return 'node' in reference ? this.term(reference, home) : columnTerm(reference, home);
    if ('A_Const' in node) return constantTerm(node, encoder);
    if ('TypeCast' in node) {
      const inner = this.term(at(place, node.TypeCast.arg), home);
      return castTerm(inner, node.TypeCast.typeName, this.#context, encoder);
    }
    if ('CoalesceExpr' in node)
      return this.#coalesce(
        (node.CoalesceExpr.args ?? []).map((arg) => this.term(at(place, arg), home)),
        home,
      );
    if ('SQLValueFunction' in node) return this.#sessionValue(node.SQLValueFunction.op ?? '', place, home);
    if ('A_ArrayExpr' in node) {
      const items = (node.A_ArrayExpr.elements ?? []).map((item) => this.term(at(place, item), home));
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
      if (alone !== null) return this.term(at(place, alone), home);
    }
    if ('FuncCall' in node) return this.#call(node.FuncCall, place, home);
    if ('A_Expr' in node) {
      const found = this.#valueOperation(node.A_Expr, place, home);
      if (found !== null) return found;
    }
    if (TRUTHS.some((kind) => kind in node))
      return {
        kind: 'truth',
        truth: this.#conditions.truth(place, home),
        key: `condition ${this.#conditionCount++}`,
      };
    throw new NotUnderstood(`an expression of the kind ${Object.keys(node)[0] ?? ''}`);
  }

  #valueOperation(expression: A_Expr, place: PlacedExpression, home: Home): Term | null {
    const operator = operatorOf(expression);
    const [left, right] = [at(place, expression.lexpr), at(place, expression.rexpr)];
    if (expression.kind === 'AEXPR_NULLIF') return this.#nullIf(left, right, home);
    if (expression.kind !== 'AEXPR_OP' || COMPARISONS.has(operator)) return null;
    const path = JSON_PATHS.get(operator);
    const [a, literal] = [this.term(left, home), literalOf(right.node)];
    if (a.kind === 'claims' && path !== undefined && literal !== null) {
      const steps = path === 'step' ? [literal] : literal.replace(/^\{|\}$/g, '').split(',');
      const whole = [...a.path, ...steps];
      if (!operator.endsWith('>>')) return { kind: 'claims', path: whole, key: claimsKey(whole) };
      return this.#callerTerm({ kind: 'claim', path: whole });
    }
    const key = applicationKey(operator, [a.key, this.term(right, home).key]);
    return { ...NULL_TERM, value: home.encoder.unknownValue(key), type: null, key, literal: null };
  }

  #nullIf(left: PlacedExpression, right: PlacedExpression, home: Home): Term {
    const term = this.term(left, home);
    if (term.kind === 'caller' && literalOf(right.node) === '' && term.otherwise === null)
      return { ...term, emptyIsNull: true };
    if (term.kind === 'claims' && literalOf(right.node) === '') return term;
    if (term.kind !== 'value') throw new NotUnderstood('NULLIF of a value of the caller');
    const { isTrue } = this.#conditions.equal(left, right, home);
    const value = { ...term.value, isNull: or(term.value.isNull, isTrue) };
    return {
      ...term,
      value,
      key: applicationKey('nullif', [term.key, this.term(right, home).key]),
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
      // Both are the same value, so if the first turns an empty text into NULL, the second decides.
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
      return { kind: 'truth', truth: coalesceTruth(next.truth, first.truth), key };
    if (first.kind !== 'value' || next.kind !== 'value')
      throw new NotUnderstood('COALESCE of values of the caller');
    const [a, b] = [typed(first, next.type, encoder), typed(next, first.type, encoder)];
    const value = choice(not(a.value.isNull), a.value, b.value) ?? encoder.unknownValue(key);
    return { kind: 'value', value, type: a.type ?? b.type, key, column: null, literal: null };
  }

  #sessionValue(op: string, place: PlacedExpression, home: Home): Term {
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

  listOf(path: readonly string[], type: TypeName, missingIsEmpty: boolean): ElementsTerm {
    const attribute = this.#context.names.nameOf({ kind: 'claim', path }, true);
    return { kind: 'elements', attribute, type, missingIsEmpty, key: `elements ${attribute}` };
  }

  #call(call: FuncCall, place: PlacedExpression, home: Home): Term {
    const called = calledQuery(place, this.#context.database);
    if (called !== null) return this.#calledTerm(called, place, home);
    const { name } = calledName(call);
    if (name === 'current_setting') return this.#setting(call, place);
    const elements = this.elements(place, home, false);
    if (elements !== null) return elements;
    const args = (call.args ?? []).map((arg) => this.term(at(place, arg), home));
    // A function that is not immutable may depend on settings that differ in the gateway, like the time zone.
    if (this.#context.database.catalog.systemFunctions.has(name) && !CLOCKS.has(name))
      throw new NotUnderstood(`the function ${name}, which depends on settings or is volatile`);
    const key = applicationKey(
      name,
      args.map((arg) => arg.key),
    );
    return { ...NULL_TERM, value: home.encoder.unknownValue(key), type: null, key };
  }

  #calledTerm(called: CalledQuery, place: PlacedExpression, home: Home): Term {
    const alone = aloneIn(selectOf(called.query.node));
    if (alone === null || called.returnsSet)
      throw new NotUnderstood(`rows of ${functionName(place)} as a value`);
    const term = this.term(at(called.query, alone), home);
    if (!called.strict || called.args.length === 0) return term;
    const given = this.notNull(called, home);
    if (term.kind === 'truth')
      return {
        ...term,
        truth: { isTrue: and(given, term.truth.isTrue), isFalse: and(given, term.truth.isFalse) },
      };
    if (term.kind !== 'value') throw new NotUnderstood(`${functionName(place)}, which is STRICT`);
    return { ...term, value: { ...term.value, isNull: or(term.value.isNull, not(given)) }, column: null };
  }

  #setting(call: FuncCall, place: PlacedExpression): Term {
    const [nameNode, missing] = call.args ?? [];
    const name = nameNode === undefined ? null : this.#literal(at(place, nameNode));
    if (name === null) throw new NotUnderstood('a setting whose name is computed');
    const mayMiss = missing !== undefined && this.#literal(at(place, missing)) === 'true';
    if (!mayMiss) this.#context.assumed.add(`the setting ${name} is set`);
    if (name === CLAIMS_SETTING) return { kind: 'claims', path: [], key: claimsKey([]) };
    return this.#callerTerm(sourceOfSetting(name));
  }

  /** Text of a literal, also as an argument of a function; null for any other expression. */
  #literal(place: PlacedExpression): string | null {
    const reference = 'ColumnRef' in place.node || 'ParamRef' in place.node ? referenceOf(place) : null;
    if (reference !== null) return 'node' in reference ? this.#literal(reference) : null;
    const text = literalOf(place.node);
    return text === 't' ? 'true' : text;
  }

  /** The list whose elements a function returns, as rows or as an array; null for other functions. */
  elements(place: PlacedExpression, home: Home, asRows: boolean): ElementsTerm | null {
    if (!('FuncCall' in place.node)) return null;
    const { schema, name } = calledName(place.node.FuncCall);
    const [of] = place.node.FuncCall.args ?? [];
    if (of === undefined || schema !== null) return null;
    if (asRows && (name === 'jsonb_array_elements_text' || name === 'json_array_elements_text')) {
      const list = this.term(at(place, of), home);
      return list.kind === 'claims' ? this.listOf(list.path, 'text', true) : null;
    }
    if (asRows && name === 'unnest') {
      const list = this.term(at(place, of), home);
      return list.kind === 'elements' ? { ...list, missingIsEmpty: true } : null;
    }
    if (name !== 'string_to_array' && name !== 'regexp_split_to_array') return null;
    const whole = this.term(at(place, of), home);
    if (whole.kind !== 'caller' || whole.otherwise !== null) return null;
    const known = this.#context.names.named(whole.attribute);
    if (known === null) return null;
    const attribute = this.#context.names.nameOf(known.source, true);
    return { kind: 'elements', attribute, type: 'text', missingIsEmpty: false, key: `elements ${attribute}` };
  }

  /** True unless a STRICT function has a NULL among its arguments. */
  notNull({ strict, args }: CalledQuery, home: Home): Formula {
    if (!strict) return TRUE;
    return and(
      ...args.map((arg) => {
        const none = isNull(this.term(arg, home), home.encoder);
        if (none === null) throw new NotUnderstood('a list as argument of a STRICT function');
        return not(none);
      }),
    );
  }
}

const JSON_PATHS: ReadonlyMap<string, 'step' | 'path'> = new Map([
  ['->', 'step'],
  ['->>', 'step'],
  ['#>', 'path'],
  ['#>>', 'path'],
]);
/** Kinds of nodes that are translated as truth values unless handled earlier. */
const TRUTHS = ['BoolExpr', 'NullTest', 'BooleanTest', 'A_Expr', 'SubLink'] as const;
/** Functions that return the time of the transaction, which no setting changes. */
const CLOCKS: ReadonlySet<string> = new Set(['now', 'transaction_timestamp', 'statement_timestamp']);

function functionName({ node }: PlacedExpression): string {
  return 'FuncCall' in node ? namesOf(node.FuncCall.funcname).join('.') : 'a function';
}

function claimsKey(path: readonly string[]): string {
  return `claims ${JSON.stringify(path)}`;
}
