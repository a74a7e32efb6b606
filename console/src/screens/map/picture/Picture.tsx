import type cytoscape from 'cytoscape';
import { type KeyboardEvent, type RefObject, useEffect, useId, useRef } from 'react';
import { watchDark } from '../../../shell/theme.js';
import type { ViewerMark } from '../graph/difference.js';
import { MARK_SIGNS } from '../words.js';
import type { DrawnPicture, MapSide } from '../worker/protocol.js';
import { DIRECTIONS, MapCanvas } from './canvas.js';

interface PictureProps {
  readonly drawn: DrawnPicture;
  /** The caller to whom the picture belongs in a comparison; null if there is only one caller. */
  readonly side: MapSide | null;
  readonly title: string;
  /** Id of the node at the keyboard position; null if no node is selected. */
  readonly here: string | null;
  /** Id of the object that is open in the panel; null if the panel is closed. */
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
  // Redrawing removes the marks of the current and the open node, so they are set again.
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

/** Maximum number of nodes for which all edges show names; in larger pictures, only edges at the current node do. */
const MOST_NAMED = 30;

/** Returns the elements for cytoscape as the caller of `side` sees them; `side` is null if there is only one caller. */
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

interface PicturesProps
  extends Pick<PictureProps, 'drawn' | 'here' | 'open' | 'onHere' | 'onOpen' | 'onBack' | 'onSearch'> {
  readonly first: string;
  /** Name of the second caller; null if there is only one. */
  readonly second: string | null;
}

/** One picture, or two pictures side by side that zoom and move together. */
export function Pictures({ first, second, ...shared }: PicturesProps) {
  const left = useRef<MapCanvas | null>(null);
  const right = useRef<MapCanvas | null>(null);
  const buttons = <ZoomButtons canvas={left} />;
  if (second === null)
    return (
      <div className="map-pictures">
        <figure>
          <Picture {...shared} side={null} title={`Map of what ${first} sees`} canvas={left} />
          {buttons}
        </figure>
      </div>
    );
  return (
    <div className="map-pictures is-two">
      <figure>
        <figcaption>{first}</figcaption>
        <Picture
          {...shared}
          side="first"
          title={`What ${first} sees`}
          canvas={left}
          onMoved={() => follow(left.current, right.current)}
        />
        {buttons}
      </figure>
      <figure>
        <figcaption>{second}</figcaption>
        <Picture
          {...shared}
          side="second"
          title={`What ${second} sees`}
          canvas={right}
          onMoved={() => follow(right.current, left.current)}
        />
      </figure>
    </div>
  );
}

/** Moves the other picture to the same zoom and position. */
function follow(moved: MapCanvas | null, other: MapCanvas | null): void {
  if (moved === null || other === null) return;
  const [zoom, pan] = [moved.cy.zoom(), moved.cy.pan()];
  const at = other.cy.pan();
  if (other.cy.zoom() === zoom && at.x === pan.x && at.y === pan.y) return;
  other.cy.viewport({ zoom, pan: { ...pan } });
}

function ZoomButtons({ canvas }: { readonly canvas: RefObject<MapCanvas | null> }) {
  return (
    <fieldset className="map-zoom">
      <legend className="hidden">Zoom</legend>
      <button
        type="button"
        aria-label="Zoom in"
        title="Zoom in (+)"
        onClick={() => canvas.current?.zoom(true)}
      >
        <Sign path="M8 3v10M3 8h10" />
      </button>
      <button
        type="button"
        aria-label="Zoom out"
        title="Zoom out (-)"
        onClick={() => canvas.current?.zoom(false)}
      >
        <Sign path="M3 8h10" />
      </button>
      <button type="button" aria-label="Show all" title="Show all (0)" onClick={() => canvas.current?.fit()}>
        <Sign path="M2 6V2h4M10 2h4v4M14 10v4h-4M6 14H2v-4" />
      </button>
    </fieldset>
  );
}

function Sign({ path }: { readonly path: string }) {
  return (
    <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={path} fill="none" stroke="currentColor" strokeWidth="1.6" />
    </svg>
  );
}
