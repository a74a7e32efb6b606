import { useEffect, useState } from 'react';
import type { SignedInCaller } from '../../api/caller.js';
import { send } from '../../api/http.js';
import type { LoadedMap, MapSide, MapThread } from './worker/protocol.js';

/** Loading state of a caller's map. */
export type MapState =
  | { readonly kind: 'none' }
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly error: unknown; readonly again: () => void }
  | { readonly kind: 'ready'; readonly loaded: LoadedMap };

/** Loads the caller's graph into the worker thread, so that parsing it never blocks the page. */
export function useMapOf(thread: MapThread | null, caller: SignedInCaller | null, side: MapSide): MapState {
  const [state, setState] = useState<MapState>({ kind: 'none' });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    void tries;
    if (thread === null || caller === null) {
      setState({ kind: 'none' });
      return;
    }
    const leaving = new AbortController();
    const { signal } = leaving;
    const again = (): void => setTries((n) => n + 1);
    setState({ kind: 'loading' });
    load(thread, caller, side, signal).then(
      (loaded) => {
        if (!signal.aborted) setState({ kind: 'ready', loaded });
      },
      (error: unknown) => {
        if (!signal.aborted) setState({ kind: 'failed', error, again });
      },
    );
    return () => {
      leaving.abort();
      // If the thread has been stopped, it has already forgotten the second caller.
      if (side === 'second') thread.ask('forget', null).catch(() => undefined);
    };
  }, [thread, caller, side, tries]);
  return state;
}

async function load(
  thread: MapThread,
  caller: SignedInCaller,
  side: MapSide,
  signal: AbortSignal,
): Promise<LoadedMap> {
  const response = await send(caller, 'GET', '/osl/schema?governed=true', null, { signal });
  const body = await response.arrayBuffer();
  return thread.ask('load', { side, body }, [body]);
}
