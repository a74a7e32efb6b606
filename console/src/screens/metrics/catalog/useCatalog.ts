import { useEffect, useState } from 'react';
import type { Caller } from '../../../api/caller.js';
import { send } from '../../../api/http.js';
import { useThread } from '../../../parts/thread/useThread.js';
import { beginCatalogThread } from './begin.js';
import type { CatalogQuestions, CatalogThread } from './protocol.js';

/** The schema of the caller, in a thread that can be asked about it. */
export type CatalogState =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly error: unknown; readonly again: () => void }
  | { readonly kind: 'ready'; readonly thread: CatalogThread; readonly metrics: number };

export function useCatalog(caller: Caller): CatalogState {
  const thread = useThread<CatalogQuestions>(beginCatalogThread);
  const [state, setState] = useState<CatalogState>({ kind: 'loading' });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    void tries;
    if (thread === null) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    setState({ kind: 'loading' });
    load(thread, caller, signal).then(
      (metrics) => {
        if (!signal.aborted) setState({ kind: 'ready', thread, metrics });
      },
      (error: unknown) => {
        if (!signal.aborted) setState({ kind: 'failed', error, again: () => setTries((n) => n + 1) });
      },
    );
    return () => leaving.abort();
  }, [thread, caller, tries]);
  return state;
}

async function load(thread: CatalogThread, caller: Caller, signal: AbortSignal): Promise<number> {
  const response = await send(caller, 'GET', '/osl/schema?governed=true', null, { signal });
  const body = await response.arrayBuffer();
  return (await thread.ask('load', { body }, [body])).metrics;
}
