import { InternalError } from 'osl-compiler';

const DATA_ROW = 0x44;
/** Length of a DataRow header: type `D`, length, number of columns. */
const HEAD = 7;

/**
 * Reads a run of whole DataRow messages without copying: `next` moves to a row, `value` to each of its values. All
 * values of a row must be read or skipped before the next row.
 */
export class DataRowReader {
  readonly source: Buffer;
  /** Start and end, in `source`, of the current value. */
  start = 0;
  end = 0;
  /** Start, in `source`, of the current row, header included. */
  rowStart = 0;
  #rowEnd = 0;
  #at = 0;

  constructor(messages: Uint8Array) {
    this.source = Buffer.from(messages.buffer, messages.byteOffset, messages.byteLength);
  }

  /** Moves to the next row; false at the end. @throws InternalError if the number of columns changes */
  next(): boolean {
    const { source } = this;
    const at = this.#at;
    if (at !== this.#rowEnd) throw new InternalError('a DataRow does not have the described columns');
    if (at === source.length) return false;
    if (source[at] !== DATA_ROW) throw new InternalError('a DataRow message does not start where it should');
    this.rowStart = at;
    this.#rowEnd = at + 1 + source.readInt32BE(at + 1);
    this.#at = at + HEAD;
    return true;
  }

  /** Moves to the next value of the row; false if it is NULL. */
  value(): boolean {
    const length = this.source.readInt32BE(this.#at);
    this.start = this.#at + 4;
    this.end = length < 0 ? this.start : this.start + length;
    this.#at = this.end;
    return length >= 0;
  }

  /** Reads the next value of the row as text. */
  text(): string | null {
    return this.value() ? this.source.toString('utf8', this.start, this.end) : null;
  }

  /** True if values of the row are unread. */
  get more(): boolean {
    return this.#at < this.#rowEnd;
  }

  /** Length of the row in bytes, header included. */
  get rowLength(): number {
    return this.#rowEnd - this.rowStart;
  }

  /** Skips the unread values of the row and returns its end offset in `source`. */
  skip(): number {
    this.#at = this.#rowEnd;
    return this.#at;
  }
}

/** Splits a run of whole DataRow messages without copying. */
export function* eachDataRow(messages: Uint8Array): Generator<Buffer> {
  const rows = new DataRowReader(messages);
  while (rows.next()) yield rows.source.subarray(rows.rowStart, rows.skip());
}

/** Values of one DataRow message in text format. */
export function textValuesOf(dataRow: Uint8Array): (string | null)[] {
  const row = new DataRowReader(dataRow);
  const values: (string | null)[] = [];
  row.next();
  while (row.more) values.push(row.text());
  return values;
}

/** Encodes one DataRow message in text format. */
export function dataRow(values: readonly (string | null)[]): Uint8Array {
  const encoded = values.map((v) => (v === null ? null : Buffer.from(v, 'utf8')));
  const size = HEAD + encoded.reduce((sum, v) => sum + 4 + (v?.length ?? 0), 0);
  const row = Buffer.allocUnsafe(size);
  row[0] = DATA_ROW;
  row.writeInt32BE(size - 1, 1);
  row.writeUInt16BE(values.length, 5);
  let at = HEAD;
  for (const value of encoded) {
    at = row.writeInt32BE(value?.length ?? -1, at);
    if (value !== null) at += value.copy(row, at);
  }
  return row;
}
