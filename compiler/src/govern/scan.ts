import { type Access, accessTo } from '../access.js';
import type { EntityScan, GovernedScan } from '../plan.js';
import { columnRule, keyColumn, maskedColumn, rowFilter } from './mask.js';
import type { GovernedSlots } from './slots.js';

/**
 * The scan as this caller may see it: row filter, then masked projection.
 *
 * @param keys columns that joins compare, which need a variant that is NULL instead of masked
 */
export function governScan(
  scan: EntityScan,
  access: Access,
  keys: ReadonlySet<string> | undefined,
  fence: boolean,
  slots: GovernedSlots,
): GovernedScan {
  const allowed = accessTo(scan.relation, access);
  const rules = scan.columns.map((name) => columnRule(scan.relation, name, allowed));
  const filter = rowFilter(allowed, slots);
  const shown = rules.map((r) => maskedColumn(r, slots));
  const joined = rules.filter((r) => keys?.has(r.column.name) === true).map((r) => keyColumn(r, slots));
  return Object.freeze({
    kind: 'governed',
    id: scan.id,
    relation: scan.relation,
    columns: Object.freeze([...shown, ...joined]),
    filter,
    pushed: Object.freeze([]),
    fenced: fence && filter !== null,
  });
}
