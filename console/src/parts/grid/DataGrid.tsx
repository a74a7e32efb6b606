// biome-ignore-all lint/a11y/useSemanticElements: an HTML table would need all rows, but only some are rendered.
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid handles the keyboard as a whole.
import { type KeyboardEvent, type ReactNode, useId, useLayoutEffect, useMemo, useRef, useState } from 'react';
import './grid.css';
import {
  type GridCell,
  type GridData,
  type GridSort,
  isAmount,
  scrollTo,
  widthsOf,
  windowOf,
} from './grid-data.js';

interface DataGridProps {
  readonly label: string;
  readonly data: GridData;
  /** Changes when rows are added, since `data` itself stays the same object. */
  readonly version?: number;
  /** Called when a cell is chosen by Enter or a click; `row` is null for a column header. */
  readonly onChoose?: (row: number | null, column: number) => void;
  readonly chosen?: { readonly row: number | null; readonly column: number } | null;
  /** Content shown next to the name in a column header. */
  readonly headOf?: (column: number) => ReactNode;
  /** Order of the rows; null if they are as they came. */
  readonly sort?: GridSort | null;
  /** Called when the name of a column is clicked; without it, the rows cannot be sorted. */
  readonly onSort?: ((column: number) => void) | undefined;
}

const ROW = 28;
const CHARACTER = 7.4;

/** Table of any length that renders only the rows in view. Arrow keys, Page Up, Page Down, Home and End move in it. */
export function DataGrid(props: DataGridProps) {
  const { label, data, version = 0, onChoose, chosen, headOf, sort = null, onSort } = props;
  const id = useId();
  const scroller = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ scrollTop: 0, viewHeight: 400 });
  const [active, setActive] = useState({ row: 0, column: 0 });
  // biome-ignore lint/correctness/useExhaustiveDependencies: `data` is mutated when rows arrive.
  const widths = useMemo(() => widthsOf(data, CHARACTER), [data, version > 0]);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const look = (): void =>
      setView({ scrollTop: element.scrollTop, viewHeight: Math.max(ROW, element.clientHeight - ROW) });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
    return () => observer.disconnect();
  }, []);
  const shown = windowOf({ rows: data.rows, rowHeight: ROW, ...view });
  const total = widths.reduce((sum, width) => sum + width, 0);
  const place = { gridTemplateColumns: widths.map((width) => `${width}px`).join(' '), minWidth: total };
  const move = (row: number, column: number): void => {
    const next = {
      row: Math.min(Math.max(0, row), Math.max(0, data.rows - 1)),
      column: Math.min(Math.max(0, column), Math.max(0, data.columns.length - 1)),
    };
    setActive(next);
    const element = scroller.current;
    if (element === null) return;
    element.scrollTop = scrollTo(next.row, { rows: data.rows, rowHeight: ROW, ...view });
    const left = widths.slice(0, next.column).reduce((sum, width) => sum + width, 0);
    const width = widths[next.column] ?? 0;
    if (left < element.scrollLeft) element.scrollLeft = left;
    else if (left + width > element.scrollLeft + element.clientWidth)
      element.scrollLeft = left + width - element.clientWidth;
  };
  const onKey = (event: KeyboardEvent): void => {
    const { row, column } = active;
    const page = Math.max(1, Math.floor(view.viewHeight / ROW) - 1);
    const to = KEYS[event.key]?.(row, column, page, data.rows, event.ctrlKey || event.metaKey);
    if (to !== undefined) {
      event.preventDefault();
      move(to[0], to[1]);
    } else if (event.key === 'Enter' && data.rows > 0) {
      event.preventDefault();
      onChoose?.(row, column);
    }
  };
  const rows = Array.from({ length: Math.max(0, shown.end - shown.first) }, (_, i) => shown.first + i);
  return (
    <div
      ref={scroller}
      className="grid"
      role="grid"
      aria-label={label}
      aria-rowcount={data.rows + 1}
      aria-colcount={data.columns.length}
      aria-activedescendant={data.rows > 0 ? `${id}-${active.row}-${active.column}` : undefined}
      tabIndex={0}
      onKeyDown={onKey}
      onScroll={(event) => {
        const { scrollTop } = event.currentTarget;
        setView((now) => ({ ...now, scrollTop }));
      }}
    >
      <div className="grid-head" role="row" aria-rowindex={1} style={place}>
        {data.columns.map((column, i) => (
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
              {data.columns.map((column, i) => (
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
    // Key presses are the button's own, not moves in the grid.
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

type CellMove = (
  row: number,
  column: number,
  page: number,
  rows: number,
  far: boolean,
) => readonly [number, number];

const KEYS: Readonly<Record<string, CellMove>> = {
  ArrowDown: (row, column) => [row + 1, column],
  ArrowUp: (row, column) => [row - 1, column],
  ArrowRight: (row, column) => [row, column + 1],
  ArrowLeft: (row, column) => [row, column - 1],
  PageDown: (row, column, page) => [row + page, column],
  PageUp: (row, column, page) => [row - page, column],
  Home: (row, column, _page, _rows, far) => (far ? [0, column] : [row, 0]),
  End: (row, column, _page, rows, far) => (far ? [rows - 1, column] : [row, Number.MAX_SAFE_INTEGER]),
};

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
