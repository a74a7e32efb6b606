import type { Query } from '../plan/plan.js';
import { mapQuery } from '../plan/walk.js';
import type { GovernedSlots } from './slots.js';

/**
 * A fence around every level of several grouping sets: no condition from outside runs before the groups are made. One
 * on a key could not ask whether the rows below are shown, for the set without keys has a row where there is none.
 */
export function fenceGroupingSets(root: Query, slots: GovernedSlots): Query {
  return mapQuery(root, {
    query: (q) =>
      q.kind === 'select' && q.groupingSets !== null && q.offset === null
        ? Object.freeze({ ...q, offset: slots.literal('0', 'int8') })
        : q,
  });
}
