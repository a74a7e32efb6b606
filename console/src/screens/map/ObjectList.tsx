import type { ViewerMark } from './graph/difference.js';
import { KINDS, type MapObjectKind } from './graph/model.js';
import type { PictureNode } from './graph/picture.js';
import { Shape } from './picture/Legend.js';
import { KIND_WORDS, MARK_SIGNS, markWords, sightWord } from './words.js';
import type { MapChanges } from './worker/protocol.js';

interface ObjectListProps {
  readonly nodes: readonly PictureNode[];
  readonly open: string | null;
  readonly onOpen: (id: string) => void;
  /** Names of the two callers compared; null if there is only one. */
  readonly callers: readonly [first: string, second: string] | null;
}

const GROUPS: readonly (MapObjectKind | 'cluster')[] = ['cluster', ...KINDS];

export function ObjectList({ nodes, open, onOpen, callers }: ObjectListProps) {
  return (
    <nav className="map-list" aria-label="Things in the picture">
      {GROUPS.map((kind) => {
        const own = nodes.filter((node) => node.kind === kind);
        if (own.length === 0) return null;
        own.sort((a, b) => (a.label < b.label ? -1 : 1));
        return (
          <section key={kind}>
            <CountedTitle
              title={kind === 'cluster' ? 'clusters' : KIND_WORDS[kind].many}
              count={own.length}
            />
            <ul>
              {own.map((node) => (
                <li key={node.id}>
                  <button
                    type="button"
                    aria-current={node.id === open}
                    className="map-list-row"
                    onClick={() => onOpen(node.id)}
                  >
                    {node.kind !== 'cluster' && <Shape kind={node.kind} />}
                    <span className="map-list-name">{node.label}</span>
                    {node.deprecated && <span className="tag">deprecated</span>}
                    {callers !== null && <MarkSign mark={node.mark} callers={callers} />}
                  </button>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </nav>
  );
}

function MarkSign({
  mark,
  callers,
}: {
  readonly mark: ViewerMark;
  readonly callers: readonly [string, string];
}) {
  if (mark === 'same') return null;
  return (
    <span className="map-mark" title={markWords(mark, ...callers)}>
      <span aria-hidden="true">{MARK_SIGNS[mark]}</span>
      <span className="hidden">{markWords(mark, ...callers)}</span>
    </span>
  );
}

interface DifferencesProps {
  readonly changes: MapChanges;
  readonly callers: readonly [first: string, second: string];
  readonly open: string | null;
  readonly onOpen: (id: string) => void;
  readonly onMore: () => void;
}

export function Differences({ changes: { total, first }, callers, open, onOpen, onMore }: DifferencesProps) {
  return (
    <nav className="map-list map-differences" aria-label="Differences">
      <CountedTitle title="Differences" count={total} />
      {total === 0 && <p className="quiet">Both see the same map.</p>}
      <ul>
        {first.map(({ id, kind, name, mark, columns }) => (
          <li key={id}>
            <button
              type="button"
              aria-current={id === open}
              className="map-list-row"
              onClick={() => onOpen(id)}
            >
              <Shape kind={kind} />
              <span className="map-list-name">{name}</span>
              <MarkSign mark={mark} callers={callers} />
            </button>
            {mark === 'differs' ? (
              <ul className="map-change">
                {columns.slice(0, 6).map((column) => (
                  <li key={column.name}>
                    <b>{column.name}</b> {sightWord(column.first)} <span aria-hidden="true">│</span>
                    <span className="hidden">, the other</span> {sightWord(column.second)}
                  </li>
                ))}
                {columns.length > 6 && <li>{columns.length - 6} more columns</li>}
              </ul>
            ) : (
              <p className="map-change">{markWords(mark, ...callers)}</p>
            )}
          </li>
        ))}
      </ul>
      <MoreButton left={total - first.length} onMore={onMore} />
    </nav>
  );
}

/** Title of a list, with the number of its elements. */
export function CountedTitle({ title, count }: { readonly title: string; readonly count: number }) {
  return (
    <h3>
      {title} <span className="map-count">{count.toLocaleString('en')}</span>
    </h3>
  );
}

/** Button that shows more of a list; renders nothing if the whole list is shown. */
export function MoreButton({ left, onMore }: { readonly left: number; readonly onMore: () => void }) {
  if (left <= 0) return null;
  return (
    <button type="button" onClick={onMore}>
      {`${left.toLocaleString('en')} more`}
    </button>
  );
}
