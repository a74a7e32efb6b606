import { isKeyEquality } from '../plan/key-equality.js';
import type { Expr, FromItem, GovernedScan, Query, RuntimeScan, SourceId } from '../plan/plan.js';
import { isPartOfKey } from '../plan/runtime.js';
import { leavesOf, mapQuery } from '../plan/walk.js';
import { isArray } from '../types/types.js';
import type { GovernedSlots } from './slots.js';

/**
 * Where rows that were worked out before are joined with an entity, the entity's scan is given their keys: it reads
 * those rows and no others, whatever plan Postgres makes of the join. Source: contract, cross-modal join execution
 * order (3). The keys are in the clear by then, on both sides.
 */
export function sendKeys(root: Query, slots: GovernedSlots): Query {
  return mapQuery(root, {
    query: (q) => {
      if (q.kind !== 'select' || q.from?.kind !== 'join') return q;
      const rows = new Map(
        leavesOf(q.from).flatMap((l) => (l.kind === 'runtime' ? [[l.id, l] as const] : [])),
      );
      return rows.size === 0 ? q : Object.freeze({ ...q, from: sent(q.from, rows, slots) });
    },
  });
}

/** A key of a scan, and the column of the rows that it must be in. */
interface KeyRestriction {
  readonly scan: SourceId;
  readonly key: string;
  readonly among: (key: Expr) => Expr;
}

function sent(item: FromItem, rows: ReadonlyMap<SourceId, RuntimeScan>, slots: GovernedSlots): FromItem {
  if (item.kind !== 'join') return item;
  const wanted = item.on.flatMap((c) => wantedBy(c, rows, slots));
  const [left, right] = [sent(item.left, rows, slots), sent(item.right, rows, slots)];
  if (wanted.length === 0) return Object.freeze({ ...item, left, right });
  // The rows of a side that is kept whole are all asked for.
  return Object.freeze({
    ...item,
    left: item.type === 'inner' ? restricted(left, wanted) : left,
    right: item.type === 'full' ? right : restricted(right, wanted),
  });
}

function wantedBy(
  condition: Expr,
  rows: ReadonlyMap<SourceId, RuntimeScan>,
  slots: GovernedSlots,
): readonly KeyRestriction[] {
  if (!isKeyEquality(condition)) return [];
  const { definition, left, right } = condition;
  const [given, key] = rows.has(left.source) ? [left, right] : [right, left];
  const found = rows.get(given.source);
  const { type } = given;
  // An index over several columns is not entered by a list for each, which would be all pairs: the join enters it.
  if (isPartOfKey(given.name)) return [];
  if (found === undefined || rows.has(key.source) || type !== key.type || isArray(type)) return [];
  const array = slots.keys(found.slot, given.name, type);
  const among = (arg: Expr): Expr =>
    Object.freeze({ kind: 'quantified', definition, quantifier: 'any', arg, array, type: 'bool' });
  return [{ scan: key.source, key: key.name, among }];
}

/** `item` with the keys beside the row filters of its scans. */
function restricted(item: FromItem, wanted: readonly KeyRestriction[]): FromItem {
  if (item.kind === 'governed') return withKeys(item, wanted);
  if (item.kind !== 'join' || item.type === 'full') return item;
  const right = item.type === 'inner' ? restricted(item.right, wanted) : item.right;
  return Object.freeze({ ...item, left: restricted(item.left, wanted), right });
}

function withKeys(scan: GovernedScan, wanted: readonly KeyRestriction[]): GovernedScan {
  if (scan.minimum !== null) return scan;
  const conditions = wanted.flatMap((w) => {
    const key = w.scan === scan.id ? scan.columns.find((c) => c.name === w.key) : undefined;
    return key?.expr.kind === 'base' ? [w.among(key.expr)] : [];
  });
  if (conditions.length === 0) return scan;
  return Object.freeze({ ...scan, pushed: Object.freeze([...scan.pushed, ...conditions]) });
}
