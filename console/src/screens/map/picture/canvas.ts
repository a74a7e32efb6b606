import cytoscape from 'cytoscape';
import { paletteOf, styleOf } from './style.js';

/** Maximum zoom when fitting the whole picture: higher on a wall display than on a desk. */
const MOST_FITTED = { desk: 1.3, wall: 2.2 };
const STEP = 1.25;

/**
 * Id of the style element that cytoscape would add to the page, which the page's content security policy blocks. It
 * adds none if an element with this id exists; the only rule it would contain is in map.css.
 */
const OWN_STYLE = '__________cytoscape_stylesheet';

/** A picture on a canvas, with the operations for keys and buttons. */
export class MapCanvas {
  readonly cy: cytoscape.Core;
  readonly #frame: HTMLElement;
  #here: string | null = null;
  /** True if the user has moved the picture, which is then no longer fitted automatically. */
  #isMoved = false;

  constructor(frame: HTMLElement) {
    this.#frame = frame;
    if (document.getElementById(OWN_STYLE) === null)
      document.head.append(Object.assign(document.createElement('meta'), { id: OWN_STYLE }));
    this.cy = cytoscape({
      container: frame,
      style: styleOf(paletteOf(frame)),
      minZoom: 0.05,
      maxZoom: 4,
      boxSelectionEnabled: false,
      autounselectify: true,
    });
    this.cy.on('scrollzoom pinchzoom dragpan', () => {
      this.#isMoved = true;
    });
  }

  /** Draws `elements` at their given positions and fits all of them into view. */
  draw(elements: readonly cytoscape.ElementDefinition[]): void {
    this.cy.batch(() => {
      this.cy.elements().remove();
      this.cy.add([...elements]);
    });
    this.fit();
  }

  recolour(): void {
    this.cy.style(styleOf(paletteOf(this.#frame)));
  }

  resize(): void {
    if (this.#isMoved) this.cy.resize();
    else this.fit();
  }

  fit(): void {
    this.#isMoved = false;
    this.cy.resize();
    this.cy.maxZoom(this.cy.width() > 1800 ? MOST_FITTED.wall : MOST_FITTED.desk);
    this.cy.fit(undefined, 28);
    this.cy.maxZoom(4);
  }

  zoom(closer: boolean): void {
    this.#isMoved = true;
    const level = this.cy.zoom() * (closer ? STEP : 1 / STEP);
    this.cy.zoom({ level, renderedPosition: { x: this.cy.width() / 2, y: this.cy.height() / 2 } });
  }

  /** Marks the node at the keyboard position and centres it if it is out of view. */
  goTo(id: string | null): void {
    this.#here = id;
    this.cy.batch(() => {
      this.cy.elements().removeClass('here near');
      if (id === null) return;
      const node = this.cy.getElementById(id);
      node.addClass('here');
      node.connectedEdges().addClass('near');
    });
    const node = this.cy.getElementById(id ?? '');
    if (node.nonempty() && !this.#isInSight(node)) this.cy.center(node);
  }

  /** Marks the object that is open in the panel. */
  open(id: string | null): void {
    this.cy.batch(() => {
      this.cy.nodes().removeClass('open');
      this.cy.getElementById(id ?? '').addClass('open');
    });
  }

  /** Returns the next node in `direction`, preferably one connected by an edge; the most central node at the start. */
  next(direction: Direction): string | null {
    const here = this.cy.getElementById(this.#here ?? '');
    if (here.empty()) return this.#middle();
    const placeOf = (node: cytoscape.NodeSingular) => ({ id: node.id(), ...node.position() });
    const from = placeOf(here);
    const near = here.neighborhood().nodes().map(placeOf);
    return towards(direction, from, near) ?? towards(direction, from, this.cy.nodes().map(placeOf));
  }

  stop(): void {
    this.cy.destroy();
  }

  /** Returns the node nearest to the centre of the view, where the arrow keys start. */
  #middle(): string | null {
    const { x1, x2, y1, y2 } = this.cy.extent();
    const distance = (node: cytoscape.NodeSingular): number =>
      Math.hypot(node.position('x') - (x1 + x2) / 2, node.position('y') - (y1 + y2) / 2);
    const nodes = this.cy.nodes().toArray();
    nodes.sort((a, b) => distance(a) - distance(b));
    return nodes[0]?.id() ?? null;
  }

  #isInSight(node: cytoscape.CollectionReturnValue): boolean {
    const { x1, x2, y1, y2 } = node.renderedBoundingBox();
    return x1 >= 0 && y1 >= 0 && x2 <= this.cy.width() && y2 <= this.cy.height();
  }
}

interface NodePosition {
  readonly id: string;
  /** Position; x grows to the right and y downwards. */
  readonly x: number;
  readonly y: number;
}

export const DIRECTIONS = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'] as const;
type Direction = (typeof DIRECTIONS)[number];

const VECTORS: Readonly<Record<Direction, readonly [number, number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
};

/**
 * Returns the node to which an arrow key leads: the best of `others` in that direction, preferring near ones. Null if
 * no node lies in that direction.
 */
export function towards(
  direction: Direction,
  from: NodePosition,
  others: readonly NodePosition[],
): string | null {
  const [dx, dy] = VECTORS[direction];
  let best: { readonly id: string; readonly cost: number } | null = null;
  for (const { id, x, y } of others) {
    const [ox, oy] = [x - from.x, y - from.y];
    const distance = Math.hypot(ox, oy);
    const along = distance === 0 ? 0 : (ox * dx + oy * dy) / distance;
    if (along <= 0.05) continue;
    const cost = distance / along ** 2;
    if (best === null || cost < best.cost) best = { id, cost };
  }
  return best?.id ?? null;
}
