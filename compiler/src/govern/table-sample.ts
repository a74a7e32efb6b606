import type { BoundPlan } from '../bind/index.js';
import { queryError } from '../errors/errors.js';
import type { Query } from '../plan/plan.js';
import { allQueries, leavesOf } from '../plan/walk.js';

/**
 * Refuses to sample what hides rows or values from the caller: Postgres takes the sample before it filters, so that
 * what is left of it tells of the rows that are hidden.
 *
 * @throws QueryError E0511
 */
export function refuseSamples(root: Query, plan: BoundPlan): void {
  for (const query of allQueries(root)) {
    if (query.kind !== 'select') continue;
    for (const leaf of leavesOf(query.from)) {
      if (leaf.kind !== 'governed' || leaf.sample === undefined) continue;
      const clear = leaf.columns.every((c) => c.masked === 'none');
      if (leaf.relation.kind === 'entity' && leaf.filter === null && leaf.minimum === null && clear) continue;
      const name = plan.form === 'sql' ? leaf.relation.table : leaf.relation.name;
      const construct = `TABLESAMPLE of \`${name}\`, of which not every row and value is shown,`;
      const hint = 'it would sample hidden rows too: filter by random() < 0.1';
      throw queryError('unsupported', { construct, hint }, plan.positionOfSource(leaf.id));
    }
  }
}
