import type cytoscape from 'cytoscape';
import { type KeyboardEvent, type RefObject, useEffect, useId, useRef } from 'react';
import { watchDark } from '../../../shell/theme.js';
import type { ViewerMark } from '../graph/difference.js';
import { MARK_SIGNS } from '../words.js';
import type { DrawnPicture, MapSide } from '../worker/protocol.js';
import { DIRECTIONS } from './arrow-keys.js';
import { MapCanvas } from './canvas.js';

export interface PictureProps {
  readonly drawn: DrawnPicture;
  /** The caller to whom the picture belongs in a comparison; null if there is only one caller. */
  readonly side: MapSide | null;
  readonly title: string;
  /** The node at the keyboard position. */
  readonly here: string | null;
  /** The thing that is open in the panel. */
  readonly open: string | null;
  readonly onHere: (id: string | null) => void;
  readonly onOpen: (id: string) => void;
  /** Goes one step back: closes the panel, or leaves a cluster. */
  readonly onBack: () => void;
  readonly onSearch: () => void;
  /** Gives access to the canvas for buttons elsewhere and for the other picture of a comparison. */
  readonly canvas: RefObject<MapCanvas | null>;
  readonly onMoved?: (() => void) | undefined;
}

/** Map as a picture: a canvas for mouse and touch, with keyboard control and descriptions for screen readers. */
export function Picture(props: PictureProps) {
  const { drawn, side, title, here, open, canvas } = props;
  const frame = useRef<HTMLDivElement>(null);
  const latest = useRef(props);
  latest.current = props;
  const help = useId();
  useEffect(() => {
    if (frame.current === null) return;
    const made = new MapCanvas(frame.current);
    canvas.current = made;
    made.cy.on('tap', 'node', ({ target }) => {
      latest.current.onHere(target.id());
      latest.current.onOpen(target.id());
    });
    made.cy.on('viewport', () => latest.current.onMoved?.());
    const sizes = new ResizeObserver(() => made.resize());
    sizes.observe(frame.current);
    const unwatch = watchDark(() => made.recolour());
    return () => {
      unwatch();
      sizes.disconnect();
      canvas.current = null;
      made.stop();
    };
  }, [canvas]);
  useEffect(() => canvas.current?.draw(elementsOf(drawn, side)), [canvas, drawn, side]);
  // Redrawing a picture removes its marks.
  // biome-ignore lint/correctness/useExhaustiveDependencies: `drawn` only triggers the effect
  useEffect(() => canvas.current?.goTo(here), [canvas, here, drawn]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: as above
  useEffect(() => canvas.current?.open(open), [canvas, open, drawn]);
  return (
    <div className="map-picture">
      <p id={help} className="hidden">
        Arrow keys move along the edges, Enter opens what is there, Escape goes back, plus and minus zoom, 0
        shows all, and the stroke searches. The list beside the picture has the same things.
      </p>
      <div
        ref={frame}
        className="map-canvas"
        role="application"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it handles keys, as its description says
        tabIndex={0}
        aria-label={title}
        aria-describedby={help}
        onKeyDown={(event) => onKey(event, latest.current)}
      />
    </div>
  );
}

function onKey(event: KeyboardEvent, { here, canvas, onHere, onOpen, onBack, onSearch }: PictureProps): void {
  const picture = canvas.current;
  if (picture === null || event.ctrlKey || event.metaKey || event.altKey) return;
  const direction = DIRECTIONS.find((d) => d === event.key);
  if (direction !== undefined) onHere(picture.next(direction) ?? here);
  else if (event.key === 'Enter' && here !== null) onOpen(here);
  else if (event.key === 'Escape') onBack();
  else if (event.key === '+' || event.key === '=') picture.zoom(true);
  else if (event.key === '-') picture.zoom(false);
  else if (event.key === '0') picture.fit();
  else if (event.key === '/') onSearch();
  else return;
  event.preventDefault();
}

/** Up to this number of nodes, all edges show names; above it, only those of the current node do. */
const MOST_NAMED = 30;

/** Elements for cytoscape to draw, for a single caller or for one of two. */
function elementsOf(drawn: DrawnPicture, side: MapSide | null): cytoscape.ElementDefinition[] {
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

function classOf(mark: ViewerMark, isSeen: boolean, side: MapSide): string {
  if (!isSeen) return 'absent';
  if (mark === 'differs') return 'differs';
  return mark === side ? 'own' : '';
}
