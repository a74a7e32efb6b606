import type { Query, SourceId } from './plan.js';
import { exprsOf, leavesOf, nestingIn, nodesIn, partsOf } from './walk.js';

/** Cached by query, which is immutable. The cached ids hold no reference back to the query. */
const OUTWARD = new WeakMap<Query, ReadonlySet<SourceId>>();

/** Returns the outer FROM items whose columns `query` reads, at any depth. */
export function readsAround(query: Query): ReadonlySet<SourceId> {
  const known = OUTWARD.get(query);
  if (known !== undefined) return known;
  const sources = new Set<SourceId>();
  const add = (inner: Query): void => {
    for (const source of readsAround(inner)) sources.add(source);
  };
  for (const { source } of nodesIn(exprsOf(query), 'column')) sources.add(source);
  for (const { query: inner } of nestingIn(query)) add(inner);
  for (const part of partsOf(query)) add(part);
  if (query.kind === 'select') for (const { id } of leavesOf(query.from)) sources.delete(id);
  OUTWARD.set(query, sources);
  return sources;
}

/** Numbers the queries of a statement in the order of `allQueries`, so that those inside one query form a range. */
export class Levels {
  readonly #spans = new Map<Query, { readonly first: number; readonly next: number }>();
  /** The number of the query whose FROM contains an item. */
  readonly #homes = new Map<SourceId, number>();
  #queries = 0;

  constructor(root: Query) {
    this.#add(root);
  }

  #add(query: Query): void {
    const first = this.#queries++;
    if (query.kind === 'select') for (const { id } of leavesOf(query.from)) this.#homes.set(id, first);
    for (const part of partsOf(query)) this.#add(part);
    for (const nesting of nestingIn(query)) this.#add(nesting.query);
    this.#spans.set(query, { first, next: this.#queries });
  }

  /** True if FROM item `source` is in `query`, at any depth. */
  holds(query: Query, source: SourceId): boolean {
    const [span, home] = [this.#spans.get(query), this.#homes.get(source)];
    return span !== undefined && home !== undefined && home >= span.first && home < span.next;
  }

  /** True if FROM item `source` is in the FROM of `query` itself. */
  isOwn(query: Query, source: SourceId): boolean {
    return this.#homes.get(source) === this.#spans.get(query)?.first;
  }
}
