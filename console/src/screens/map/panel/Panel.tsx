import { useEffect, useRef } from 'react';
import { trust } from '../../../parts/own-places.js';
import { hashOf } from '../../../shell/routes.js';
import { Shape } from '../picture/Legend.js';
import { KIND_WORDS, markWords, questionFor } from '../words.js';
import type { Details } from '../worker/protocol.js';
import { Columns } from './Columns.js';
import { Ties } from './Ties.js';

export interface PanelProps {
  readonly details: Details;
  readonly wanted: string | null;
  readonly callers: readonly [first: string, second: string] | null;
  readonly onOpen: (id: string) => void;
  /** Draws what is around it; null where that is drawn already. */
  readonly onAround: (() => void) | null;
  readonly onClose: () => void;
}

/** All that the caller may know of one thing, and what can be done with it. */
export function Panel({ details, wanted, callers, onOpen, onAround, onClose }: PanelProps) {
  const { thing, mark, columns, neighbours } = details;
  const { id, kind, name, description, deprecated, facts, derived, examples, synonyms } = thing;
  const title = useRef<HTMLHeadingElement>(null);
  // Who opens it by keys goes on reading in it.
  // biome-ignore lint/correctness/useExhaustiveDependencies: another thing is another panel
  useEffect(() => title.current?.focus({ preventScroll: true }), [id]);
  const question = questionFor(thing);
  return (
    <aside className="map-panel" aria-label={`${KIND_WORDS[kind].one} ${name}`}>
      <header>
        <p className="map-panel-kind">
          <Shape kind={kind} /> {KIND_WORDS[kind].one}
        </p>
        <button type="button" className="map-close" aria-label="Close" onClick={onClose}>
          ×
        </button>
        <h2 ref={title} tabIndex={-1}>
          {name}
        </h2>
        {deprecated !== null && <p className="map-deprecated">deprecated: {deprecated}</p>}
        {callers !== null && <p className="map-panel-mark">{markWords(mark, ...callers)}</p>}
        {description !== null && <p>{description}</p>}
        <div className="map-actions">
          {question !== null && (
            <a className="button primary" href={hashOf('ask', { q: question })}>
              Ask this
            </a>
          )}
          {kind === 'metric' && (
            <a
              className="button"
              href={hashOf('metrics', { metric: name })}
              onClick={() => trust(hashOf('metrics', { metric: name }))}
            >
              Open in Metrics
            </a>
          )}
          {onAround !== null && (
            <button type="button" onClick={onAround}>
              Show around it
            </button>
          )}
        </div>
      </header>
      {facts.length + synonyms.length > 0 && (
        <dl className="map-facts">
          {facts.map(({ what, value }) => (
            <div key={what}>
              <dt>{what}</dt>
              <dd>{value}</dd>
            </div>
          ))}
          {synonyms.length > 0 && (
            <div>
              <dt>also called</dt>
              <dd>{synonyms.join(', ')}</dd>
            </div>
          )}
        </dl>
      )}
      <Columns key={id} thing={thing} changes={columns} callers={callers} wanted={wanted} />
      {derived.length > 0 && (
        <section>
          <h3>
            Taken from text <span className="map-count">{derived.length}</span>
          </h3>
          <ul className="map-columns">
            {derived.map((d) => (
              <li key={d.name} className={d.name === wanted ? 'is-wanted' : ''}>
                <div className="map-column">
                  <span className="map-column-name">{d.name}</span>
                  <span className="map-column-type">
                    {d.type} · from {d.facet}
                  </span>
                </div>
                {d.description !== null && <p className="map-about">{d.description}</p>}
              </li>
            ))}
          </ul>
        </section>
      )}
      <Ties id={id} neighbours={neighbours} onOpen={onOpen} />
      {examples.length > 0 && (
        <section>
          <h3>Questions</h3>
          <ul className="map-examples">
            {examples.slice(0, 12).map((example) => (
              <li key={example}>
                <a href={hashOf('ask', { q: example })} aria-label={`Ask this: ${example}`}>
                  <code>{example}</code>
                </a>
              </li>
            ))}
          </ul>
        </section>
      )}
    </aside>
  );
}
