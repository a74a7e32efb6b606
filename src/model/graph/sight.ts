import { type Access, type Catalog, type Relation, type VisibleColumn, visibleColumns } from 'osl-compiler';

/** How a caller sees a column: in the clear, masked in some rows or in all, in aggregates only, or not at all. */
export const SIGHTS = ['clear', 'partly_masked', 'masked', 'aggregates', 'nothing'] as const;
export type Visibility = (typeof SIGHTS)[number];

/** How a caller sees each column of a relation that it sees at all. */
export function sightsOf(
  relation: Relation,
  catalog: Catalog,
  access: Access,
): readonly { readonly name: string; readonly sees: Visibility }[] {
  return visibleColumns(relation, catalog, access).map((column) => ({
    name: column.column.name,
    sees: sightOf(column),
  }));
}

function sightOf({ rows, masked }: VisibleColumn): Visibility {
  if (!rows) return 'aggregates';
  return masked === 'none' ? 'clear' : masked === 'some' ? 'partly_masked' : 'masked';
}

/** How a caller sees one column, or of a whole relation the column that it sees best. */
export function bestSight(
  relation: Relation,
  column: string | null,
  catalog: Catalog,
  access: Access,
): Visibility {
  const seen = sightsOf(relation, catalog, access).filter(({ name }) => column === null || name === column);
  return SIGHTS.find((sight) => seen.some(({ sees }) => sees === sight)) ?? 'nothing';
}

/** True if `a` shows more than `b`. */
export function isMore(a: Visibility, b: Visibility): boolean {
  return SIGHTS.indexOf(a) < SIGHTS.indexOf(b);
}
