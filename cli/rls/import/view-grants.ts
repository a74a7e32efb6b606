import type { MaskKind } from 'osl-compiler';
import type { GrantDocument } from '../../../policy/document.js';

/** A filter of rows; null accepts all rows. */
type RowFilter = string | null;

/** A masked column of a view, and for which rows a role sees its values. */
export interface MaskedLabel {
  readonly name: string;
  readonly label: string;
  readonly mask: MaskKind;
  /** Alternatives; empty: for none. */
  readonly clear: readonly RowFilter[];
}

/**
 * The grants of a role on the entity of a view: one for each alternative of its rows, and for each alternative under which
 * the view shows a masked column the same rows again with that column unmasked.
 *
 * @param plain labels of columns that the view shows without a mask
 */
export function viewGrants(
  entity: string,
  columns: readonly string[],
  rows: readonly RowFilter[],
  plain: ReadonlySet<string>,
  masked: readonly MaskedLabel[],
): readonly GrantDocument[] {
  const always = masked.filter(isAlwaysClear).map(({ label }) => label);
  const unmask = new Set([...plain, ...always]);
  const filters = widest(rows);
  const clear = masked.flatMap((column) =>
    isAlwaysClear(column)
      ? []
      : column.clear.flatMap((text) =>
          widest(filters.map((filter) => bothOf(filter, text))).map((filter) =>
            grantOn(entity, columns, filter, new Set([...unmask, column.label])),
          ),
        ),
  );
  return [...filters.map((filter) => grantOn(entity, columns, filter, unmask)), ...clear];
}

export function grantOn(
  entity: string,
  columns: readonly string[],
  rows: RowFilter,
  unmask: ReadonlySet<string>,
): GrantDocument {
  return {
    on: entity,
    columns: [...columns],
    ...(rows !== null && { rows }),
    ...(unmask.size > 0 && { unmask: [...unmask] }),
  };
}

/** Note on a masked column for the report; null if the role always sees its values. */
export function maskNote(column: MaskedLabel): string | null {
  if (isAlwaysClear(column)) return null;
  const others = column.clear.length > 0 ? ' unless the view shows the value' : '';
  return `${column.name} has the mask \`${column.mask}\`${others}`;
}

function isAlwaysClear({ clear }: MaskedLabel): boolean {
  return clear.includes(null);
}

/** Filters without those that another one contains. */
function widest(filters: readonly RowFilter[]): readonly RowFilter[] {
  return filters.includes(null) ? [null] : [...new Set(filters)];
}

/** Both filters. */
export function bothOf(one: RowFilter, other: RowFilter): RowFilter {
  if (one === null || other === null) return one ?? other;
  return `${one} and ${other}`;
}
