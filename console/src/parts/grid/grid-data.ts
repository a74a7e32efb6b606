import { isNumber } from 'osl-compiler/types';
import { type KeyboardEvent, type UIEvent, useLayoutEffect, useRef, useState } from 'react';

/** Content of a grid: columns, and cells as text. */
export interface GridData {
  readonly columns: readonly GridColumn[];
  readonly rows: number;
  cell(row: number, column: number): GridCell;
}

export interface GridColumn {
  readonly name: string;
  /** Type in the model, shown next to the name. */
  readonly type: string;
  /** True if the column is masked in at least some rows: its header and cells then offer `why?`. */
  readonly masked: boolean;
}

export interface GridSort {
  readonly column: number;
  readonly direction: 'ascending' | 'descending';
}

type CellKind = 'text' | 'number' | 'flag' | 'null' | 'masked' | 'empty';

export interface GridCell {
  readonly kind: CellKind;
  readonly text: string;
}

/** True for types whose values are right-aligned. */
export function isAmount(type: string): boolean {
  return isNumber(type) || type === 'money';
}

const LEAST = 64;
const MOST = 420;
const LOOKED_AT = 60;

/** Estimates column widths in pixels from the headers and the first rows. */
export function widthsOf({ columns, rows, cell }: GridData, character: number): readonly number[] {
  return columns.map((column, i) => {
    let longest = column.name.length + Math.min(column.type.length, 14) + (column.masked ? 10 : 3);
    for (let row = 0; row < Math.min(rows, LOOKED_AT); row += 1)
      longest = Math.max(longest, cell(row, i).text.length);
    return Math.round(Math.min(MOST, Math.max(LEAST, longest * character + 26)));
  });
}

/** Rows of a long table to render, and their position in pixels. */
interface RowWindow {
  /** Index of the first rendered row; `end` is the index after the last one. */
  readonly first: number;
  readonly end: number;
  /** Distance in pixels of the first rendered row from the top of the scrolled content. */
  readonly top: number;
  /** Height of the scrolled content in pixels. */
  readonly height: number;
}

interface GridView {
  readonly rows: number;
  readonly rowHeight: number;
  readonly viewHeight: number;
  readonly scrollTop: number;
}

/** Maximum content height that browsers can render, in pixels; in longer tables, scrolling is scaled. */
export const TALLEST = 8_000_000;
/** Number of rows rendered beyond the view on each side, so that they are ready when the user scrolls. */
const BEYOND = 8;

/** Returns the rows to render. Above a height of `TALLEST`, the scroll bar still covers the whole table. */
export function windowOf({ rows, rowHeight, viewHeight, scrollTop }: GridView): RowWindow {
  const whole = rows * rowHeight;
  const height = Math.min(whole, TALLEST);
  const scrollable = Math.max(0, height - viewHeight);
  const at = Math.min(Math.max(0, scrollTop), scrollable);
  const wholeTop = scrollable === 0 ? 0 : (at / scrollable) * (whole - viewHeight);
  const first = Math.max(0, Math.floor(wholeTop / rowHeight) - BEYOND);
  const end = Math.min(rows, Math.ceil((wholeTop + viewHeight) / rowHeight) + BEYOND);
  return { first, end, top: at - (wholeTop - first * rowHeight), height };
}

/** Returns the scroll position that brings `row` into view with as little movement as possible. */
export function scrollTo(row: number, view: GridView): number {
  const { rows, rowHeight, viewHeight, scrollTop } = view;
  const whole = rows * rowHeight;
  const scrollable = Math.max(0, Math.min(whole, TALLEST) - viewHeight);
  if (scrollable === 0) return 0;
  const wholeTop = (Math.min(Math.max(0, scrollTop), scrollable) / scrollable) * (whole - viewHeight);
  const top = row * rowHeight;
  if (top >= wholeTop && top + rowHeight <= wholeTop + viewHeight) return scrollTop;
  const wanted = top < wholeTop ? top : top + rowHeight - viewHeight;
  return (wanted / (whole - viewHeight)) * scrollable;
}

interface RowWindowOptions {
  readonly rows: number;
  /** Number of columns that the arrow keys can reach; null if the keys choose whole rows. */
  readonly columns: number | null;
  /** Height in pixels. */
  readonly rowHeight: number;
  /** Returns the height in pixels of the column headers of a table with this width. */
  readonly headHeight: (width: number) => number;
}

interface GridPlace {
  readonly row: number;
  readonly column: number;
}

/** Scroll position of a table that renders only the rows in view, and the cell at the keyboard position. */
export function useRowWindow({ rows, columns, rowHeight, headHeight }: RowWindowOptions) {
  const scroller = useRef<HTMLDivElement>(null);
  const [frame, setFrame] = useState({ scrollTop: 0, width: 800, height: 400 });
  const [active, setActive] = useState<GridPlace>({ row: 0, column: 0 });
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    const look = (): void => {
      const { scrollTop, clientWidth, clientHeight } = element;
      setFrame({ scrollTop, width: clientWidth, height: clientHeight });
    };
    const observer = new ResizeObserver(look);
    observer.observe(element);
    look();
    return () => observer.disconnect();
  }, []);
  const { scrollTop, width, height } = frame;
  const view = { rows, rowHeight, scrollTop, viewHeight: Math.max(rowHeight, height - headHeight(width)) };
  /** Moves the keyboard position by a key and returns the new position; returns null if the key does not move it. */
  const moveByKey = (event: KeyboardEvent): GridPlace | null => {
    const page = Math.max(1, Math.floor(view.viewHeight / rowHeight) - 1);
    const far = event.ctrlKey || event.metaKey || columns === null;
    const to = KEYS[event.key]?.({ ...active, page, rows, far }) ?? null;
    if (to === null || (columns === null && to.column !== active.column)) return null;
    event.preventDefault();
    const next = { row: within(to.row, rows), column: within(to.column, columns ?? 1) };
    setActive(next);
    if (scroller.current !== null) scroller.current.scrollTop = scrollTo(next.row, view);
    return next;
  };
  const onScroll = ({ currentTarget: { scrollTop } }: UIEvent): void =>
    setFrame((now) => ({ ...now, scrollTop }));
  return { scroller, width, active, setActive, moveByKey, onScroll, shown: windowOf(view) };
}

function within(index: number, count: number): number {
  return Math.min(Math.max(0, index), Math.max(0, count - 1));
}

interface KeyMove extends GridPlace {
  /** Number of rows that Page Up and Page Down move: one less than the number of rows in view. */
  readonly page: number;
  readonly rows: number;
  /** True if Home and End move to the first and last row; false if they move to the first and last column. */
  readonly far: boolean;
}

const KEYS: Readonly<Record<string, (from: KeyMove) => GridPlace>> = {
  ArrowDown: ({ row, column }) => ({ row: row + 1, column }),
  ArrowUp: ({ row, column }) => ({ row: row - 1, column }),
  ArrowRight: ({ row, column }) => ({ row, column: column + 1 }),
  ArrowLeft: ({ row, column }) => ({ row, column: column - 1 }),
  PageDown: ({ row, column, page }) => ({ row: row + page, column }),
  PageUp: ({ row, column, page }) => ({ row: row - page, column }),
  Home: ({ row, column, far }) => (far ? { row: 0, column } : { row, column: 0 }),
  End: ({ row, column, rows, far }) =>
    far ? { row: rows - 1, column } : { row, column: Number.MAX_SAFE_INTEGER },
};
