import { useMemo, useState } from 'react';
import { useAnswer } from '../../../parts/thread/useAnswer.js';
import type { CatalogMetric, CatalogThread } from '../catalog/protocol.js';

export interface GalleryProps {
  readonly thread: CatalogThread;
  readonly onPick: (metric: CatalogMetric) => void;
}

const MOST = 90;

/** The metrics that there are, to begin with one. */
export function Gallery({ thread, onPick }: GalleryProps) {
  const [term, setTerm] = useState('');
  const find = useMemo(() => () => thread.ask('metrics', { term, most: MOST }), [thread, term]);
  const { answer } = useAnswer(find);
  return (
    <div className="gallery">
      <header>
        <h2>Choose a metric</h2>
        <p className="quiet">
          Each metric has one definition for all tools, and is computed over the rows that you may see.
        </p>
        {(answer?.total ?? 0) > 12 || term !== '' ? (
          <input
            type="search"
            aria-label="Search metrics"
            placeholder="Search …"
            value={term}
            onChange={(event) => setTerm(event.target.value)}
          />
        ) : null}
      </header>
      <ul>
        {(answer?.first ?? []).map((metric) => (
          <li key={metric.name}>
            <button type="button" onClick={() => onPick(metric)}>
              <span className="gallery-name">{metric.name}</span>
              <span className="gallery-about">{metric.description ?? ''}</span>
              <span className="gallery-of">
                {metric.kind} · {metric.entity ?? 'several entities'}
                {metric.deprecated === null ? '' : ' · deprecated'}
              </span>
            </button>
          </li>
        ))}
      </ul>
      {answer !== null && answer.total > answer.first.length && (
        <p className="quiet">{`${answer.first.length} of ${answer.total.toLocaleString('en')}: search for the others`}</p>
      )}
    </div>
  );
}
