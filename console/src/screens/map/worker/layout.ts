import cytoscape from 'cytoscape';
import fcose from 'cytoscape-fcose';
import { packBoxes } from '../graph/model.js';
import type { Picture } from '../graph/picture.js';

cytoscape.use(fcose);

type NodePositions = Readonly<Record<string, readonly [x: number, y: number]>>;

/** Options of fcose that cytoscape's layout types do not declare. */
interface FcoseOptions extends cytoscape.BaseLayoutOptions {
  readonly name: 'fcose';
  readonly [option: string]: unknown;
}

const OPTIONS: FcoseOptions = {
  name: 'fcose',
  quality: 'default',
  animate: false,
  randomize: true,
  nodeSeparation: 90,
  idealEdgeLength: (edge: cytoscape.EdgeSingular) => Number(edge.data('room')),
  nodeRepulsion: () => 9000,
  packComponents: false,
};

/**
 * Computes the positions of the nodes in a picture. Each connected part is laid out separately, then the parts are
 * placed side by side. The same picture always has the same layout, because `Math.random` of this thread is replaced
 * with a seeded generator while fcose runs.
 *
 * @param ratio width of the frame divided by its height
 */
export function placesOf({ nodes, edges }: Picture, ratio: number): NodePositions {
  const counts = new Map<string, number>();
  for (const end of edges.flatMap((e) => [e.source, e.target])) counts.set(end, (counts.get(end) ?? 0) + 1);
  const connections = (id: string): number => counts.get(id) ?? 0;
  const cy = cytoscape({
    headless: true,
    styleEnabled: true,
    style: [{ selector: 'node', style: { width: 'data(width)', height: 'data(height)' } }],
    elements: {
      // The name below a bridge's diamond also takes up space.
      nodes: nodes.map(({ id, width, height, kind }) => ({
        data: { id, width: kind === 'bridge' ? 70 : width, height: kind === 'bridge' ? 54 : height },
      })),
      edges: edges.map(({ id, source, target, kind, label }) => ({
        data: {
          id: `edge ${id}`,
          source,
          target,
          // A node with many neighbours needs space around it for all of them.
          room:
            (kind === 'across' ? 90 : 80 + label.length * 5) +
            7 * Math.max(connections(source), connections(target)),
        },
      })),
    },
  });
  const random = Math.random;
  Math.random = seededRandom(nodes.length);
  try {
    const parts = cy.elements().components();
    for (const part of parts) layOut(part, ratio >= 1);
    const boxes = parts.map((part) => part.boundingBox());
    const corners = packBoxes(
      boxes.map(({ w, h }) => ({ width: w, height: h })),
      ratio,
    );
    for (const [i, part] of parts.entries()) {
      const [x, y] = corners[i] ?? [0, 0];
      const { x1 = 0, y1 = 0 } = boxes[i] ?? {};
      part.nodes().shift({ x: x - x1, y: y - y1 });
    }
  } finally {
    Math.random = random;
  }
  const places = cy.nodes().map((node) => {
    const { x, y } = node.position();
    return [node.id(), [Math.round(x), Math.round(y)] as const] as const;
  });
  cy.destroy();
  return Object.fromEntries(places);
}

/** Lays out one part, rotated by 90° if it then fits the shape of the frame better. */
function layOut(part: cytoscape.CollectionReturnValue, wide: boolean): void {
  if (part.nodes().length === 1) return;
  part.layout(OPTIONS).run();
  const { w, h } = part.nodes().boundingBox();
  if (w >= h === wide) return;
  for (const node of part.nodes().toArray()) {
    const { x, y } = node.position();
    node.position({ x: y, y: -x });
  }
}

/** Returns a generator of numbers from 0 to below 1 that are determined by the seed (mulberry32). */
function seededRandom(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
