import type { EntityScan, GovernedScan } from '../plan/plan.js';
import { columnRule, keyColumn, maskedColumn, rowFilter } from './mask.js';
import { groupColumns, groupMinimum, hasKey } from './minimum.js';
import type { ScanAccess } from './scan-access.js';
import type { GovernedSlots } from './slots.js';

/**
 * The scan as this caller may see it: row filter, then masked projection.
 *
 * @param keys columns that joins compare, which need a variant that is NULL instead of masked
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
    minimum: minimum === null ? null : groupMinimum(minimum),
    ...(scan.sample === undefined ? {} : { sample: scan.sample }),
  });
}
