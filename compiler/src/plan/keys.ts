import { assertNever } from '../errors/errors.js';
import { storedType } from '../types/column-form.js';
import type {
  BaseColumn,
  ColumnRef,
  DistinctTest,
  EntityScan,
  Expr,
  FromItem,
  FromLeaf,
  GovernedScan,
  Operation,
  Parameter,
  Query,
  Select,
  SourceId,
} from './plan.js';
import { allQueries, leavesOf, nestingIn, nodesIn } from './walk.js';

/** An equality of columns of two FROM items; NULL equals nothing. */
export type KeyEquality = Operation & { readonly left: ColumnRef; readonly right: ColumnRef };

/** An equality of columns of two FROM items; NULL equals NULL. */
export type NullSafeEquality = DistinctTest & { readonly left: ColumnRef; readonly right: ColumnRef };

/** True if `expr` equates columns of two FROM items with `=`. */
export function isKeyEquality(expr: Expr): expr is KeyEquality {
  if (expr.kind !== 'operation' || expr.definition.name !== '=') return false;
  const { left, right } = expr;
  return left?.kind === 'column' && right.kind === 'column' && left.source !== right.source;
}

/** True if `expr` equates columns of two FROM items with IS NOT DISTINCT FROM. */
function isNullSafeEquality(expr: Expr): expr is NullSafeEquality {
  if (expr.kind !== 'distinct_test' || !expr.negated) return false;
  const { left, right } = expr;
  return left.kind === 'column' && right.kind === 'column' && left.source !== right.source;
}

/** True if `expr` equates columns of two FROM items, with `=` or with IS NOT DISTINCT FROM. */
export function equatesColumns(expr: Expr): expr is KeyEquality | NullSafeEquality {
  return isKeyEquality(expr) || isNullSafeEquality(expr);
}

/** An equality between a column stored as an enum and a value of the statement. */
export interface EnumEquality {
  readonly base: BaseColumn;
  /** The name of the enum in SQL. */
  readonly sql: string;
  readonly value: Parameter;
}

/** Returns the enum comparison in `operation`; null for any other operation. */
export function enumEquality({ left, definition, right }: Operation): EnumEquality | null {
  if (definition.name !== '=' || left === null) return null;
  return sides(left, right) ?? sides(right, left);
}

function sides(base: Expr, value: Expr): EnumEquality | null {
  if (base.kind !== 'base' || base.stored === undefined || value.kind !== 'parameter') return null;
  if (value.type !== 'text') return null;
  const type = storedType(base.stored);
  return type?.isEnum === true ? { base, sql: type.sql, value } : null;
}

/** True if column `name` of a scan is a sealed key of its relation. */
export type IsKeyOf = (scan: EntityScan | GovernedScan, name: string) => boolean;

const BY_NAME: IsKeyOf = ({ relation }, name) => relation.sealedKeys.includes(name);

/**
 * The sealed columns of a plan: keys that the manifest declares (`entity_key_columns`, a facet's `scalar_indexed`), and
 * columns of derived tables, common tables and set operations (in both operands) that pass a sealed column through
 * unchanged. Computed columns and columns of VALUES and row functions are never sealed.
 */
export class SealedKeys {
  readonly #isKeyOf: IsKeyOf;
  readonly #leaves = new Map<SourceId, FromLeaf>();
  readonly #tables = new Map<number, { readonly query: Query; readonly recursive: boolean }>();
  /** True for each sealed column of a common table, by table number and position. */
  readonly #ofTables = new Map<number, readonly boolean[]>();
  /** Like `#ofTables`, for recursive tables still being analyzed: columns that were sealed in every step so far. */
  readonly #assumed = new Map<number, readonly boolean[]>();

  constructor(root: Query, isKeyOf: IsKeyOf = BY_NAME) {
    this.#isKeyOf = isKeyOf;
    for (const query of allQueries(root)) {
      if (query.kind === 'select') for (const leaf of leavesOf(query.from)) this.#leaves.set(leaf.id, leaf);
      if (query.kind === 'values') continue;
      for (const { id, query: inner, recursive = false } of query.with)
        this.#tables.set(id, { query: inner, recursive });
    }
  }

  has({ source, name }: ColumnRef): boolean {
    const leaf = this.#leaves.get(source);
    switch (leaf?.kind) {
      case 'entity':
      case 'governed':
        return this.#isKeyOf(leaf, name);
      case 'runtime':
        return leaf.sealed.includes(name);
      case 'derived':
        return this.output(leaf.query, positionOf(name));
      case 'cte':
        return this.table(leaf.table)[positionOf(name)] === true;
      case 'recursion':
        return (this.#assumed.get(leaf.table) ?? this.table(leaf.table))[positionOf(name)] === true;
      default:
        return false;
    }
  }

  /** True if output `position` of `query`, counted from 0, is a sealed column passed through unchanged. */
  output(query: Query, position: number): boolean {
    if (query.kind === 'values') return false;
    if (query.kind === 'set_operation')
      return this.output(query.left, position) && this.output(query.right, position);
    // Rows that operators have processed cannot be joined by key (decision 84).
    if (query.from?.kind === 'runtime' && query.from.own === true) return false;
    const expr = query.outputs[position]?.expr;
    return expr?.kind === 'column' && this.has(expr);
  }

  /** True for each sealed column of a common table; in a recursive one, only if every step keeps the column sealed. */
  table(id: number): readonly boolean[] {
    const known = this.#ofTables.get(id);
    if (known !== undefined) return known;
    const table = this.#tables.get(id);
    if (table === undefined) return [];
    const found = table.recursive ? this.#afterAllSteps(id, table.query) : this.#outputs(table.query);
    this.#ofTables.set(id, found);
    return found;
  }

  #outputs(query: Query): readonly boolean[] {
    const width = query.kind === 'select' ? query.outputs.length : query.columns.length;
    return Array.from({ length: width }, (_, i) => this.output(query, i));
  }

  #afterAllSteps(id: number, query: Query): readonly boolean[] {
    if (query.kind !== 'set_operation') return [];
    let sealed = this.#outputs(query.left);
    for (;;) {
      this.#assumed.set(id, sealed);
      const after = sealed.map((s, i) => s && this.output(query.right, i));
      if (after.every((s, i) => s === sealed[i])) break;
      sealed = after;
    }
    this.#assumed.delete(id);
    return sealed;
  }
}

/** Returns the position of column `c1`, `c2`, …, counted from 0. */
function positionOf(name: string): number {
  return Number(name.slice(1)) - 1;
}

/**
 * True if each table of the statement is read by its whole primary key, equated with values or with columns of rows
 * that are read in the same way. At most one row of each is then read, so one plan is the best for all values. Takes
 * time linear in the size of the statement.
 */
export function isKeyLookup(query: Query): boolean {
  switch (query.kind) {
    case 'values':
      return query.rows.length === 1;
    case 'set_operation':
      return isOfKeyedTables(query) && isKeyLookup(query.left) && isKeyLookup(query.right);
    case 'select':
      return isOfKeyedTables(query) && nestingIn(query).length === 0 && new KeyedLevel(query).isKeyed();
    default:
      return assertNever(query);
  }
}

function isOfKeyedTables({ with: tables }: Exclude<Query, { kind: 'values' }>): boolean {
  return tables.every((t) => t.recursive !== true && isKeyLookup(t.query));
}

/** A FROM item, and its key columns whose values are not known yet. */
interface KeyedItem {
  /** Its index among the FROM items of the level. */
  readonly place: number;
  /** Physical names of the unmasked columns, by name. */
  readonly columns: ReadonlyMap<string, string>;
  /** The physical names of key columns that are not yet equated with a known value. */
  readonly missing: Set<string>;
  /** Equalities that can be used once the item's row is known. */
  readonly waiting: PendingEquality[];
}

/** `column` of `item` equals an expression over rows of other items, `awaited` of which are still unknown. */
interface PendingEquality {
  readonly item: KeyedItem;
  readonly column: string;
  awaited: number;
}

/** One SELECT, whose FROM items become known (limited to one row) one by one. */
class KeyedLevel {
  readonly #query: Select;
  readonly #items = new Map<SourceId, KeyedItem>();
  /** Items that yield at most one row, since all their key columns are fixed; grows during the analysis. */
  readonly #known: KeyedItem[] = [];

  constructor(query: Select) {
    this.#query = query;
  }

  isKeyed(): boolean {
    const leaves = leavesOf(this.#query.from);
    for (const [place, leaf] of leaves.entries()) {
      const item = itemOf(leaf, place);
      if (item === null) return false;
      this.#items.set(leaf.id, item);
      if (item.missing.size === 0) this.#known.push(item);
    }
    if (this.#query.from !== null) this.#readOn(this.#query.from, 0);
    this.#readAll(this.#query.where, 0, leaves.length);
    for (const { waiting } of this.#known) {
      // `#known` grows during this loop.
      for (const equality of waiting) {
        equality.awaited -= 1;
        this.#settle(equality);
      }
    }
    return this.#known.length === leaves.length;
  }

  /**
   * Reads the ON conditions below `item` for the FROM items whose rows they can exclude: after a LEFT JOIN, only those
   * on its right; after a FULL JOIN, none.
   * @param first position of the first FROM item below `item`
   * @returns the number of FROM items below `item`
   */
  #readOn(item: FromItem, first: number): number {
    if (item.kind !== 'join') return 1;
    const left = this.#readOn(item.left, first);
    const right = this.#readOn(item.right, first + left);
    const end = first + left + right;
    if (item.type !== 'full') this.#readAll(item.on, item.type === 'left' ? first + left : first, end);
    return left + right;
  }

  /** Reads conditions that restrict the FROM items from `first` to just before `end`. */
  #readAll(conditions: readonly Expr[], first: number, end: number): void {
    for (const c of conditions) {
      if (c.kind === 'and') this.#readAll(c.args, first, end);
      else if (c.kind === 'operation' && c.definition.name === '=' && c.left !== null) {
        this.#read(c.left, c.right, first, end);
        this.#read(c.right, c.left, first, end);
      }
    }
  }

  #read(column: Expr, value: Expr, first: number, end: number): void {
    if (column.kind !== 'column') return;
    const item = this.#items.get(column.source);
    if (item === undefined || item.place < first || item.place >= end) return;
    const base = item.columns.get(column.name);
    if (base === undefined || !item.missing.has(base)) return;
    const awaited = new Set(nodesIn([value], 'column').map((c) => c.source));
    const sources = [...awaited].map((id) => this.#items.get(id));
    if (sources.includes(undefined) || sources.includes(item)) return;
    const equality: PendingEquality = { item, column: base, awaited: sources.length };
    for (const source of sources) source?.waiting.push(equality);
    if (sources.length === 0) this.#settle(equality);
  }

  #settle({ item, column, awaited }: PendingEquality): void {
    if (awaited > 0 || !item.missing.delete(column)) return;
    if (item.missing.size === 0) this.#known.push(item);
  }
}

/** Returns the initial state of an item; null if it may yield more than one row in any case. */
function itemOf(leaf: Exclude<FromItem, { kind: 'join' }>, place: number): KeyedItem | null {
  const item = { place, columns: NO_COLUMNS, missing: new Set<string>(), waiting: [] };
  if (leaf.kind === 'derived') return isKeyLookup(leaf.query) ? item : null;
  // The table is checked as part of its own level.
  if (leaf.kind === 'cte') return leaf.recursive === undefined ? item : null;
  if (leaf.kind !== 'governed' || leaf.sample !== undefined || leaf.minimum !== null) return null;
  const { relation, filter, pushed } = leaf;
  const missing = new Set(
    relation.columns.filter((c) => relation.primaryKey.includes(c.name)).map((c) => c.physical),
  );
  if (missing.size === 0) return null;
  for (const column of equatedIn([...pushed, ...(filter === null ? [] : [filter])])) missing.delete(column);
  const columns = leaf.columns.flatMap(({ name, expr }): [string, string][] =>
    expr.kind === 'base' && expr.stored === undefined ? [[name, expr.column]] : [],
  );
  return { ...item, columns: new Map(columns), missing };
}

const NO_COLUMNS: ReadonlyMap<string, string> = new Map();

/** Returns the base columns that conditions over one table equate with values. */
function equatedIn(conditions: readonly Expr[]): readonly string[] {
  return conditions.flatMap((c) => {
    if (c.kind === 'and') return equatedIn(c.args);
    if (c.kind !== 'operation' || c.definition.name !== '=' || c.left?.kind !== 'base') return [];
    return c.right.kind === 'parameter' && c.left.stored === undefined ? [c.left.column] : [];
  });
}
