import { changeOf, shownFigure } from './figure.js';
import type { Tile } from './plot.js';
import { shownChange } from './table.js';

/** Figures that stand by themselves. */
export function Tiles({ tiles }: { readonly tiles: readonly Tile[] }) {
  return (
    <ul className="tiles">
      {tiles.map(({ figure, now, before }) => {
        const change = before === null ? null : changeOf(now, before.value);
        return (
          <li key={figure.name}>
            <span className="tile-name">{figure.name}</span>
            <span className="tile-figure">{shownFigure(now, figure.format) || '—'}</span>
            {before !== null && (
              <span className="tile-before">
                {change === null ? '' : `${shownChange(change)} · `}before{' '}
                {shownFigure(before.value, figure.format) || '—'}
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}
