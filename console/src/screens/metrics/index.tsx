import { useEffect, useState } from 'react';
import type { SignedInCaller } from '../../api/caller.js';
import { takeSchema } from '../../api/schema.js';
import { Empty, SchemaFault } from '../../parts/Empty.js';
import { Loading } from '../../parts/load/Loaded.js';
import { useSession } from '../../shell/session.js';
import { beginCatalogThread } from './catalog/begin.js';
import type { CatalogQuestions, CatalogThread } from './catalog/protocol.js';
import { MetricsView } from './MetricsView.js';
import { useThread } from '../../parts/load/useLoad.js';
import './metrics.css';
import './dashboards/dashboards.css';

export function Screen() {
  const { caller } = useSession();
  const catalog = useCatalog(caller);
  switch (catalog.kind) {
    case 'loading':
      return <Loading what="your metrics" />;
    case 'failed':
      return (
        <SchemaFault title="Your metrics could not be loaded" error={catalog.error} again={catalog.again} />
      );
    case 'ready':
      if (catalog.metrics === 0)
        return (
          <Empty
            title="You have no metrics"
            text="The manifest declares none, or your grants do not cover all columns that they need."
          >
            <a href="#/map">Open your map</a>
          </Empty>
        );
      return <MetricsView caller={caller} thread={catalog.thread} />;
    default: {
      const unknown: never = catalog;
      return unknown;
    }
  }
}

/** State of loading the caller's schema into the worker thread. */
type CatalogState =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly error: unknown; readonly again: () => void }
  | {
      readonly kind: 'ready';
      readonly of: string;
      readonly thread: CatalogThread;
      readonly metrics: number;
    };

function useCatalog(caller: SignedInCaller): CatalogState {
  const thread = useThread<CatalogQuestions>(beginCatalogThread);
  const [state, setState] = useState<CatalogState>({ kind: 'loading' });
  const [tries, setTries] = useState(0);
  useEffect(() => {
    void tries;
    if (thread === null) return;
    const leaving = new AbortController();
    const { signal } = leaving;
    // After a new sign-in of the same caller, the screen stays while the schema is loaded again.
    setState((now) => (now.kind === 'ready' && now.of === caller.key ? now : { kind: 'loading' }));
    takeSchema(caller, signal, (body) => thread.ask('load', { body }, [body])).then(
      ({ metrics }) => {
        if (!signal.aborted) setState({ kind: 'ready', of: caller.key, thread, metrics });
      },
      (error: unknown) => {
        if (!signal.aborted) setState({ kind: 'failed', error, again: () => setTries((n) => n + 1) });
      },
    );
    return () => leaving.abort();
  }, [thread, caller, tries]);
  return state;
}
