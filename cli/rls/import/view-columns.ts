import type { MaskKind, Relation as ModelRelation } from 'osl-compiler';
import type { MaskedColumn, ViewColumn } from './simple-view.js';
import type { TableView } from './view-plan.js';

/** Columns of a view that a role may read, by the columns of its table from which they come. */
export interface ShownColumns {
  readonly plain: readonly string[];
  readonly masked: ReadonlyMap<string, MaskedColumn>;
  /** Notes on columns that are left out. */
  readonly notes: readonly string[];
}

/**
 * @param labelOf the label of a column of the table; null if it has none
 * @param known the columns of the table that the model has
 */
export function viewColumns(
  columns: readonly ViewColumn[],
  labelOf: (column: string) => string | null,
  known: ReadonlyMap<string, string>,
): ShownColumns {
  const notes: string[] = [];
  const plain: string[] = [];
  const masked = new Map<string, MaskedColumn>();
  for (const column of columns) {
    if (column.kind === 'computed') notes.push(`${column.name} is left out: ${column.reason}`);
    else if (!known.has(column.of)) notes.push(`${column.name} is left out: the model has no type for it`);
    else if (column.kind === 'plain') plain.push(column.of);
    else if (labelOf(column.of) === null)
      notes.push(`${column.name} is left out: keys of the table cannot be masked`);
    else masked.set(column.of, column);
  }
  return { plain, masked, notes };
}

/** The mask of each label. Where views differ, the value is redacted. */
export function masksOf(
  views: readonly { readonly plan: TableView; readonly model: ModelRelation }[],
): ReadonlyMap<string, MaskKind> {
  const masks = new Map<string, MaskKind>();
  for (const { plan, model } of views)
    for (const column of plan.query.columns) {
      if (column.kind !== 'masked') continue;
      const label = model.columns.find(({ physical }) => physical === column.of)?.sensitivity ?? null;
      if (label === null) continue;
      const known = masks.get(label) ?? column.mask;
      masks.set(label, known === column.mask ? known : 'redact');
    }
  return masks;
}
