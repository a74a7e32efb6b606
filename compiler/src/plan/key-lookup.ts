import { assertNever } from '../errors/errors.js';
import type { Expr, FromItem, Query, Select, SourceId } from './plan.js';
import { leavesOf, nestingIn, nodesIn } from './walk.js';

/**
 * True if each table of the statement is read by its whole primary key, equated with values or with columns of rows
 * that are read in the same way. At most one row of each is then read, so no other plan can be better for any value.
 * Takes time linear in the size of the statement.
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

/** A table that is read, and its key columns that are still unknown. */
interface KeyedItem {
  /** Its index among the FROM items of the level. */
  readonly place: number;
  /** The physical names of the columns that are shown unchanged, by name. */
  readonly columns: ReadonlyMap<string, string>;
  /** The physical names of key columns that are not yet equated with anything known. */
  readonly missing: Set<string>;
  /** Equalities that can be used once its row is known. */
  readonly waiting: PendingEquality[];
}

/** `column` of `item` equals an expression over rows, `awaited` of which are still unknown. */
interface PendingEquality {
  readonly item: KeyedItem;
  readonly column: string;
  awaited: number;
}

/** One SELECT, whose FROM items become known one by one. */
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
   * Reads the conditions of joins, each for the items whose rows it may filter.
   * @returns the number of items
   */
  #readOn(item: FromItem, first: number): number {
    if (item.kind !== 'join') return 1;
    const left = this.#readOn(item.left, first);
    const right = this.#readOn(item.right, first + left);
    const end = first + left + right;
    if (item.type !== 'full') this.#readAll(item.on, item.type === 'left' ? first + left : first, end);
    return left + right;
  }

  /** @param first the conditions restrict the items from `first` to just before `end` */
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

/** Returns null if the item may yield more than one row, whatever it is equated with. */
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
