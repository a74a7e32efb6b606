import { useEffect, useState } from 'react';
import type { AnswerColumn } from '../../api/ask.js';
import type { GridSort } from '../../parts/grid/grid-data.js';
import { inTurns } from '../../parts/rows/in-turns.js';
import type { RowStore } from '../../parts/rows/row-store.js';
import { sortRows } from '../../parts/rows/sort-rows.js';
import { headsOf } from './answer-grid.js';

/** Order in which the rows of an answer are shown. */
export interface Sorting {
  /** Column sorted by, once its order is known; null for the order in which the rows came. */
  readonly sort: GridSort | null;
  /** Row numbers in that order. */
  readonly order: Uint32Array | null;
  /** True while the rows are being sorted; until then the previous order is shown. */
  readonly isSorting: boolean;
  /** Sorts by a column: first ascending, then descending, then as the rows came. */
  readonly byColumn: (column: number) => void;
}

interface WantedSort extends GridSort {
  readonly store: RowStore;
}

/** Sorts the rows in the page. `store` and `columns` are those of an answer that has ended. */
export function useSorting(store: RowStore | null, columns: readonly AnswerColumn[] | null): Sorting {
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
