import { InternalError } from '../errors/errors.js';
import type { AttributeMatch, Expr, Literal } from '../plan/plan.js';
import { literalText } from '../plan/values.js';
import { identifier, quoteLiteral } from '../text/sql-text.js';
import { type ArrayType, arrayOf, isArray } from '../types/types.js';
import { emitExpr } from './expression.js';
import { Writer } from './writer.js';

/** `arg` compared with each value of an attribute of the caller. */
export interface MatchedAttribute {
  readonly attribute: string;
  /** SQL. */
  readonly arg: string;
  /** The equality of `arg`'s type. */
  readonly operator: string;
  /** Of the attribute's values. */
  readonly type: ArrayType;
}

/**
 * A policy predicate as SQL that stands on its own, in a policy of the database: columns by their bare names, literals
 * in the text. What it compares with an attribute is written by `match`. Names of functions and operators mean those
 * of `pg_catalog`, which must come first in the search path where the text is read.
 */
export function predicateSql(filter: Expr, match: (matched: MatchedAttribute) => string): string {
  const writer = new PredicateWriter(match);
  emitExpr(filter, writer);
  if (writer.slotsUsed().length > 0) throw new InternalError('a policy predicate has a parameter');
  return writer.text();
}

class PredicateWriter extends Writer {
  readonly #match: (matched: MatchedAttribute) => string;

  constructor(match: (matched: MatchedAttribute) => string) {
    super([]);
    this.#match = match;
  }

  override base(column: string): void {
    this.write(identifier(column));
  }

  override ofPolicy(expr: Literal | AttributeMatch): void {
    this.write(expr.kind === 'literal' ? literalSql(expr) : this.#writeMatch(expr));
  }

  #writeMatch({ arg, attribute, equality }: AttributeMatch): string {
    if (isArray(arg.type)) throw new InternalError('an attribute has elements that are arrays');
    const inner = new PredicateWriter(this.#match);
    emitExpr(arg, inner);
    return this.#match({ attribute, arg: inner.text(), operator: equality.name, type: arrayOf(arg.type) });
  }
}

/** INVARIANT: read under `standard_conforming_strings`, where a backslash is a character like any other. */
function literalSql({ value, type }: Literal): string {
  return `${quoteLiteral(literalText(value))}::${type}`;
}
