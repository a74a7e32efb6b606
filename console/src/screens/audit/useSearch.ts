import { useCallback, useEffect, useRef, useState } from 'react';
import { adminGet } from '../../api/admin.js';
import type { AuditRecord, RecordPage } from '../../api/admin-types.js';
import type { Caller } from '../../api/caller.js';
import { type RecordFilter, searchParameters } from './record-filter.js';

export interface SearchState {
  readonly records: readonly AuditRecord[];
  readonly isLoading: boolean;
  readonly error: unknown;
  /** There may be older ones. */
  readonly hasMore: boolean;
  readonly more: () => void;
  readonly again: () => void;
}

const PAGE = 100;

interface Held {
  readonly records: readonly AuditRecord[];
  readonly next: string | null;
}

/** Records under a filter, the newest first, a page at a time. */
export function useSearch(caller: Caller, filter: RecordFilter): SearchState {
  const [held, setHeld] = useState<Held>({ records: [], next: null });
  const [isLoading, setLoading] = useState(true);
  const [error, setError] = useState<unknown>(null);
  const [turn, setTurn] = useState(0);
  const stop = useRef(new AbortController());
  /** Of the first page: later ones go on under the same. */
  const parameters = useRef<Readonly<Record<string, string>>>({});
  const key = JSON.stringify(filter);
  const load = useCallback(
    (from: string | null, before: readonly AuditRecord[], signal: AbortSignal): void => {
      setLoading(true);
      setError(null);
      adminGet<RecordPage>(
        caller,
        '/admin/audit/records',
        { ...parameters.current, from, most: PAGE },
        signal,
      ).then(
        ({ records, next }) => {
          if (signal.aborted) return;
          setHeld({ records: [...before, ...records], next });
          setLoading(false);
        },
        (fault: unknown) => {
          if (signal.aborted) return;
          setError(fault);
          setLoading(false);
        },
      );
    },
    [caller],
  );
  useEffect(() => {
    void turn;
    const own = new AbortController();
    stop.current = own;
    parameters.current = searchParameters(JSON.parse(key) as RecordFilter, Date.now()); // what was just written
    setHeld({ records: [], next: null });
    load(null, [], own.signal);
    return () => own.abort();
  }, [key, load, turn]);
  return {
    records: held.records,
    isLoading,
    error,
    hasMore: held.next !== null,
    more: () => {
      if (!isLoading && held.next !== null) load(held.next, held.records, stop.current.signal);
    },
    again: () => setTurn(turn + 1),
  };
}
