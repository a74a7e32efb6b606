import type { RowStore } from '../../parts/rows/row-store.js';
import { type Passage, passageOf } from './passages.js';

interface PassagesViewProps {
  readonly store: RowStore;
}

const MOST = 200;

/** Passages of an answer as text, each with its source. */
export function PassagesView({ store }: PassagesViewProps) {
  const passages = Array.from({ length: Math.min(MOST, store.rows) }, (_, row) =>
    passageOf(rowOf(store, row)),
  );
  return (
    <ol className="passages">
      {passages.map((passage, i) =>
        // biome-ignore lint/suspicious/noArrayIndexKey: passages are identified by position.
        passage === null ? null : <PassageItem key={i} passage={passage} />,
      )}
      {store.rows > MOST && (
        <li className="quiet">
          The first {MOST} of {store.rows}.
        </li>
      )}
    </ol>
  );
}

export function hasPassages(store: RowStore): boolean {
  return store.rows > 0 && store.names.includes('text') && store.names.includes('cite');
}

function rowOf(store: RowStore, row: number): Readonly<Record<string, unknown>> {
  return Object.fromEntries(store.names.map((name, column) => [name, store.at(row, column)]));
}

function PassageItem({ passage }: { readonly passage: Passage }) {
  const { cite, score, stretches, redacted } = passage;
  return (
    <li>
      <div className="passage-cite">
        {cite !== null && (
          <>
            <code>{cite.document}</code>{' '}
            <span className="quiet">
              {cite.facet}, version {cite.version}, characters {cite.start}–{cite.end}
            </span>
          </>
        )}
        {score !== null && <span className="quiet"> score {score.toFixed(3)}</span>}
      </div>
      <blockquote>
        {stretches.map(({ text, isHighlight }, i) =>
          // biome-ignore lint/suspicious/noArrayIndexKey: segments are identified by position.
          isHighlight ? <mark key={i}>{text}</mark> : <span key={i}>{text}</span>,
        )}
      </blockquote>
      {redacted.length > 0 && <p className="passage-redacted">redacted in it: {redacted.join(', ')}</p>}
    </li>
  );
}
