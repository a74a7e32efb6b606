import { InternalError } from '../errors/errors.js';
import type { AttributeMatch, BaseColumn, Expr, Literal, Query } from '../plan/plan.js';
import { allLeaves, exprsOfScan, nodesIn } from '../plan/walk.js';
import { identifier, quoteLiteral } from '../text/sql-text.js';
import { type ArrayType, arrayOf, isArray, oidOf } from '../types/types.js';
import { emitExpr } from './expression.js';
import { literalText, Writer } from './writer.js';

/** A test whether `arg` equals one of the values of an attribute of the caller. */
export interface MatchedAttribute {
  readonly attribute: string;
  readonly arg: string;
  /** The equality operator for the type of `arg`. */
  readonly operator: string;
  /** The type of the attribute's values. */
  readonly type: ArrayType;
}

/**
 * Returns a policy predicate as standalone SQL, for a row security policy in the database: columns by their bare names,
 * literals in the text. `match` writes comparisons with attributes. Names of functions and operators refer to
 * `pg_catalog`, which must come first in the search path when the text is parsed.
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

/** INVARIANT: the text is parsed with `standard_conforming_strings` on, so that a backslash has no special meaning. */
function literalSql({ value, type }: Literal): string {
  return `${quoteLiteral(literalText(value))}::${type}`;
}

/** Statement that reads no rows. It fails, or has columns of other types, if its table does not match the manifest. */
export interface SourceProbe {
  readonly sql: string;
  /** Type OIDs of the result columns if the table matches the manifest. */
  readonly columnOids: readonly number[];
}

/** Returns one probe for each table that `query` scans, with the columns that it reads. */
export function sourceProbes(query: Query): readonly SourceProbe[] {
  const tables = new Map<string, Map<string, BaseColumn>>();
  for (const leaf of allLeaves(query)) {
    if (leaf.kind !== 'governed') continue;
    const { schema, table } = leaf.relation;
    const name = `${identifier(schema)}.${identifier(table)}`;
    const columns = tables.get(name) ?? new Map<string, BaseColumn>();
    tables.set(name, columns);
    for (const column of nodesIn(exprsOfScan(leaf), 'base')) columns.set(column.column, column);
  }
  return [...tables].map(([table, columns]) => probeOf(table, [...columns.values()]));
}

function probeOf(table: string, columns: readonly BaseColumn[]): SourceProbe {
  const writer = new Writer([]);
  writer.write('select ');
  writer.list(columns, ', ', (column) => emitExpr(column, writer));
  writer.write(` from ${table} as t limit 0`);
  return { sql: writer.text(), columnOids: columns.map((c) => oidOf(c.type)) };
}
