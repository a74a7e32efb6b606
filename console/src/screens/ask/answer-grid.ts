import { useEffect, useState } from 'react';
import type { AnswerColumn } from '../../../../clients/typescript/types.js';
import { type GridCell, type GridData, type GridSort, isAmount } from '../../parts/grid/grid-data.js';
import { inTurns, type RowStore, textOf } from '../../parts/rows/row-store.js';
import { sortRows } from '../../parts/rows/sort-rows.js';
import type { AnswerDescription } from './useAnswer.js';

/** Text that a mask puts in place of a value of type text. */
const REDACTED = '[redacted]';

/**
 * Returns the mask state of a cell. In a column with masks, a cell is masked if the masks cover all rows or if its
 * value is `REDACTED`. Any other NULL is either a masked value or a true NULL (`perhaps`).
 */
export function maskOf(value: unknown, redacted: boolean, masked: 'none' | 'some' | 'all' | null): CellMask {
  if (!redacted) return 'none';
  if (masked === 'all' || value === REDACTED) return 'masked';
  return value === null ? 'perhaps' : 'none';
}

type CellMask = 'none' | 'masked' | 'perhaps';

/** Returns in which rows (none, some, all) an answer's column is masked; null if it is not in the governed schema. */
export type MaskedIn = (column: AnswerColumn) => 'none' | 'some' | 'all' | null;

/** Returns the columns of an answer. Until the answer ends, only their names are known, from its rows. */
export function headsOf(store: RowStore, columns: readonly AnswerColumn[]): readonly AnswerColumn[] {
  if (columns.length > 0) return columns;
  return store.names.map((name) => ({ name, type: '', source: null, redacted: false }));
}

/** Presents the rows of an answer as a grid, in `order`; if `order` is null, the rows keep their original order. */
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
 * Returns the full names of the columns that explain a masked column: its source, or, for a computed column, every
 * masked column of the answer. Null if the column is not masked.
 */
export function whyObjects(
  column: AnswerColumn | undefined,
  { redacted_columns }: Pick<AnswerDescription, 'redacted_columns'>,
): readonly string[] | null {
  if (column === undefined || !column.redacted) return null;
  if (column.source !== null) return [column.source];
  return redacted_columns.map((name) => `osl.entities.${name}`);
}

/** Order in which the rows of an answer are shown. */
export interface SortOrder {
  /** Column by which the rows are sorted, once its order is known; null for the original order. */
  readonly sort: GridSort | null;
  /** Row numbers in the order shown; null for the original order. */
  readonly order: Uint32Array | null;
  /** True while the rows are being sorted; until then the previous order is shown. */
  readonly isSorting: boolean;
  /** Sorts by a column: ascending on the first call, then descending, then back to the original order. */
  readonly byColumn: (column: number) => void;
}

interface WantedSort extends GridSort {
  readonly store: RowStore;
}

/** Sorts the rows of an answer that has ended, within the page. */
export function useSorting(store: RowStore | null, columns: readonly AnswerColumn[] | null): SortOrder {
  const [wanted, setWanted] = useState<WantedSort | null>(null);
  const [done, setDone] = useState<{ readonly wanted: WantedSort; readonly order: Uint32Array } | null>(null);
  useEffect(() => {
    const column = wanted === null ? null : (headsOf(wanted.store, columns ?? [])[wanted.column] ?? null);
    if (wanted === null || column === null || wanted.store !== store) {
      setDone(null);
      return;
    }
    const { rows } = wanted.store;
    const place = wanted.store.names.indexOf(column.name);
    const work = sortRows(
      { rows, type: column.type, at: (row) => wanted.store.at(row, place) },
      wanted.direction,
    );
    const stop = new AbortController();
    inTurns(work, stop.signal).then(
      (order) => {
        if (!stop.signal.aborted) setDone({ wanted, order });
      },
      (error: unknown) => {
        if (!stop.signal.aborted) throw error;
      },
    );
    return () => stop.abort();
  }, [wanted, store, columns]);
  const current = wanted?.store === store ? wanted : null;
  const shown = done?.wanted.store === store && current !== null ? done : null;
  return {
    sort: shown?.wanted ?? null,
    order: shown?.order ?? null,
    isSorting: current !== null && shown?.wanted !== current,
    byColumn: (column) => {
      if (store !== null) setWanted(nextSort(store, current, column));
    },
  };
}

function nextSort(store: RowStore, now: WantedSort | null, column: number): WantedSort | null {
  if (now?.column !== column) return { store, column, direction: 'ascending' };
  return now.direction === 'ascending' ? { store, column, direction: 'descending' } : null;
}
