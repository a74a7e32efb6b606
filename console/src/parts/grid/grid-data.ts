import { isNumber } from 'osl-compiler/types';

/** Content of a grid: columns, and cells as text. */
export interface GridData {
  readonly columns: readonly GridColumn[];
  readonly rows: number;
  cell(row: number, column: number): GridCell;
}

export interface GridColumn {
  readonly name: string;
  /** A type of the model, shown beside the name. */
  readonly type: string;
  /** Masked in some rows at least: its head and its cells offer `why?`. */
  readonly masked: boolean;
}

export type CellKind = 'text' | 'number' | 'flag' | 'null' | 'masked' | 'empty';

export interface GridCell {
  readonly kind: CellKind;
  readonly text: string;
}

/** True for types whose values are aligned right. */
export function isAmount(type: string): boolean {
  return isNumber(type) || type === 'money';
}

const LEAST = 64;
const MOST = 420;
const LOOKED_AT = 60;

/** Widths of the columns in pixels, by what their heads and first rows need. */
export function widthsOf({ columns, rows, cell }: GridData, character: number): readonly number[] {
  return columns.map((column, i) => {
    let longest = column.name.length + Math.min(column.type.length, 14) + (column.masked ? 10 : 3);
    for (let row = 0; row < Math.min(rows, LOOKED_AT); row += 1)
      longest = Math.max(longest, cell(row, i).text.length);
    return Math.round(Math.min(MOST, Math.max(LEAST, longest * character + 26)));
  });
}

/** Which rows of a long table are drawn, and where. Pixels. */
interface RowWindow {
  /** The first row that is drawn, and the one after the last. */
  readonly first: number;
  readonly end: number;
  /** Where the first row begins, from the top of what scrolls. */
  readonly top: number;
  /** The height of what scrolls. */
  readonly height: number;
}

interface GridView {
  readonly rows: number;
  readonly rowHeight: number;
  readonly viewHeight: number;
  readonly scrollTop: number;
}

/** Browsers draw nothing that is much taller; longer tables scroll by more than a pixel a pixel. */
export const TALLEST = 8_000_000;
/** Rows beyond the view, so that a scroll finds them there. */
const BEYOND = 8;

/** The window at a scroll position. Beyond `TALLEST` the scroll bar stands for the whole table all the same. */
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

/** The scroll position at which `row` is in view, as near to the present one as can be. */
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
