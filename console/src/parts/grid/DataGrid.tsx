// biome-ignore-all lint/a11y/useSemanticElements: an HTML table would need all rows, but only some are rendered.
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid handles the keyboard as a whole.
import { type KeyboardEvent, type ReactNode, useId, useMemo } from 'react';
import {
  type GridCell,
  type GridData,
  type GridSort,
  isAmount,
  useRowWindow,
  widthsOf,
} from './grid-data.js';
import './grid.css';

interface DataGridProps {
  readonly label: string;
  readonly data: GridData;
  /** Changes when rows are added, since `data` itself stays the same object. */
  readonly version?: number;
  /** Called when a cell is chosen by Enter or a click. The grid never passes null for `row`. */
  readonly onChoose?: (row: number | null, column: number) => void;
  readonly chosen?: { readonly row: number | null; readonly column: number } | null;
  /** Content shown next to the name in a column header. */
  readonly headOf?: (column: number) => ReactNode;
  /** Sort order of the rows; null for their original order. */
  readonly sort?: GridSort | null;
  /** Called when the name of a column is clicked; if undefined, the rows cannot be sorted. */
  readonly onSort?: ((column: number) => void) | undefined;
}

const ROW = 28;
const CHARACTER = 7.4;

/** Table of any length that renders only the rows in view. Arrow, Page, Home and End keys move between cells. */
export function DataGrid(props: DataGridProps) {
  const { label, data, version = 0, onChoose, chosen, headOf, sort = null, onSort } = props;
  const id = useId();
  const { rows: count, columns } = data;
  const { scroller, active, setActive, moveByKey, onScroll, shown } = useRowWindow({
    rows: count,
    columns: columns.length,
    rowHeight: ROW,
    headHeight: () => ROW,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` is mutated when rows arrive.
  const widths = useMemo(() => widthsOf(data, CHARACTER), [data, version > 0]);
  const total = widths.reduce((sum, width) => sum + width, 0);
  const place = { gridTemplateColumns: widths.map((width) => `${width}px`).join(' '), minWidth: total };
  const onKey = (event: KeyboardEvent): void => {
    const next = moveByKey(event);
    if (next !== null) scrollToColumn(scroller.current, next.column, widths);
    else if (event.key === 'Enter' && count > 0) {
      event.preventDefault();
      onChoose?.(active.row, active.column);
    }
  };
  const rows = Array.from({ length: Math.max(0, shown.end - shown.first) }, (_, i) => shown.first + i);
  return (
    <div
      ref={scroller}
      className="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={count + 1}
      aria-colcount={columns.length}
      aria-activedescendant={count > 0 ? `${id}-${active.row}-${active.column}` : undefined}
      tabIndex={0}
      onKeyDown={onKey}
      onScroll={onScroll}
    >
      <div className="grid-head" role="row" aria-rowindex={1} style={place}>
        {columns.map((column, i) => (
          <div
            // biome-ignore lint/suspicious/noArrayIndexKey: columns are identified by position.
            key={i}
            role="columnheader"
            aria-sort={onSort === undefined ? undefined : sort?.column === i ? sort.direction : 'none'}
            className={isAmount(column.type) ? 'grid-number' : ''}
            title={`${column.name} ${column.type}`}
          >
            <HeadName
              name={column.name}
              direction={sort?.column === i ? sort.direction : null}
              onSort={onSort === undefined ? null : () => onSort(i)}
            />{' '}
            <span className="grid-type">{column.type}</span>
            {headOf?.(i)}
          </div>
        ))}
      </div>
      <div className="grid-body" role="presentation" style={{ height: shown.height, minWidth: total }}>
        <div role="rowgroup" className="grid-rows" style={{ transform: `translateY(${shown.top}px)` }}>
          {rows.map((row) => (
            <div key={row} role="row" aria-rowindex={row + 2} className="grid-row" style={place}>
              {columns.map((column, i) => (
                <Cell
                  // biome-ignore lint/suspicious/noArrayIndexKey: columns are identified by position.
                  key={i}
                  id={`${id}-${row}-${i}`}
                  cell={data.cell(row, i)}
                  right={isAmount(column.type)}
                  isActive={row === active.row && i === active.column}
                  isChosen={chosen?.row === row && chosen.column === i}
                  onClick={() => {
                    setActive({ row, column: i });
                    onChoose?.(row, i);
                  }}
                />
              ))}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}

interface HeadNameProps {
  readonly name: string;
  readonly direction: GridSort['direction'] | null;
  readonly onSort: (() => void) | null;
}

function HeadName({ name, direction, onSort }: HeadNameProps) {
  if (onSort === null) return <span className="grid-name">{name}</span>;
  const sign = direction === null ? '' : direction === 'ascending' ? ' ↑' : ' ↓';
  return (
    // Keys pressed on the button must not also move between the grid's cells.
    <button
      type="button"
      className="grid-name grid-sort"
      onClick={onSort}
      onKeyDown={(event) => event.stopPropagation()}
    >
      {name}
      <span aria-hidden="true">{sign}</span>
    </button>
  );
}

function scrollToColumn(element: HTMLElement | null, column: number, widths: readonly number[]): void {
  if (element === null) return;
  const left = widths.slice(0, column).reduce((sum, width) => sum + width, 0);
  const right = left + (widths[column] ?? 0);
  if (left < element.scrollLeft) element.scrollLeft = left;
  else if (right > element.scrollLeft + element.clientWidth) element.scrollLeft = right - element.clientWidth;
}

interface CellProps {
  readonly id: string;
  readonly cell: GridCell;
  readonly right: boolean;
  readonly isActive: boolean;
  readonly isChosen: boolean;
  readonly onClick: () => void;
}

function Cell({ id, cell, right, isActive, isChosen, onClick }: CellProps) {
  const classes = [
    'grid-cell',
    `grid-${cell.kind}`,
    right ? 'grid-number' : '',
    isActive ? 'grid-active' : '',
  ];
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: Enter on the grid does the same.
    <div
      id={id}
      role="gridcell"
      aria-selected={isChosen}
      className={classes.join(' ')}
      onClick={onClick}
      title={cell.text.length > 24 ? cell.text.slice(0, 600) : undefined}
    >
      {cell.kind === 'masked' && <span className="hidden">masked: </span>}
      {cell.text}
    </div>
  );
}
