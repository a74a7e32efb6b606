import type { RefObject } from 'react';
import type { Canvas } from './canvas.js';

interface ZoomButtonsProps {
  readonly canvas: RefObject<Canvas | null>;
}

/** The picture nearer, farther, whole. */
export function ZoomButtons({ canvas }: ZoomButtonsProps) {
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
