import { useRef } from 'react';
import type { Canvas } from './canvas.js';
import { Picture, type PictureProps } from './Picture.js';
import { ZoomButtons } from './ZoomButtons.js';

export interface PicturesProps
  extends Pick<PictureProps, 'drawn' | 'here' | 'open' | 'onHere' | 'onOpen' | 'onBack' | 'onSearch'> {
  readonly first: string;
  /** The second caller; null where there is one. */
  readonly second: string | null;
}

/** One picture, or two side by side that move together. */
export function Pictures({ first, second, ...shared }: PicturesProps) {
  const left = useRef<Canvas | null>(null);
  const right = useRef<Canvas | null>(null);
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

/** Shows of one picture what the other shows. */
function follow(moved: Canvas | null, other: Canvas | null): void {
  if (moved === null || other === null) return;
  const [zoom, pan] = [moved.cy.zoom(), moved.cy.pan()];
  const at = other.cy.pan();
  if (other.cy.zoom() === zoom && at.x === pan.x && at.y === pan.y) return;
  other.cy.viewport({ zoom, pan: { ...pan } });
}
