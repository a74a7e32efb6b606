import { KINDS, type MapObjectKind } from '../graph/model.js';
import { KIND_WORDS, MARK_SIGNS } from '../words.js';
import type { MapCounts } from '../worker/protocol.js';

interface LegendProps {
  readonly counts: MapCounts | null;
  readonly kinds: ReadonlySet<MapObjectKind>;
  readonly onKinds: (kinds: ReadonlySet<MapObjectKind>) => void;
}

/** Legend of the shapes; each entry is a switch that shows or hides its kind. */
export function Legend({ counts, kinds, onKinds }: LegendProps) {
  const toggle = (kind: MapObjectKind): void => {
    const next = new Set(kinds);
    if (!next.delete(kind)) next.add(kind);
    onKinds(next);
  };
  return (
    <fieldset className="map-legend">
      <legend className="hidden">Kinds that are shown</legend>
      {KINDS.map((kind) => (
        <label key={kind} className={kinds.has(kind) ? '' : 'is-off'}>
          <input type="checkbox" checked={kinds.has(kind)} onChange={() => toggle(kind)} />
          <Shape kind={kind} />
          {KIND_WORDS[kind].many}
          {counts !== null && <span className="map-count">{counts[kind].toLocaleString('en')}</span>}
        </label>
      ))}
    </fieldset>
  );
}

const OUTLINES: Readonly<Record<MapObjectKind, string>> = {
  entity: 'M5 3h14a3 3 0 0 1 3 3v4a3 3 0 0 1-3 3H5a3 3 0 0 1-3-3V6a3 3 0 0 1 3-3z',
  bridge: 'M12 1l7 7-7 7-7-7z',
  facet: 'M4 1h12l4 4v10H4zM16 1v4h4',
  metric: 'M7 3h10l5 5-5 5H7L2 8z',
};

export function Shape({ kind }: { readonly kind: MapObjectKind }) {
  return (
    <svg
      className={`map-shape is-${kind}`}
      viewBox="0 0 24 16"
      width="24"
      height="16"
      aria-hidden="true"
      focusable="false"
    >
      <path d={OUTLINES[kind]} />
    </svg>
  );
}

/** Legend of the signs used in a comparison. */
export function MarkLegend({ first, second }: { readonly first: string; readonly second: string }) {
  return (
    <ul className="map-marks">
      <li>
        <span aria-hidden="true">{MARK_SIGNS.first}</span> only {first} sees it
      </li>
      <li>
        <span aria-hidden="true">{MARK_SIGNS.second}</span> only {second} sees it
      </li>
      <li>
        <span aria-hidden="true">{MARK_SIGNS.differs}</span> not seen alike
      </li>
      <li>
        <span className="map-dashed" aria-hidden="true" /> dashed: not seen by this one
      </li>
    </ul>
  );
}
