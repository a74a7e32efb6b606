import type { Joins } from '../catalog/catalog.js';
import { assertNever } from '../errors/errors.js';
import { type IsKeyOf, isKeyEquality, SealedKeys } from './keys.js';
import type { ColumnRef, Expr, FromItem, FromLeaf, InQuery, Join, Query, Select, SourceId } from './plan.js';
import {
  allLeaves,
  allQueries,
  childrenOf,
  exprsOf,
  leavesOf,
  nestingIn,
  nodesIn,
  queriesIn,
  queryOf,
  someExpr,
} from './walk.js';

/**
 * Checks the join rule: two relations may only be combined by equalities of sealed keys, one from each side.
 *
 * - A join has at least one such equality in ON, USING or, for commas, WHERE, and no other condition. A LATERAL query
 *   may have its equality in its own WHERE.
 * - A nested query may reference outer columns only in such equalities in its WHERE, one level up.
 * - IN compares sealed keys, and EXISTS has such an equality. ANY, ALL and set-returning functions must not take rows
 *   of a query.
 *
 * A FROM item is a relation if it does not depend on other items: an entity, a bridge, passages, a traversal, a derived
 * or common table, VALUES, a function of constants. A function of columns and a LATERAL query without FROM depend on
 * another item's rows. If one side reads no governed data, queries inside expressions do not count as joins; if neither
 * side does, joins in FROM do not count either. WHERE over joined rows only filters them.
 *
 * With `declared` the rule holds everywhere; with `any`, only if a side has passages, a traversal or evidence.
 *
 * Source: contract, join rule; decision 112.
 *
 * @param isKeyOf sealed columns of a scan; default: those that the manifest declares
 * @param conditionIn removes the parts that policy added around a condition; default: returns the condition itself
 * @returns the first join that breaks the rule; null if none does
 */
export function findUnsealedJoin(
  root: Query,
  joins: Joins,
  isKeyOf?: IsKeyOf,
  conditionIn?: (condition: Expr) => Expr,
): UnsealedJoin | null {
  if (readsOneItem(root)) return null;
  const check = new JoinCheck(new SealedKeys(root, isKeyOf), joins, conditionIn);
  check.query(root, null);
  return check.found;
}

/** A join that breaks the rule. */
export interface UnsealedJoin {
  readonly kind: 'condition' | 'no condition' | 'in' | 'exists' | 'quantified' | 'outward' | 'rows';
  /** The condition or the FROM item that breaks the rule. */
  readonly at: Expr | SourceId;
  /** The FROM items that are combined; a valid join would use their sealed keys. */
  readonly sides: readonly SourceId[];
  /** True if no manifest allows the join: it is NATURAL, or has to do with passages, traversals or evidence. */
  readonly always: boolean;
}

function readsOneItem(root: Query): boolean {
  if (root.kind !== 'select' || root.with.length > 0 || nestingIn(root).length > 0) return false;
  return root.from === null || (root.from.kind !== 'join' && root.from.kind !== 'derived');
}

interface QueryLevel {
  readonly items: readonly SourceId[];
  readonly around: { readonly governed: number; readonly contents: number };
  /** The number of levels, from the outermost to this one, whose FROM is known to read data under policy. */
  governed: number;
  /** Like `governed`, for passages, traversals and evidence. */
  contents: number;
}

interface QueryReads {
  /** True if the query reads entities, bridges, passages, traversals or evidence, at any depth. */
  readonly governed: boolean;
  /** True if the query reads passages, traversals or evidence, at any depth. */
  readonly content: boolean;
  /** The outer FROM items whose columns the query equates with its sealed keys. */
  readonly links: readonly SourceId[];
}

/** Part of a FROM clause: the items at positions `start` to just before `end`. */
interface JoinPart {
  readonly start: number;
  readonly end: number;
  readonly governed: boolean;
  readonly content: boolean;
  /** For rows computed from rows of other items, the lowest position of these items; null for a relation. */
  readonly madeOf: number | null;
  /** The positions that the part's LATERAL queries are linked to by sealed keys. */
  readonly linked: readonly number[];
}

class JoinCheck {
  found: UnsealedJoin | null = null;
  readonly #keys: SealedKeys;
  readonly #joins: Joins;
  readonly #conditionIn: (condition: Expr) => Expr;
  readonly #levels = new Map<SourceId, QueryLevel>();
  readonly #positions = new Map<SourceId, number>();
  readonly #contents = new Set<SourceId>();
  readonly #tables = new Map<number, QueryReads>();
  readonly #recursive = new Map<Query, number>();
  /** Counts of the governed FROM items so far, and of the passages, traversals and evidence among them. */
  readonly #read = { governed: 0, content: 0 };

  constructor(keys: SealedKeys, joins: Joins, conditionIn: (condition: Expr) => Expr = (e) => e) {
    this.#keys = keys;
    this.#joins = joins;
    this.#conditionIn = conditionIn;
  }

  /** @param around the enclosing level, whose columns the query may reference */
  query(query: Query, around: QueryLevel | null): QueryReads {
    const before = { ...this.#read };
    if (query.kind !== 'values')
      for (const table of query.with) {
        if (table.recursive === true) this.#recursive.set(table.query, table.id);
        this.#tables.set(table.id, this.query(table.query, table.recursive === true ? null : around));
        this.#keys.table(table.id); // in order, so that no table has to resolve a long chain of other tables
      }
    const links = this.#body(query, around);
    const { governed, content } = this.#read;
    return { links, governed: governed > before.governed, content: content > before.content };
  }

  #body(query: Query, around: QueryLevel | null): QueryReads['links'] {
    if (query.kind === 'select') return this.#select(query, around);
    const level = levelOf([], around);
    for (const e of exprsOf(query)) this.#value(e, level);
    if (query.kind === 'values') return [];
    const left = this.query(query.left, around);
    const table = this.#recursive.get(query);
    if (table !== undefined) this.#tables.set(table, left); // the rows that the step reads
    const right = this.query(query.right, around);
    return left.links.length > 0 && right.links.length > 0 ? [...left.links, ...right.links] : [];
  }

  #select(query: Select, around: QueryLevel | null): QueryReads['links'] {
    const leaves = leavesOf(query.from);
    for (const [i, { id }] of leaves.entries()) this.#positions.set(id, i);
    const ids = leaves.map((l) => l.id);
    const made = leaves.map((l) => this.#namedByMade(l, ids));
    const level = levelOf(ids, around);
    for (const id of ids) this.#levels.set(id, level);
    const links: SourceId[] = [];
    const withContent = scansWithContent(query.from);
    const sides = leaves.map((leaf, i): JoinPart => {
      const lateral = leaf.kind === 'derived' && leaf.lateral === true;
      const reads = this.#leaf(leaf, lateral && i > 0 ? level : around);
      if (reads.governed) level.governed = level.around.governed + 1;
      this.#read.governed += reads.governed ? 1 : 0;
      this.#read.content += reads.content ? 1 : 0;
      const content = reads.content || withContent.has(leaf.id);
      if (content && !(leaf.kind === 'runtime' && leaf.own === true)) {
        this.#contents.add(leaf.id);
        level.contents = level.around.contents + 1;
      }
      const beside = reads.links.filter((id) => this.#levels.get(id) === level);
      links.push(...reads.links.filter((id) => this.#levels.get(id) !== level));
      const linked = beside.map((id) => this.#positions.get(id) ?? 0);
      const { governed } = reads;
      return { start: i, end: i + 1, governed, content, madeOf: made[i] ?? null, linked };
    });
    if (query.from !== null) this.#side(query.from, sides, { next: 0 }, level);
    const linking = new Set(query.where.filter((e) => this.#isLink(e, level)));
    for (const e of linking) links.push(...outerOf(this.#conditionIn(e), this.#levels, level));
    for (const e of exprsOf(query)) if (!linking.has(e)) this.#value(e, level);
    return links;
  }

  #leaf(leaf: FromLeaf, around: QueryLevel | null): QueryReads {
    switch (leaf.kind) {
      case 'derived':
        return this.query(leaf.query, around);
      case 'spine':
        return this.query(leaf.bounds, null);
      case 'cte':
      case 'recursion':
        return this.#tables.get(leaf.table) ?? NOTHING;
      case 'entity':
      case 'governed':
        return ENTITY;
      case 'runtime':
        return CONTENT;
      case 'rows':
        return queriesIn(leaf.args).some(isGoverned) ? ENTITY : NOTHING;
      default:
        return assertNever(leaf);
    }
  }

  /**
   * Returns the lowest position of an item in `ids` that `leaf` is computed from. Infinity if `leaf` is computed from
   * outer rows only, null if it is a relation.
   */
  #namedByMade(leaf: FromLeaf, ids: readonly SourceId[]): number | null {
    const values = valuesOfMade(leaf);
    if (values === null) return null;
    const own = new Set(ids);
    let first: number | null = null;
    for (const { source } of nodesIn(values, 'column')) {
      const position = own.has(source) ? this.#positions.get(source) : undefined;
      if (position !== undefined) first = Math.min(first ?? Infinity, position);
      else if (this.#levels.has(source)) first ??= Infinity;
    }
    return first;
  }

  // -------------------------------------------------------------- joins in FROM

  #side(item: FromItem, leaves: readonly JoinPart[], at: { next: number }, level: QueryLevel): JoinPart {
    if (item.kind !== 'join') return leaves[at.next++] ?? NO_SIDE;
    const left = this.#side(item.left, leaves, at, level);
    const right = this.#side(item.right, leaves, at, level);
    if (item.made !== true) this.#join(item, left, right, level);
    return {
      start: left.start,
      end: right.end,
      governed: left.governed || right.governed,
      content: left.content || right.content,
      madeOf: left.madeOf === null || right.madeOf === null ? null : Math.min(left.madeOf, right.madeOf),
      linked: [...left.linked, ...right.linked].filter((p) => p < left.start || p >= right.end),
    };
  }

  #join({ on, strict }: Join, left: JoinPart, right: JoinPart, level: QueryLevel): void {
    const always = left.content || right.content || strict === true;
    if (this.#joins === 'any' && !always) return;
    if (!left.governed && !right.governed) return;
    if ([left, right].some(({ madeOf }) => madeOf !== null && madeOf >= left.start)) return;
    const conditions = on.map(this.#conditionIn).filter((e) => e.kind !== 'boolean' || !e.value);
    const sides = level.items.slice(left.start, right.end);
    const wrong = conditions.find((e) => !this.#crosses(e, left, right));
    if (wrong !== undefined) this.#report({ kind: 'condition', at: wrong, sides, always });
    const isLinked =
      conditions.length > 0 ||
      left.linked.some((p) => p >= right.start && p < right.end) ||
      right.linked.some((p) => p >= left.start && p < left.end);
    const at = level.items[right.start] ?? 0;
    if (!isLinked) this.#report({ kind: 'no condition', at, sides, always });
  }

  /** True if `e` equates a sealed key of each side. */
  #crosses(e: Expr, left: JoinPart, right: JoinPart): boolean {
    if (!isKeyEquality(e) || !this.#keys.has(e.left) || !this.#keys.has(e.right)) return false;
    const stands = [e.left, e.right].map((ref) => {
      const position = this.#positions.get(ref.source) ?? -1;
      if (position >= left.start && position < left.end) return 'left';
      return position >= right.start && position < right.end ? 'right' : 'outside';
    });
    return stands.includes('left') && stands.includes('right');
  }

  // -------------------------------------------------------------- queries inside values

  /** True if a conjunct of WHERE equates a sealed key of this level with one of the enclosing level. */
  #isLink(conjunct: Expr, level: QueryLevel): boolean {
    const e = this.#conditionIn(conjunct);
    if (!isKeyEquality(e) || !this.#keys.has(e.left) || !this.#keys.has(e.right)) return false;
    const [outer, ...more] = outerOf(e, this.#levels, level);
    if (outer === undefined || more.length > 0) return false;
    return this.#levels.get(outer)?.governed === level.around.governed;
  }

  #value(value: Expr, level: QueryLevel): void {
    const e = this.#conditionIn(value);
    if (e.kind === 'column') this.#outward(e, level);
    const inner = queryOf(e);
    const reads = inner === null ? NOTHING : this.query(inner, level);
    if (e.kind === 'exists' && this.#mustBeSealed(reads, level)) {
      const isLinked = reads.links.some((id) => this.#levels.get(id)?.governed === level.governed);
      if (!isLinked) this.#reportAt('exists', e, level, reads.content);
    }
    if (e.kind === 'in_query') this.#in(e, reads, level);
    for (const child of childrenOf(e)) this.#value(child, level);
    if (e.kind === 'quantified') this.#spread('quantified', e, [e.array], level);
    if (e.kind === 'call' && e.definition.kind === 'rows') this.#spread('rows', e, e.args, level);
  }

  #in(e: InQuery, reads: QueryReads, level: QueryLevel): void {
    const { arg, query } = e;
    const ofContent = someExpr(arg, (x) => x.kind === 'column' && this.#contents.has(x.source));
    const content = reads.content || ofContent;
    if (!this.#mustBeSealed({ ...reads, content }, level)) return;
    const isKey =
      arg.kind === 'column' &&
      this.#levels.get(arg.source)?.governed === level.governed &&
      this.#keys.has(arg);
    if (!isKey || !this.#keys.output(query, 0)) this.#reportAt('in', e, level, content);
  }

  /** Reports ANY, ALL or a set-returning function over the rows of a governed query. */
  #spread(kind: 'quantified' | 'rows', at: Expr, values: readonly Expr[], level: QueryLevel): void {
    if (level.governed === 0) return;
    for (const query of queriesIn(values).filter(isGoverned)) {
      const content = allLeaves(query).some((l) => this.#contents.has(l.id));
      if (this.#joins === 'declared' || content) this.#reportAt(kind, at, level, content);
    }
  }

  #mustBeSealed(reads: QueryReads, level: QueryLevel): boolean {
    return reads.governed && level.governed > 0 && (this.#joins === 'declared' || reads.content);
  }

  #outward(ref: ColumnRef, level: QueryLevel): void {
    const owner = this.#levels.get(ref.source);
    if (owner === undefined || owner === level || owner.governed === level.governed) return;
    const content = this.#contents.has(ref.source) || owner.contents < level.contents;
    if (this.#joins === 'any' && !content) return;
    this.#report({ kind: 'outward', at: ref, sides: [...owner.items, ...level.items], always: content });
  }

  #reportAt(kind: UnsealedJoin['kind'], at: Expr, level: QueryLevel, content: boolean): void {
    const always = content || level.items.some((id) => this.#contents.has(id));
    this.#report({ kind, at, sides: level.items, always });
  }

  #report(found: UnsealedJoin): void {
    this.found ??= found;
  }
}

const NOTHING: QueryReads = Object.freeze({ governed: false, content: false, links: Object.freeze([]) });
const ENTITY: QueryReads = Object.freeze({ ...NOTHING, governed: true });
const CONTENT: QueryReads = Object.freeze({ ...ENTITY, content: true });
const NO_SIDE: JoinPart = Object.freeze({
  start: 0,
  end: 0,
  governed: false,
  content: false,
  madeOf: null,
  linked: Object.freeze([]),
});

function levelOf(items: readonly SourceId[], around: QueryLevel | null): QueryLevel {
  const { governed = 0, contents = 0 } = around ?? {};
  return { items, around: { governed, contents }, governed, contents };
}

/** True if a query reads governed data, or a common table, which may contain governed data. */
function isGoverned(query: Query): boolean {
  return allLeaves(query).some((l) => l.kind !== 'rows' && l.kind !== 'derived' && l.kind !== 'spine');
}

/** Returns the scans that the compiler joined to a traversal or passages, with which they count as one side. */
function scansWithContent(from: FromItem | null, found: Set<SourceId> = new Set()): ReadonlySet<SourceId> {
  if (from?.kind !== 'join') return found;
  if (from.made === true && from.right.kind === 'runtime')
    for (const { source } of nodesIn(from.on, 'column')) found.add(source);
  scansWithContent(from.right, found);
  return scansWithContent(from.left, found);
}

/** Returns the sides of a key equality that are columns of other levels. */
function outerOf(e: Expr, levels: ReadonlyMap<SourceId, QueryLevel>, level: QueryLevel): readonly SourceId[] {
  if (!isKeyEquality(e)) return [];
  return [e.left.source, e.right.source].filter((id) => levels.get(id) !== level);
}

/** Returns the expressions that an item is computed from and that may read other items; null for a relation. */
function valuesOfMade(leaf: FromLeaf): readonly Expr[] | null {
  if (leaf.kind === 'rows') return queriesIn(leaf.args).length > 0 ? null : leaf.args;
  if (leaf.kind !== 'derived' || leaf.lateral !== true || hasFrom(leaf.query)) return null;
  return allQueries(leaf.query).flatMap(exprsOf);
}

function hasFrom(query: Query): boolean {
  if (query.kind === 'values') return false;
  if (query.with.length > 0) return true;
  return query.kind === 'select' ? query.from !== null : hasFrom(query.left) || hasFrom(query.right);
}
