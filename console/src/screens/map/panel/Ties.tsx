import { useState } from 'react';
import type { Tie } from '../graph/model.js';
import { Shape } from '../picture/Legend.js';
import type { Neighbour } from '../worker/protocol.js';

export interface TiesProps {
  readonly id: string;
  readonly neighbours: readonly Neighbour[];
  readonly onOpen: (id: string) => void;
}

const FIRST = 50;

/** What a thing hangs together with, by the way it does. */
export function Ties({ id, neighbours, onOpen }: TiesProps) {
  const groups: readonly (readonly [title: string, of: readonly Neighbour[]])[] = [
    ['Edges', neighbours.filter(({ tie }) => tie.kind !== 'text' && tie.kind !== 'figure')],
    ['Text', neighbours.filter(({ tie }) => tie.kind === 'text')],
    ['Metrics', neighbours.filter(({ tie }) => tie.kind === 'figure')],
  ];
  return groups.map(([title, of]) =>
    of.length === 0 ? null : (
      <TieGroup key={`${id} ${title}`} id={id} title={title} of={of} onOpen={onOpen} />
    ),
  );
}

interface TieGroupProps {
  readonly id: string;
  readonly title: string;
  readonly of: readonly Neighbour[];
  readonly onOpen: (id: string) => void;
}

function TieGroup({ id, title, of, onOpen }: TieGroupProps) {
  const [most, setMost] = useState(FIRST);
  return (
    <section>
      <h3>
        {title} <span className="map-count">{of.length}</span>
      </h3>
      <ul className="map-ties">
        {of.slice(0, most).map(({ tie, id: other, name, kind }) => (
          <li key={`${tie.id} ${other}`}>
            <button type="button" className="map-list-row" onClick={() => onOpen(other)}>
              <Shape kind={kind} />
              <span className="map-list-name">{name}</span>
              <span className="map-tie-words">{wordsOf(tie, id)}</span>
              {tie.deprecated !== null && <span className="map-tag">deprecated</span>}
            </button>
            {tie.description !== null && <p className="map-about">{tie.description}</p>}
          </li>
        ))}
      </ul>
      {of.length > most && (
        <button type="button" onClick={() => setMost(most + 500)}>
          {`${(of.length - most).toLocaleString('en')} more`}
        </button>
      )}
    </section>
  );
}

/** How a tie looks from one of its ends. */
function wordsOf({ kind, label, source, on }: Tie, id: string): string {
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
    default: {
      const unknown: never = kind;
      return unknown;
    }
  }
}
