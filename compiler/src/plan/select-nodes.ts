import { fingerprint } from './fingerprint.js';
import { columnRef } from './nodes.js';
import type { ColumnRef, Expr, GroupingCall, PlanOutput, Query, Select, SortKey, SourceId } from './plan.js';
import { childrenOf, columnsOf } from './walk.js';

const NONE = Object.freeze([]);

/** Creates a SELECT with `parts`, and defaults for everything else. */
export function selectOf(parts: Partial<Omit<Select, 'kind'>> & Pick<Select, 'outputs'>): Select {
  return Object.freeze({
    kind: 'select',
    with: NONE,
    from: null,
    where: NONE,
    grouped: false,
    groupBy: NONE,
    groupingSets: null,
    having: NONE,
    distinct: false,
    distinctOn: NONE,
    orderBy: NONE,
    limit: null,
    offset: null,
    withTies: false,
    ...parts,
  } satisfies Select);
}

/** Returns a reference to each column of `query` as FROM item `source`. */
export function columnRefs(source: SourceId, query: Query): readonly ColumnRef[] {
  return columnsOf(query).map(({ type }, i) => columnRef(source, `c${i + 1}`, type));
}

export function ascending(by: SortKey['by']): SortKey {
  return Object.freeze({ by, descending: false, nullsFirst: false });
}

/** Maximum number of keys in one `grouping(…)`: Postgres returns an integer with one bit for each. */
export const MOST_GROUPED = 31;

/** Returns the fewest `grouping(…)` calls that show which of `keys` a row's grouping set leaves out. */
export function groupingOf(keys: readonly Expr[]): readonly GroupingCall[] {
  const calls: GroupingCall[] = [];
  for (let from = 0; from < keys.length; from += MOST_GROUPED) {
    const args = Object.freeze(keys.slice(from, from + MOST_GROUPED));
    calls.push(Object.freeze({ kind: 'grouping', args, type: 'int4' }));
  }
  return calls;
}

/** Positions of expressions in a select list, from 1. Equal outputs share the position of the first. */
export class Positions {
  readonly #byText = new Map<string, number>();
  /** Positions by node, since most ORDER BY and GROUP BY keys are the output node itself. */
  readonly #byOutput = new Map<Expr, number>();

  constructor(outputs: readonly PlanOutput[]) {
    let position = 0;
    for (const { expr } of outputs) {
      position++;
      const text = fingerprint(expr);
      const first = this.#byText.get(text) ?? position;
      this.#byText.set(text, first);
      this.#byOutput.set(expr, first);
    }
  }

  of(expr: Expr): number | null {
    return this.#byOutput.get(expr) ?? this.#byText.get(fingerprint(expr)) ?? null;
  }
}

/** Returns a test for expressions that equal one of `groupBy`. */
export function keyFinder(groupBy: readonly Expr[]): (expr: Expr) => boolean {
  const keys = new Set(groupBy.map(fingerprint));
  // Only an expression with as many nodes as a key can equal it, so only those are fingerprinted.
  const sizes = new Map<Expr, number>();
  const keySizes = new Set(groupBy.map((key) => sizeOf(key, sizes)));
  return (expr) => keySizes.has(sizeOf(expr, sizes)) && keys.has(fingerprint(expr));
}

/** Returns the number of nodes in `expr`, without those of queries in it. */
function sizeOf(expr: Expr, sizes: Map<Expr, number>): number {
  const children = childrenOf(expr);
  if (children.length === 0) return 1;
  const before = sizes.get(expr);
  if (before !== undefined) return before;
  let size = 1;
  for (const child of children) size += sizeOf(child, sizes);
  sizes.set(expr, size);
  return size;
}
