import { useEffect, useState } from 'react';
import type { SignedInCaller } from '../../api/caller.js';
import { send } from '../../api/http.js';
import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { useThread } from '../../parts/thread/queryable-thread.js';
import { useSession } from '../../shell/session.js';
import { beginCatalogThread } from './catalog/begin.js';
import type { CatalogQuestions, CatalogThread } from './catalog/protocol.js';
import { MetricsView } from './MetricsView.js';
import './metrics.css';
import './dashboards/dashboards.css';

export function Screen() {
  const { caller } = useSession();
  const catalog = useCatalog(caller);
  switch (catalog.kind) {
    case 'loading':
      return (
        <p className="quiet loading" role="status">
          Loading your metrics …
        </p>
      );
    case 'failed':
      return (
        <Empty title="Your metrics could not be loaded">
          <ErrorBox error={catalog.error} />
          <button type="button" onClick={catalog.again}>
            Try again
          </button>
        </Empty>
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
  | { readonly kind: 'ready'; readonly thread: CatalogThread; readonly metrics: number };

function useCatalog(caller: SignedInCaller): CatalogState {
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

async function load(thread: CatalogThread, caller: SignedInCaller, signal: AbortSignal): Promise<number> {
  const response = await send(caller, 'GET', '/osl/schema?governed=true', null, { signal });
  const body = await response.arrayBuffer();
  return (await thread.ask('load', { body }, [body])).metrics;
}
