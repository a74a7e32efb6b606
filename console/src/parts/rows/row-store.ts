/** A JSON value in an answer. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly unknown[]
  | Readonly<Record<string, unknown>>;

const FIRST = 1_024;

/**
 * One column of an answer. As long as it contains only numbers, they are kept in a typed array, in which NaN
 * represents NULL, since JSON has no NaN. Equal texts near each other are stored only once.
 */
class ColumnValues {
  #numbers: Float64Array | null = new Float64Array(FIRST);
  #values: JsonValue[] = [];
  #length = 0;
  readonly #recent = new Map<string, string>();

  get length(): number {
    return this.#length;
  }

  push(value: JsonValue): void {
    if (this.#numbers !== null && (typeof value === 'number' || value === null)) this.#pushNumber(value);
    else {
      if (this.#numbers !== null) this.#mix(this.#numbers);
      this.#values.push(typeof value === 'string' ? this.#once(value) : value);
    }
    this.#length += 1;
  }

  at(row: number): JsonValue {
    if (row < 0 || row >= this.#length) return null;
    if (this.#numbers === null) return this.#values[row] ?? null;
    const number = this.#numbers[row] ?? Number.NaN;
    return Number.isNaN(number) ? null : number;
  }

  #pushNumber(value: number | null): void {
    let numbers = this.#numbers ?? new Float64Array(FIRST);
    if (this.#length === numbers.length) {
      const larger = new Float64Array(2 * numbers.length);
      larger.set(numbers);
      numbers = larger;
      this.#numbers = larger;
    }
    numbers[this.#length] = value ?? Number.NaN;
  }

  #mix(numbers: Float64Array): void {
    this.#values = Array.from(numbers.subarray(0, this.#length), (n) => (Number.isNaN(n) ? null : n));
    this.#numbers = null;
  }

  #once(text: string): string {
    if (text.length > 64) return text;
    const known = this.#recent.get(text);
    if (known !== undefined) return known;
    if (this.#recent.size >= 4_096) this.#recent.clear();
    this.#recent.set(text, text);
    return text;
  }
}

/** The rows of an answer, stored in memory column by column. */
export class RowStore {
  #names: readonly string[] = [];
  #columns: readonly ColumnValues[] = [];
  #rows = 0;

  /** Column names, in the order of the first row; empty before it arrives. */
  get names(): readonly string[] {
    return this.#names;
  }

  get rows(): number {
    return this.#rows;
  }

  /** Adds a row; all rows have the same members as the first. */
  add(row: Readonly<Record<string, JsonValue>>): void {
    if (this.#rows === 0) {
      this.#names = Object.keys(row);
      this.#columns = this.#names.map(() => new ColumnValues());
    }
    for (const [i, column] of this.#columns.entries()) column.push(row[this.#names[i] ?? ''] ?? null);
    this.#rows += 1;
  }

  /** Value of a cell; null if there is no such row or column. */
  at(row: number, column: number): JsonValue {
    return this.#columns[column]?.at(row) ?? null;
  }
}

/** Formats a value as a single line of text. */
export function textOf(value: JsonValue): string {
  if (typeof value === 'string') return value;
  return value === null ? 'NULL' : JSON.stringify(value);
}
