import { columnRef } from './nodes.js';
import type { ColumnRef, Expr, GroupingCall, Query, Select, SortKey, SourceId } from './plan.js';
import { columnsOf } from './walk.js';

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
