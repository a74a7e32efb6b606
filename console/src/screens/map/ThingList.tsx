import type { ViewerMark } from './graph/difference.js';
import { KINDS, type ThingKind } from './graph/model.js';
import type { PictureNode } from './graph/picture.js';
import { Shape } from './picture/Legend.js';
import { KIND_WORDS, MARK_SIGNS, markWords } from './words.js';

export interface ThingListProps {
  readonly nodes: readonly PictureNode[];
  readonly open: string | null;
  readonly onOpen: (id: string) => void;
  /** Names of the two callers compared; null if there is only one. */
  readonly callers: readonly [first: string, second: string] | null;
}

const GROUPS: readonly (ThingKind | 'cluster')[] = ['cluster', ...KINDS];

export function ThingList({ nodes, open, onOpen, callers }: ThingListProps) {
  return (
    <nav className="map-list" aria-label="Things in the picture">
      {GROUPS.map((kind) => {
        const own = nodes.filter((node) => node.kind === kind);
        if (own.length === 0) return null;
        own.sort((a, b) => (a.label < b.label ? -1 : 1));
        return (
          <section key={kind}>
            <h3>
              {kind === 'cluster' ? 'clusters' : KIND_WORDS[kind].many}{' '}
              <span className="map-count">{own.length}</span>
            </h3>
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
                    {node.deprecated && <span className="map-tag">deprecated</span>}
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

export function MarkSign({
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
