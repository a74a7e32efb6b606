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
