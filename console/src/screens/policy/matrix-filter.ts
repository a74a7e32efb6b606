import { useCallback, useEffect, useRef, useState } from 'react';
import { adminGet } from '../../api/admin.js';
import type { MatrixPage, MatrixRow, Sight } from '../../api/admin-types.js';
import type { SignedInCaller } from '../../api/caller.js';

export interface MatrixFilter {
  readonly object: string;
  readonly subject: string;
  readonly sees: Sight | '' | 'anything';
  /** Chain of subjects, separated by commas, root first, for a delegated caller. */
  readonly chain: string;
}

export const NO_FILTER: MatrixFilter = { object: '', subject: '', sees: '', chain: '' };

/** Returns the request parameters for a filter, without those for paging. */
export function parametersOf({
  object,
  subject,
  sees,
  chain,
}: MatrixFilter): Readonly<Record<string, string>> {
  return {
    object: object.trim(),
    subject: subject.trim(),
    sees: sees === 'anything' ? 'clear,partly_masked,masked,aggregates' : sees,
    chain: membersOf(chain).join(','),
  };
}

/** Splits a chain of subjects, written as `user:a > agent:b` or separated by commas. */
export function membersOf(chain: string): readonly string[] {
  return chain
    .split(/[,>→]/)
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

/** Number of rows on a page of the matrix. */
export const PAGE_ROWS = 100;

/** Loaded pages of rows by page number, for one filter and one page of subjects. */
type Pages = ReadonlyMap<number, MatrixPage>;

/** Returns the pages that are not loaded yet and contain rows from `first` up to, but excluding, `end`. */
export function missingPages(pages: Pages, first: number, end: number, rows: number): readonly number[] {
  const last = Math.max(0, Math.min(end, rows) - 1);
  const from = Math.floor(first / PAGE_ROWS);
  const wanted: number[] = [];
  for (let page = from; page <= Math.floor(last / PAGE_ROWS); page += 1)
    if (!pages.has(page)) wanted.push(page);
  return rows === 0 ? [] : wanted;
}

/** Returns the row at an index; null until its page has loaded. */
export function rowAt(pages: Pages, index: number): MatrixRow | null {
  return pages.get(Math.floor(index / PAGE_ROWS))?.rows[index % PAGE_ROWS] ?? null;
}

export interface MatrixState {
  readonly first: MatrixPage | null;
  readonly pages: Pages;
  readonly error: unknown;
  readonly isLoading: boolean;
  /** Loads the pages with rows from `first` up to, but excluding, `end` that are not loaded yet. */
  readonly want: (first: number, end: number) => void;
  readonly again: () => void;
}

/** Loads the filtered matrix, one page of rows at a time. `after` is the cursor of the page of subjects. */
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
      const [parameters, from] = JSON.parse(key) as [Record<string, string>, string | null]; // serialized above
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
