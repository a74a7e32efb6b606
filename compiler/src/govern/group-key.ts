import { type Column, columnOf, type Relation } from '../catalog/catalog.js';
import { InternalError } from '../errors/errors.js';
import { allOf, baseColumn, caseNode, inType, isNotNull, nullOf } from '../plan/nodes.js';
import {
  type CountedGrant,
  type Expr,
  type FromItem,
  type GovernedColumn,
  type GovernedScan,
  GROUP_KEY,
  type GroupMinimum,
  groupValue,
  type Select,
} from '../plan/plan.js';
import { leavesOf } from '../plan/walk.js';
import { anyRow } from './folded-filters.js';
import type { Minimum } from './scan-access.js';
import type { GovernedSlots } from './slots.js';

/** Returns the columns by which rows that may only be aggregated are counted; see `GROUP_KEY`. */
export function groupColumns(
  relation: Relation,
  minimum: Minimum,
  slots: GovernedSlots,
): readonly GovernedColumn[] {
  const ofCounted = (name: string, value: Expr): GovernedColumn =>
    Object.freeze({ name, type: value.type, expr: unlessShown(value, minimum, slots), masked: 'none' });
  return [
    ofCounted(GROUP_KEY, keyOf(relation, minimum)),
    ...[...minimum.distinct.keys()].map((column, i) =>
      ofCounted(groupValue(i), baseColumn(neededColumn(relation, column))),
    ),
  ];
}

/** Returns `value` if the row may only be aggregated; NULL if other grants show the row. */
function unlessShown(value: Expr, { plain }: Minimum, slots: GovernedSlots): Expr {
  if (plain === null) return value;
  const when = allOf(plain.map((filters) => slots.ground(anyRow(filters))));
  return caseNode(when, nullOf(value.type), value);
}

/** @param grants all grants that apply to the scan */
export function groupMinimum(
  { size, distinct, dominance, plain }: Minimum,
  grants: readonly CountedGrant[],
): GroupMinimum {
  return Object.freeze({
    grants: Object.freeze(grants.map(({ id, filter, columns }) => Object.freeze({ id, filter, columns }))),
    size,
    distinct: Object.freeze([...distinct.values()]),
    dominance,
    everyRow: plain === null,
  });
}

/**
 * Excludes rows without a key: they belong to no entity, and would be counted as shown. A key of several columns is an
 * array, which is never NULL.
 */
export function hasKey(relation: Relation, minimum: Pick<Minimum, 'unit'>): readonly Expr[] {
  const key = keyOf(relation, minimum);
  if (key.kind !== 'base') return [];
  return [isNotNull(key)];
}

function keyOf(relation: Relation, { unit }: Pick<Minimum, 'unit'>): Expr {
  if (unit !== null) return baseColumn(neededColumn(relation, unit));
  const columns = relation.columns.filter((c) => relation.primaryKey.includes(c.name));
  const [only] = columns;
  if (only === undefined) throw new InternalError(`${relation.name} has no primary key to count by`);
  if (columns.length === 1) return baseColumn(only);
  const texts = columns.map((c) => inType(baseColumn(c), 'text'));
  return Object.freeze({ kind: 'array', items: Object.freeze(texts), type: 'text[]' });
}

function neededColumn(relation: Relation, name: string): Column {
  const column = columnOf(relation, name);
  if (column === null) throw new InternalError(`${relation.name} has no column ${name} to count by`);
  return column;
}

export type CountedScan = GovernedScan & { readonly minimum: GroupMinimum };

/** Returns the scans of a block that contain rows which may only be aggregated. */
export function countedScans(block: Select): readonly CountedScan[] {
  return leavesOf(block.from).filter(isCounted);
}

function isCounted(leaf: FromItem): leaf is CountedScan {
  return leaf.kind === 'governed' && leaf.minimum !== null;
}
