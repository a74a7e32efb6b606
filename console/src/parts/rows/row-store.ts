import { ColumnValues, type JsonValue } from './column.js';

/** The rows of one answer, column by column, in memory. */
export class RowStore {
  #names: readonly string[] = [];
  #columns: readonly ColumnValues[] = [];
  #rows = 0;

  /** In the order of the first row; empty before it. */
  get names(): readonly string[] {
    return this.#names;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Adds a row; all have the members of the first. */
  add(row: Readonly<Record<string, JsonValue>>): void {
    if (this.#rows === 0) {
      this.#names = Object.keys(row);
      this.#columns = this.#names.map(() => new ColumnValues());
    }
    for (const [i, column] of this.#columns.entries()) column.push(row[this.#names[i] ?? ''] ?? null);
    this.#rows += 1;
  }

  /** Null where there is no such row or column. */
  at(row: number, column: number): JsonValue {
    return this.#columns[column]?.at(row) ?? null;
  }
}

/** A value as one line of text. */
export function textOf(value: JsonValue): string {
  if (typeof value === 'string') return value;
  return value === null ? 'NULL' : JSON.stringify(value);
}
