import { useMemo } from 'react';
import { useSchemaInThread } from '../../api/schema.js';
import { Empty, SchemaFault } from '../../parts/Empty.js';
import { Loading } from '../../parts/load/Loaded.js';
import { useThread } from '../../parts/load/useLoad.js';
import { useSession } from '../../shell/session.js';
import type { CatalogQuestions } from './catalog/protocol.js';
import { MetricsView } from './MetricsView.js';
import './metrics.css';
import './dashboards/dashboards.css';

export function Screen() {
  const { caller } = useSession();
  const thread = useThread<CatalogQuestions>(beginThread);
  const load = useMemo(
    () => (thread === null ? null : (body: ArrayBuffer) => thread.ask('load', { body }, [body])),
    [thread],
  );
  const catalog = useSchemaInThread(caller, load);
  switch (catalog.kind) {
    case 'none':
    case 'loading':
      return <Loading what="your metrics" />;
    case 'failed':
      return (
        <SchemaFault title="Your metrics could not be loaded" error={catalog.error} again={catalog.again} />
      );
    case 'ready':
      if (catalog.value.metrics === 0)
        return (
          <Empty
            title="You have no metrics"
            text="The manifest declares none, or your grants do not cover all columns that they need."
          >
            <a href="#/map">Open your map</a>
          </Empty>
        );
      return thread === null ? null : <MetricsView thread={thread} />;
  }
}

function beginThread(): Worker {
  return new Worker(new URL('./catalog/thread.ts', import.meta.url), { type: 'module' });
}
