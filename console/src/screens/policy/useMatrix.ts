import { useCallback, useEffect, useRef, useState } from 'react';
import { adminGet } from '../../api/admin.js';
import type { MatrixPage } from '../../api/admin-types.js';
import type { SignedInCaller } from '../../api/caller.js';
import { type MatrixFilter, missingPages, PAGE_ROWS, type Pages, parametersOf } from './matrix-filter.js';

export interface MatrixState {
  readonly first: MatrixPage | null;
  readonly pages: Pages;
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Has the rows of a window loaded. */
  readonly want: (first: number, end: number) => void;
  readonly again: () => void;
}

/** The matrix under a filter, a page of rows at a time; `after`: the page of subjects. */
export function useMatrix(caller: SignedInCaller, filter: MatrixFilter, after: string | null): MatrixState {
  const [pages, setPages] = useState<Pages>(new Map());
  const [error, setError] = useState<unknown>(null);
  const [isLoading, setLoading] = useState(true);
  const [turn, setTurn] = useState(0);
  const asked = useRef(new Set<number>());
  const stop = useRef(new AbortController());
  const key = JSON.stringify([parametersOf(filter), after]);
  const load = useCallback(
    (page: number, signal: AbortSignal): void => {
      const [parameters, from] = JSON.parse(key) as [Record<string, string>, string | null]; // what was just written
      asked.current.add(page);
      adminGet<MatrixPage>(
        caller,
        '/admin/matrix',
        { ...parameters, after: from, from: page * PAGE_ROWS, rows: PAGE_ROWS },
        signal,
      ).then(
        (came) => {
          if (signal.aborted) return;
          setPages((now) => new Map(now).set(page, came));
          setLoading(false);
        },
        (fault: unknown) => {
          if (signal.aborted) return;
          asked.current.delete(page);
          setError(fault);
          setLoading(false);
        },
      );
    },
    [caller, key],
  );
  useEffect(() => {
    void turn;
    const own = new AbortController();
    stop.current = own;
    asked.current = new Set();
    setPages(new Map());
    setError(null);
    setLoading(true);
    load(0, own.signal);
    return () => own.abort();
  }, [load, turn]);
  const first = pages.get(0) ?? null;
  const want = (from: number, end: number): void => {
    if (first === null) return;
    for (const page of missingPages(pages, from, end, first.row_count))
      if (!asked.current.has(page)) load(page, stop.current.signal);
  };
  return { first, pages, error, isLoading, want, again: () => setTurn(turn + 1) };
}
