import { useCallback, useEffect, useRef, useState } from 'react';
import { adminGet } from '../../api/admin.js';
import type { MatrixPage, MatrixRow, Sight } from '../../api/admin-types.js';
import type { SignedInCaller } from '../../api/caller.js';

/** What of the matrix is wanted. */
export interface MatrixFilter {
  readonly object: string;
  readonly subject: string;
  readonly sees: Sight | '' | 'anything';
  /** Subjects with commas, root first: somebody who acts for somebody. */
  readonly chain: string;
}

export const NO_FILTER: MatrixFilter = { object: '', subject: '', sees: '', chain: '' };

/** The parameters of the request, without pages. */
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

/** `user:a > agent:b` or with commas. */
export function membersOf(chain: string): readonly string[] {
  return chain
    .split(/[,>→]/)
    .map((one) => one.trim())
    .filter((one) => one !== '');
}

/** Rows of a page of the matrix. */
export const PAGE_ROWS = 100;

/** Pages of rows as they came, of one filter and one set of subjects. */
export type Pages = ReadonlyMap<number, MatrixPage>;

/** The pages that rows from `first` to before `end` are on, and that are not there yet. */
export function missingPages(pages: Pages, first: number, end: number, rows: number): readonly number[] {
  const last = Math.max(0, Math.min(end, rows) - 1);
  const from = Math.floor(first / PAGE_ROWS);
  const wanted: number[] = [];
  for (let page = from; page <= Math.floor(last / PAGE_ROWS); page += 1)
    if (!pages.has(page)) wanted.push(page);
  return rows === 0 ? [] : wanted;
}

/** The row at a place; null while its page has not come. */
export function rowAt(pages: Pages, index: number): MatrixRow | null {
  return pages.get(Math.floor(index / PAGE_ROWS))?.rows[index % PAGE_ROWS] ?? null;
}

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
