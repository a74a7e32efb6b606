import { useCallback, useEffect, useRef, useState } from 'react';

export interface LoadState<T> {
  /** What came last; stays while it is asked for again. */
  readonly value: T | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly again: () => void;
}

/** What `load` gives; asked anew with each other `key`, and by `again`. A null key asks nothing. */
export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): LoadState<T> {
  const [state, setState] = useState<{ key: string | null; value: T | null; error: unknown }>({
    key: null,
    value: null,
    error: null,
  });
  const [turn, setTurn] = useState(0);
  const [isLoading, setLoading] = useState(false);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    void turn;
    if (key === null) return;
    const stop = new AbortController();
    setLoading(true);
    latest.current(stop.signal).then(
      (value) => {
        if (stop.signal.aborted) return;
        setState({ key, value, error: null });
        setLoading(false);
      },
      (error: unknown) => {
        if (stop.signal.aborted) return;
        setState((now) => ({ key, value: now.key === key ? now.value : null, error }));
        setLoading(false);
      },
    );
    return () => stop.abort();
  }, [key, turn]);
  const again = useCallback(() => setTurn((n) => n + 1), []);
  const isOwn = state.key === key && key !== null;
  return { value: isOwn ? state.value : null, error: isOwn ? state.error : null, isLoading, again };
}
