import { type RefObject, useRef } from 'react';
import type { MapCanvas } from './canvas.js';
import { Picture, type PictureProps } from './Picture.js';

export interface PicturesProps
  extends Pick<PictureProps, 'drawn' | 'here' | 'open' | 'onHere' | 'onOpen' | 'onBack' | 'onSearch'> {
  readonly first: string;
  /** Name of the second caller; null if there is only one. */
  readonly second: string | null;
}

/** One picture, or two side by side that move together. */
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

/** Shows the same section in the other picture. */
function follow(moved: MapCanvas | null, other: MapCanvas | null): void {
  if (moved === null || other === null) return;
  const [zoom, pan] = [moved.cy.zoom(), moved.cy.pan()];
  const at = other.cy.pan();
  if (other.cy.zoom() === zoom && at.x === pan.x && at.y === pan.y) return;
  other.cy.viewport({ zoom, pan: { ...pan } });
}

interface ZoomButtonsProps {
  readonly canvas: RefObject<MapCanvas | null>;
}

function ZoomButtons({ canvas }: ZoomButtonsProps) {
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
