import { useEffect, useState } from 'react';
import type { SignedInCaller } from '../../api/caller.js';
import { takeSchema } from '../../api/schema.js';
import type { LoadedMap, MapSide, MapThread } from './worker/protocol.js';

/** Loading state of a caller's map. */
export type MapState =
  | { readonly kind: 'none' }
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly error: unknown; readonly again: () => void }
  | { readonly kind: 'ready'; readonly loaded: LoadedMap; readonly of: string };

/** Loads the caller's graph into the worker thread. */
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
    // After a new sign-in of the same caller, the map stays while it is loaded again.
    setState((now) => (now.kind === 'ready' && now.of === caller.key ? now : { kind: 'loading' }));
    takeSchema(caller, signal, (body) => thread.ask('load', { side, body }, [body])).then(
      (loaded) => {
        if (!signal.aborted) setState({ kind: 'ready', loaded, of: caller.key });
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
