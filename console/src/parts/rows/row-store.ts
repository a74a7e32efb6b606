/** A JSON value in an answer. */
export type JsonValue =
  | string
  | number
  | boolean
  | null
  | readonly unknown[]
  | Readonly<Record<string, unknown>>;

const FIRST = 1_024;

/** Texts joined in chunks of 1,024: garbage collection of millions of strings would stop the page for seconds. */
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
 * One column of an answer. While all values are numbers or NULL, they are kept in a typed array, with NaN for NULL,
 * since JSON has no NaN. While all values are strings or NULL, they are kept as `PackedTexts`.
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

  /** Column names in the order of the first row; empty until a row arrives. */
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

  /** Returns the value of a cell; null for NULL, and if there is no such row or column. */
  at(row: number, column: number): JsonValue {
    return this.#columns[column]?.at(row) ?? null;
  }
}

/** Formats a value as text: a string unchanged, null as `NULL`, everything else as JSON. */
export function textOf(value: JsonValue): string {
  if (typeof value === 'string') return value;
  return value === null ? 'NULL' : JSON.stringify(value);
}

/** Point in time. A date counts as its midnight, and a value without a time zone as UTC. */
interface Moment {
  /** Whole seconds since 1970. */
  readonly seconds: number;
  /** Microseconds after `seconds`, from 0 to 999,999. */
  readonly micros: number;
}

const MOMENT = /^(\d{4,6})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:Z|\+00)?)?( BC)?$/;

/** Parses a date, timestamp or timestamptz of an answer; null for infinities and anything else. */
export function momentOf(text: string): Moment | null {
  const match = MOMENT.exec(text);
  if (match === null) return null;
  const [, year, month, day, hour = 0, minute = 0, second = 0, fraction = '', bc] = match;
  const days = daysSince1970(bc === undefined ? Number(year) : 1 - Number(year), Number(month), Number(day));
  return {
    seconds: days * 86_400 + Number(hour) * 3_600 + Number(minute) * 60 + Number(second),
    micros: Number(fraction.padEnd(6, '0')),
  };
}

/** Returns days since 1970-01-01, also outside the range of `Date`. Years start in March, so leap days are last. */
function daysSince1970(year: number, month: number, day: number): number {
  const from = month < 3 ? year - 1 : year;
  const inYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  return (
    365 * from + Math.floor(from / 4) - Math.floor(from / 100) + Math.floor(from / 400) + inYear - 719_468
  );
}

/** Time in ms after which long work yields to the browser, so that the page stays responsive. */
export const TURN_MS = 24;

/**
 * Runs `work`, which must yield often, and returns its result. The browser can handle input at least every `TURN_MS`,
 * plus the time between two yields.
 *
 * @throws the reason of `signal` if it is aborted
 */
export async function inTurns<T>(work: Generator<void, T>, signal: AbortSignal): Promise<T> {
  let since = performance.now();
  for (let step = work.next(); ; step = work.next()) {
    if (step.done === true) return step.value;
    if (performance.now() - since <= TURN_MS) continue;
    await new Promise((resolve) => setTimeout(resolve));
    signal.throwIfAborted();
    since = performance.now();
  }
}
