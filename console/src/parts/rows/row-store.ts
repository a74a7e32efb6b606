/** A JSON value in an answer. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly unknown[]
  | Readonly<Record<string, unknown>>;

const FIRST = 1_024;

/** Texts, of which each 1,024 are kept as one: the garbage collector stops the page for seconds over millions of them. */
class PackedTexts {
  readonly #chunks: TextChunk[] = [];
  #open: (string | null)[] = [];

  push(value: string | null): void {
    this.#open.push(value);
    if (this.#open.length < FIRST) return;
    this.#chunks.push(chunkOf(this.#open));
    this.#open = [];
  }

  at(row: number): string | null {
    const chunk = this.#chunks[Math.floor(row / FIRST)];
    const i = row % FIRST;
    if (chunk === undefined) return this.#open[i] ?? null;
    return chunk.isNull[i] === 1 ? null : chunk.text.slice(chunk.ends[i - 1] ?? 0, chunk.ends[i]);
  }
}

interface TextChunk {
  readonly text: string;
  readonly ends: Uint32Array;
  readonly isNull: Uint8Array;
}

function chunkOf(texts: readonly (string | null)[]): TextChunk {
  const ends = new Uint32Array(texts.length);
  let end = 0;
  for (const [i, text] of texts.entries()) {
    end += text?.length ?? 0;
    ends[i] = end;
  }
  return { text: texts.join(''), ends, isNull: Uint8Array.from(texts, (text) => (text === null ? 1 : 0)) };
}

/**
 * One column of an answer. As long as it contains only numbers, they are kept in a typed array, in which NaN
 * represents NULL, since JSON has no NaN; as long as it contains only texts, they are packed.
 */
class ColumnValues {
  #numbers: Float64Array | null = new Float64Array(FIRST);
  #texts: PackedTexts | null = new PackedTexts();
  #values: JsonValue[] = [];
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(value: JsonValue): void {
    if (this.#numbers !== null && typeof value !== 'number' && value !== null) this.#leaveNumbers();
    if (this.#texts !== null && typeof value !== 'string' && value !== null) this.#leaveTexts();
    if (this.#numbers !== null && (typeof value === 'number' || value === null)) this.#pushNumber(value);
    if (this.#texts !== null && (typeof value === 'string' || value === null)) this.#texts.push(value);
    if (this.#numbers === null && this.#texts === null) this.#values.push(value);
    this.#length += 1;
  }

  at(row: number): JsonValue {
    if (row < 0 || row >= this.#length) return null;
    if (this.#texts !== null) return this.#texts.at(row);
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

  #leaveNumbers(): void {
    if (this.#texts === null) this.#values = this.#soFar();
    this.#numbers = null;
  }

  #leaveTexts(): void {
    if (this.#numbers === null) this.#values = this.#soFar();
    this.#texts = null;
  }

  #soFar(): JsonValue[] {
    return Array.from({ length: this.#length }, (_, row) => this.at(row));
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
