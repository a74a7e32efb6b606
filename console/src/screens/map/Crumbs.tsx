import type { Drawn } from './worker/protocol.js';

export interface CrumbsProps {
  readonly drawn: Drawn;
  /** The cluster or thing whose part of the map this is. */
  readonly within: string | null;
  readonly onAll: () => void;
}

/** Where on the map one is, and how much of it is drawn. */
export function Crumbs({ drawn, within, onAll }: CrumbsProps) {
  const { nodes, inScope, total } = drawn;
  const isOverview = nodes.some((node) => node.kind === 'cluster');
  return (
    <p className="map-crumbs" role="status">
      {within !== null && (
        <button type="button" className="plain" onClick={onAll}>
          ← All
        </button>
      )}
      <span>{wordsOf(within, isOverview, nodes.length, inScope, total)}</span>
    </p>
  );
}

function wordsOf(
  within: string | null,
  isOverview: boolean,
  drawn: number,
  inScope: number,
  total: number,
): string {
  const count = (n: number): string => n.toLocaleString('en');
  if (isOverview) return `${count(total)} things in ${count(drawn)} clusters: open one, or search`;
  const left = inScope > drawn ? `; ${count(inScope - drawn)} more are not drawn: search finds them` : '';
  if (within === null)
    return drawn === total ? `all ${count(total)} things` : `${count(drawn)} of ${count(total)} things`;
  return `${count(drawn)} of ${count(total)} things${left}`;
}
