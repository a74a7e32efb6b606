import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import { adminGet, adminPost } from '../../api/admin.js';
import { useSession } from '../../shell/session.js';
import { QueryableThread, type ThreadQuestions } from '../thread.js';

export interface LoadState<T> {
  /** Last loaded value, kept while it is loaded again. */
  readonly value: T | null;
  readonly error: unknown;
  readonly isLoading: boolean;
  readonly again: () => void;
}

/**
 * Runs `load` and returns its state. It runs again when `key` changes, when the caller signs in again, or when `again`
 * is called. With a null key, nothing is loaded.
 */
export function useLoad<T>(key: string | null, load: (signal: AbortSignal) => Promise<T>): LoadState<T> {
  const [state, setState] = useState<{ key: string | null; value: T | null; error: unknown }>({
    key: null,
    value: null,
    error: null,
  });
  const { caller } = useSession();
  const [turn, setTurn] = useState(0);
  const [isLoading, setLoading] = useState(false);
  const latest = useRef(load);
  latest.current = load;
  useEffect(() => {
    void turn;
    void caller;
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
  }, [key, turn, caller]);
  const again = useCallback(() => setTurn((n) => n + 1), []);
  const isOwn = state.key === key && key !== null;
  return { value: isOwn ? state.value : null, error: isOwn ? state.error : null, isLoading, again };
}

/** Returns `value`, but updates it only after it has not changed for `ms` milliseconds; for typed input. */
export function useDebounced<T>(value: T, ms = 250): T {
  const [later, setLater] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setLater(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return later;
}

/** Calls `look` every `everyMs` ms while the page is visible, and when it reappears; never if `everyMs` is null. */
export function usePolling(look: () => void, everyMs: number | null): void {
  const latest = useRef(look);
  latest.current = look;
  useEffect(() => {
    if (everyMs === null) return;
    let timer: ReturnType<typeof setInterval> | null = null;
    const begin = (): void => {
      if (timer === null && document.visibilityState === 'visible')
        timer = setInterval(() => latest.current(), everyMs);
    };
    const changed = (): void => {
      if (document.visibilityState === 'visible') {
        latest.current();
        begin();
        return;
      }
      if (timer !== null) clearInterval(timer);
      timer = null;
    };
    begin();
    document.addEventListener('visibilitychange', changed);
    return () => {
      document.removeEventListener('visibilitychange', changed);
      if (timer !== null) clearInterval(timer);
    };
  }, [everyMs]);
}

/** Job state, as returned by every job endpoint. */
interface Job {
  readonly state: string;
}

interface LoadedJob<J extends Job> {
  /** State and last result; null before the first response. */
  readonly job: J | null;
  readonly error: unknown;
  readonly begin: () => void;
  readonly again: () => void;
}

/** Reads the state of the server's job at `path`, polls it while the job is running, and can start it. */
export function useJob<J extends Job>(path: string): LoadedJob<J> {
  const { caller } = useSession();
  const { value, error, again } = useLoad(path, (signal) => adminGet<J>(caller, path, {}, signal));
  const [fault, setFault] = useState<unknown>(null);
  usePolling(again, value?.state === 'running' ? 1_000 : null);
  const begin = (): void => {
    setFault(null);
    adminPost(caller, path, null).then(again, setFault);
  };
  return { job: value, error: fault ?? error, begin, again };
}

/** Worker thread of an open screen; null until it has started. `begin` must be the same function on each render. */
export function useThread<Q extends ThreadQuestions>(begin: () => Worker): QueryableThread<Q> | null {
  const [thread, setThread] = useState<QueryableThread<Q> | null>(null);
  useEffect(() => {
    const begun = new QueryableThread<Q>(begin());
    setThread(begun);
    return () => begun.stop();
  }, [begin]);
  return thread;
}

/** Last result of a request; null before the first and after an error. Results of superseded requests are dropped. */
export function useAnswer<T>(ask: (() => Promise<T>) | null): {
  readonly answer: T | null;
  readonly fault: unknown;
} {
  const [state, setState] = useState<{ readonly answer: T | null; readonly fault: unknown }>({
    answer: null,
    fault: null,
  });
  useEffect(() => {
    if (ask === null) return;
    let isLatest = true;
    ask().then(
      (answer) => {
        if (isLatest) setState({ answer, fault: null });
      },
      (fault: unknown) => {
        if (isLatest) setState({ answer: null, fault });
      },
    );
    return () => {
      isLatest = false;
    };
  }, [ask]);
  return state;
}

/**
 * Sends a request to a worker thread and returns its answer. The request is sent again if it changes, or if the data in
 * the thread changes, which `version` identifies. For a null request, nothing is sent.
 */
export function useThreadAnswer<Q extends ThreadQuestions, Name extends keyof Q>(
  thread: QueryableThread<Q>,
  name: Name,
  ask: Q[Name]['ask'] | null,
  version = '',
): { readonly answer: Q[Name]['answer'] | null; readonly fault: unknown } {
  const key = ask === null ? null : JSON.stringify(ask);
  const send = useMemo(() => {
    void version;
    return key === null ? null : () => thread.ask(name, JSON.parse(key) as Q[Name]['ask']); // serialized above
  }, [thread, name, key, version]);
  return useAnswer<Q[Name]['answer']>(send);
}
