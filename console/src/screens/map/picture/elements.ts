import type cytoscape from 'cytoscape';
import type { Mark } from '../graph/difference.js';
import { MARK_SIGNS } from '../words.js';
import type { Drawn, Side } from '../worker/protocol.js';

/** Nodes among which the names of edges can be read; among more, those of the edges at hand are shown. */
const MOST_NAMED = 30;

/** What cytoscape draws for one caller, or for one of two. */
export function elementsOf(drawn: Drawn, side: Side | null): cytoscape.ElementDefinition[] {
  const seen = new Set(side === null ? drawn.nodes.map((n) => n.id) : drawn.seen[side]);
  const areNamed = drawn.nodes.length <= MOST_NAMED || drawn.edges.some((e) => e.kind === 'between');
  const nodes = drawn.nodes.map((node): cytoscape.ElementDefinition => {
    const [x, y] = drawn.places[node.id] ?? [0, 0];
    const sign = side === null ? '' : MARK_SIGNS[node.mark];
    return {
      group: 'nodes',
      data: { ...node, label: sign === '' ? node.label : `${sign} ${node.label}` },
      position: { x, y },
      classes: side === null ? '' : classOf(node.mark, seen.has(node.id), side),
    };
  });
  const edges = drawn.edges.map((edge): cytoscape.ElementDefinition => {
    const isSeen =
      seen.has(edge.source) && seen.has(edge.target) && (edge.mark === 'same' || edge.mark === side);
    return {
      group: 'edges',
      data: { ...edge, id: `edge ${edge.id}`, label: areNamed ? edge.label : '', name: edge.label },
      classes: side === null ? '' : classOf(edge.mark === 'differs' ? 'same' : edge.mark, isSeen, side),
    };
  });
  return [...nodes, ...edges];
}

function classOf(mark: Mark, isSeen: boolean, side: Side): string {
  if (!isSeen) return 'absent';
  if (mark === 'differs') return 'differs';
  return mark === side ? 'own' : '';
}
