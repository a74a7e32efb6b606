import { Empty } from '../../parts/Empty.js';
import { ErrorBox } from '../../parts/ErrorBox.js';
import { useSession } from '../../shell/session.js';
import { useCatalog } from './catalog/useCatalog.js';
import { MetricsView } from './MetricsView.js';
import './metrics.css';

/** Figures of the business, picked without typing, as a chart and a table. */
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
