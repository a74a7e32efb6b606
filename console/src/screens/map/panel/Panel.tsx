import { useEffect, useRef, useState } from 'react';
import { FactList } from '../../../parts/FactList.js';
import { hashOf, trust } from '../../../shell/routes.js';
import type { Connection } from '../graph/model.js';
import { CountedTitle, MoreButton } from '../ObjectList.js';
import { Shape } from '../picture/Legend.js';
import { KIND_WORDS, markWords, questionFor } from '../words.js';
import type { Details, Neighbour } from '../worker/protocol.js';
import { Columns } from './Columns.js';

interface PanelProps {
  readonly details: Details;
  readonly wanted: string | null;
  readonly callers: readonly [first: string, second: string] | null;
  readonly onOpen: (id: string) => void;
  /** Draws the neighbourhood of the object; null if that neighbourhood is already drawn. */
  readonly onAround: (() => void) | null;
  readonly onClose: () => void;
}

export function Panel({ details, wanted, callers, onOpen, onAround, onClose }: PanelProps) {
  const { object, mark, columns, neighbours } = details;
  const { id, kind, name, description, deprecated, facts, derived, examples, synonyms } = object;
  const title = useRef<HTMLHeadingElement>(null);
  // Focuses the title, so that keyboard users continue reading there.
  // biome-ignore lint/correctness/useExhaustiveDependencies: each object has its own panel
  useEffect(() => title.current?.focus({ preventScroll: true }), [id]);
  const question = questionFor(object);
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
        <FactList
          facts={[
            ...facts.map(({ what, value }) => [what, value] as const),
            ['also called', synonyms.length === 0 ? null : synonyms.join(', ')],
          ]}
        />
      )}
      <Columns key={id} object={object} changes={columns} callers={callers} wanted={wanted} />
      {derived.length > 0 && (
        <section>
          <CountedTitle title="Taken from text" count={derived.length} />
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
      <Connections id={id} neighbours={neighbours} onOpen={onOpen} />
      {examples.length > 0 && (
        <section>
          <h3>Questions</h3>
          <ul className="map-examples">
            {examples.slice(0, 12).map((example) => (
              <li key={example}>
                <a href={hashOf('ask', { q: example })} aria-label={`Ask this: ${example}`} className="box">
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

interface ConnectionsProps {
  readonly id: string;
  readonly neighbours: readonly Neighbour[];
  readonly onOpen: (id: string) => void;
}

const FIRST = 50;

/** Objects connected to this object, grouped by kind of connection (edge). */
function Connections({ id, neighbours, onOpen }: ConnectionsProps) {
  const groups: readonly (readonly [title: string, of: readonly Neighbour[]])[] = [
    [
      'Edges',
      neighbours.filter(({ connection }) => connection.kind !== 'text' && connection.kind !== 'figure'),
    ],
    ['Text', neighbours.filter(({ connection }) => connection.kind === 'text')],
    ['Metrics', neighbours.filter(({ connection }) => connection.kind === 'figure')],
  ];
  return groups.map(([title, of]) =>
    of.length === 0 ? null : (
      <ConnectionGroup key={`${id} ${title}`} id={id} title={title} of={of} onOpen={onOpen} />
    ),
  );
}

interface ConnectionGroupProps {
  readonly id: string;
  readonly title: string;
  readonly of: readonly Neighbour[];
  readonly onOpen: (id: string) => void;
}

function ConnectionGroup({ id, title, of, onOpen }: ConnectionGroupProps) {
  const [most, setMost] = useState(FIRST);
  return (
    <section>
      <CountedTitle title={title} count={of.length} />
      <ul className="map-connections">
        {of.slice(0, most).map(({ connection, id: other, name, kind }) => (
          <li key={`${connection.id} ${other}`}>
            <button type="button" className="map-list-row" onClick={() => onOpen(other)}>
              <Shape kind={kind} />
              <span className="map-list-name">{name}</span>
              <span className="map-connection-words">{wordsOf(connection, id)}</span>
              {connection.deprecated !== null && <span className="tag">deprecated</span>}
            </button>
            {connection.description !== null && <p className="map-about">{connection.description}</p>}
          </li>
        ))}
      </ul>
      <MoreButton left={of.length - most} onMore={() => setMost(most + 500)} />
    </section>
  );
}

/** Describes a connection as seen from the object `id`; empty for connections to facets and metrics. */
function wordsOf({ kind, label, source, on }: Connection, id: string): string {
  switch (kind) {
    case 'to_one':
      return `${label}: ${source === id ? 'many to one' : 'one to many'} (${on})`;
    case 'one_to_one':
      return `${label}: one to one (${on})`;
    case 'across':
      return `${label}: many to many (by ${on})`;
    case 'text':
    case 'figure':
      return '';
  }
}
