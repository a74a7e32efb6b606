// biome-ignore-all lint/a11y/useSemanticElements: an HTML table would need all rows, but only some are rendered.
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid handles the keyboard as a whole.
import { type KeyboardEvent, useEffect, useId } from 'react';
import type { MatrixPage, Sight } from '../../api/admin-types.js';
import { useRowWindow } from '../../parts/grid/grid-data.js';
import { shortName } from '../../parts/load/format.js';
import { VISIBILITY_WORDS } from '../../parts/Visibility.js';
import type { ExplainedCell } from './Explain.js';
import { type MatrixState, rowAt } from './matrix-filter.js';

interface MatrixGridProps {
  readonly state: MatrixState;
  readonly first: MatrixPage;
  readonly chosen: ExplainedCell | null;
  readonly onChoose: (cell: ExplainedCell) => void;
}

const ROW = 30;
/** Sizes in pixels. Narrow cells show only a sign below vertical names; wide cells also show a word. */
const NARROW = { cell: 46, head: 118 } as const;
const ROOMY = { least: 112, most: 180, head: 38 } as const;

/** Matrix that renders only the rows in view. Arrow keys move between cells; Enter explains one. */
export function MatrixGrid({ state, first, chosen, onChoose }: MatrixGridProps) {
  const { pages, want } = state;
  const id = useId();
  const { subjects, row_count: rows } = first;
  const { scroller, width, active, setActive, moveByKey, onScroll, shown } = useRowWindow({
    rows,
    columns: subjects.length,
    rowHeight: ROW,
    headHeight: (wide) => cellSizeFor(wide, subjects.length).head,
  });
  const { isRoomy, cell, head } = cellSizeFor(width, subjects.length);
  useEffect(() => want(shown.first, shown.end));
  const choose = (row: number, column: number): void => {
    const found = rowAt(pages, row);
    const chain = subjects[column];
    if (found !== null && chain !== undefined) onChoose({ object: `${found.object}.${found.column}`, chain });
  };
  const onKey = (event: KeyboardEvent): void => {
    const next = moveByKey(event);
    const element = scroller.current;
    if (next !== null && element !== null) {
      const left = next.column * cell;
      const room = width - nameWidthFor(width);
      if (left < element.scrollLeft) element.scrollLeft = left;
      else if (left + cell > element.scrollLeft + room) element.scrollLeft = left + cell - room;
    } else if (event.key === 'Enter') {
      event.preventDefault();
      choose(active.row, active.column);
    }
  };
  const drawn = Array.from({ length: Math.max(0, shown.end - shown.first) }, (_, i) => shown.first + i);
  const place = {
    gridTemplateColumns: `${nameWidthFor(width)}px repeat(${subjects.length}, ${cell}px) 1fr`,
  };
  return (
    <div
      ref={scroller}
      className={`grid-frame matrix${isRoomy ? ' matrix-roomy' : ''}`}
      role="grid"
      aria-label="Who sees what"
      aria-rowcount={rows + 1}
      aria-colcount={subjects.length + 1}
      aria-activedescendant={`${id}-${active.row}-${active.column}`}
      tabIndex={0}
      onKeyDown={onKey}
      onScroll={onScroll}
    >
      <div className="matrix-head" role="row" aria-rowindex={1} style={{ ...place, height: head }}>
        <div role="columnheader" className="matrix-corner">
          column
        </div>
        {subjects.map((chain) => (
          <div key={chain.join(' ')} role="columnheader" className="matrix-subject" title={chain.join(' → ')}>
            <span>{chain.join(' → ')}</span>
          </div>
        ))}
      </div>
      <div className="grid-body matrix-body" role="presentation" style={{ height: shown.height }}>
        <div role="rowgroup" className="grid-rows" style={{ transform: `translateY(${shown.top}px)` }}>
          {drawn.map((index) => {
            const row = rowAt(pages, index);
            const isNew = row !== null && rowAt(pages, index - 1)?.object !== row.object;
            return (
              <div
                key={index}
                role="row"
                aria-rowindex={index + 2}
                className={`matrix-row${isNew ? ' matrix-first' : ''}`}
                style={{ ...place, height: ROW }}
              >
                <div
                  role="rowheader"
                  className="matrix-name"
                  title={row === null ? '' : `${row.object}.${row.column}`}
                >
                  {row === null ? (
                    '…'
                  ) : (
                    <>
                      <span className="matrix-object">{shortName(row.object)}.</span>
                      <span className="matrix-column">{row.column}</span>
                      {row.label !== null && <span className="tag matrix-label">{row.label}</span>}
                    </>
                  )}
                </div>
                {subjects.map((chain, column) => (
                  <MatrixCell
                    key={chain.join(' ')}
                    id={`${id}-${index}-${column}`}
                    sight={row?.sees[column] ?? null}
                    isNarrowed={row?.some_rows[column] ?? false}
                    isActive={index === active.row && column === active.column}
                    isChosen={
                      row !== null &&
                      chosen?.object === `${row.object}.${row.column}` &&
                      chosen.chain.join(' ') === chain.join(' ')
                    }
                    onClick={() => {
                      setActive({ row: index, column });
                      choose(index, column);
                    }}
                  />
                ))}
              </div>
            );
          })}
        </div>
      </div>
    </div>
  );
}

/** Width of the name column in pixels. */
function nameWidthFor(width: number): number {
  return Math.round(Math.min(340, Math.max(150, width * 0.28)));
}

/** Returns the sizes in pixels of the cells and the column headers, for the given number of subjects. */
function cellSizeFor(width: number, subjects: number) {
  const each = (width - nameWidthFor(width)) / Math.max(1, subjects);
  return each < ROOMY.least
    ? { isRoomy: false, ...NARROW }
    : { isRoomy: true, cell: Math.min(ROOMY.most, Math.floor(each)), head: ROOMY.head };
}

interface MatrixCellProps {
  readonly id: string;
  readonly sight: Sight | null;
  /** True if a row filter limits the column to some rows. */
  readonly isNarrowed: boolean;
  readonly isActive: boolean;
  readonly isChosen: boolean;
  readonly onClick: () => void;
}

function MatrixCell({ id, sight, isNarrowed, isActive, isChosen, onClick }: MatrixCellProps) {
  const words = sight === null ? null : VISIBILITY_WORDS[sight];
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter on the grid does the same.
    <div
      id={id}
      role="gridcell"
      aria-selected={isChosen}
      className={`matrix-cell${isActive ? ' matrix-active' : ''}${isChosen ? ' matrix-chosen' : ''}`}
      title={isNarrowed ? `${words?.word}, some rows` : words?.word}
      onClick={onClick}
    >
      {words !== null && (
        <span className={`matrix-mark ${words.tone}`}>
          <span aria-hidden="true">{words.sign}</span>
          <span className="matrix-word">{words.word}</span>
          {isNarrowed && (
            <span className="matrix-some">
              <span aria-hidden="true">▽</span>
              <span className="hidden">, some rows</span>
            </span>
          )}
        </span>
      )}
    </div>
  );
}
