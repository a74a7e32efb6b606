import type { AnswerColumn } from '../../api/ask.js';
import { type GridCell, type GridData, isAmount } from '../../parts/grid/grid-data.js';
import { type RowStore, textOf } from '../../parts/rows/row-store.js';
import type { AnswerDescription } from './useAnswer.js';

/** Text shown in a masked cell of type text, whatever its value. */
export const REDACTED = '[redacted]';

/**
 * Mask state of a cell: masked if its column is masked in all rows or if it contains `REDACTED`; any other NULL may or
 * may not be.
 */
export function maskOf(value: unknown, redacted: boolean, masked: 'none' | 'some' | 'all' | null): CellMask {
  if (!redacted) return 'none';
  if (masked === 'all' || value === REDACTED) return 'masked';
  return value === null ? 'perhaps' : 'none';
}

export type CellMask = 'none' | 'masked' | 'perhaps';

/**
 * Returns the mask state of a column for the caller, from the governed schema; null if the schema does not contain it.
 */
export type MaskedIn = (column: AnswerColumn) => 'none' | 'some' | 'all' | null;

/** Columns of an answer; if they are not described, because it has not ended, those of its rows. */
export function headsOf(store: RowStore, columns: readonly AnswerColumn[]): readonly AnswerColumn[] {
  if (columns.length > 0) return columns;
  return store.names.map((name) => ({ name, type: '', source: null, redacted: false }));
}

/** Rows of an answer as a grid, in `order` if they are sorted. */
export function answerGrid(
  store: RowStore,
  columns: readonly AnswerColumn[],
  maskedIn: MaskedIn,
  order: Uint32Array | null,
): GridData {
  const heads = headsOf(store, columns);
  const masks = heads.map(maskedIn);
  const places = heads.map(({ name }) => store.names.indexOf(name));
  return {
    columns: heads.map(({ name, type, redacted }) => ({ name, type, masked: redacted })),
    rows: store.rows,
    cell: (row, column): GridCell => {
      const head = heads[column];
      const value = store.at(order?.[row] ?? row, places[column] ?? -1);
      const mask = maskOf(value, head?.redacted === true, masks[column] ?? null);
      if (mask === 'masked') return { kind: 'masked', text: value === null ? 'masked' : textOf(value) };
      if (mask === 'perhaps') return { kind: 'masked', text: 'masked or NULL' };
      if (value === null) return { kind: 'null', text: 'NULL' };
      if (value === '') return { kind: 'empty', text: '' };
      const kind = isAmount(head?.type ?? '') ? 'number' : typeof value === 'boolean' ? 'flag' : 'text';
      return { kind, text: textOf(value) };
    },
  };
}

/**
 * Full names of the columns that explain a masked column: its source, or for a computed column every masked column of
 * the answer. Null if the column is not masked.
 */
export function whyObjects(
  column: AnswerColumn | undefined,
  { redacted_columns }: Pick<AnswerDescription, 'redacted_columns'>,
): readonly string[] | null {
  if (column === undefined || !column.redacted) return null;
  if (column.source !== null) return [column.source];
  return redacted_columns.map((name) => `osl.entities.${name}`);
}
