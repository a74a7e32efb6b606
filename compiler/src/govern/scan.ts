import type { BoundPlan } from '../bind/index.js';
import { queryError } from '../errors/errors.js';
import type { EntityScan, GovernedScan, Query } from '../plan/plan.js';
import { allLeaves } from '../plan/walk.js';
import { columnRule, keyColumn, maskedColumn, rowFilter } from './mask.js';
import { groupColumns, groupMinimum, hasKey, type ScanAccess } from './scan-access.js';
import type { GovernedSlots } from './slots.js';

/**
 * Returns the scan as this caller may see it: row filter, then masked projection.
 *
 * @param keys the columns that joins compare, which need a variant that is NULL instead of masked
 */
export function governScan(
  scan: EntityScan,
  { access, minimum }: ScanAccess,
  keys: ReadonlySet<string> | undefined,
  slots: GovernedSlots,
): GovernedScan {
  const rules = scan.columns.map((name) => columnRule(scan.relation, name, access));
  const filter = rowFilter(access, slots);
  const shown = rules.map((r) => maskedColumn(r, slots));
  const joined = rules.filter((r) => keys?.has(r.column.name) === true).map((r) => keyColumn(r, slots));
  const counted = minimum === null ? [] : groupColumns(scan.relation, minimum, slots);
  return Object.freeze({
    kind: 'governed',
    id: scan.id,
    relation: scan.relation,
    columns: Object.freeze([...shown, ...joined, ...counted]),
    filter,
    pushed: Object.freeze(minimum === null ? [] : hasKey(scan.relation, minimum)),
    fenced: false,
    minimum: minimum === null ? null : groupMinimum(minimum, access.grants),
    ...(scan.sample === undefined ? {} : { sample: scan.sample }),
  });
}

/**
 * Refuses to sample relations that hide rows or values from the caller: Postgres samples before it filters, so the
 * sample would reveal hidden rows.
 *
 * @throws QueryError E0511
 */
export function refuseSamples(root: Query, plan: BoundPlan): void {
  for (const leaf of allLeaves(root)) {
    if (leaf.kind !== 'governed' || leaf.sample === undefined) continue;
    const clear = leaf.columns.every((c) => c.masked === 'none');
    if (leaf.relation.kind === 'entity' && leaf.filter === null && leaf.minimum === null && clear) continue;
    const name = plan.form === 'sql' ? leaf.relation.table : leaf.relation.name;
    const construct = `TABLESAMPLE of \`${name}\`, of which not every row and value is shown,`;
    const hint = 'it would sample hidden rows too: filter by random() < 0.1';
    throw queryError('unsupported', { construct, hint }, plan.positionOfSource(leaf.id));
  }
}
