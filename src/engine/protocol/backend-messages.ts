import { InternalError } from 'osl-compiler';
import type { ExecuteOptions } from '../statement.js';

const DATA_ROW = 0x44;
/** Length of a DataRow header: type `D`, length, number of columns. */
const HEADER_BYTES = 7;

/**
 * Reads a run of whole DataRow messages without copying: `next` moves to the next row, `value` to the row's next value.
 * All values of a row must be read or skipped before moving to the next row.
 */
export class DataRowReader {
  readonly source: Buffer;
  /** Start and end of the current value in `source`. */
  start = 0;
  end = 0;
  /** Start of the current row in `source`, including its header. */
  rowStart = 0;
  #rowEnd = 0;
  #at = 0;

  constructor(messages: Uint8Array) {
    this.source = Buffer.from(messages.buffer, messages.byteOffset, messages.byteLength);
  }

  /** Moves to the next row; returns false at the end. @throws InternalError if the number of columns changes */
  next(): boolean {
    const { source } = this;
    const at = this.#at;
    if (at !== this.#rowEnd) throw new InternalError('a DataRow does not have the described columns');
    if (at === source.length) return false;
    if (source[at] !== DATA_ROW) throw new InternalError('a DataRow message does not start where it should');
    this.rowStart = at;
    this.#rowEnd = at + 1 + source.readInt32BE(at + 1);
    this.#at = at + HEADER_BYTES;
    return true;
  }

  /** Moves to the next value of the row; returns false if it is NULL. */
  value(): boolean {
    const length = this.source.readInt32BE(this.#at);
    this.start = this.#at + 4;
    this.end = length < 0 ? this.start : this.start + length;
    this.#at = this.end;
    return length >= 0;
  }

  /** Reads the next value of the row as text; null for NULL. */
  text(): string | null {
    return this.value() ? this.source.toString('utf8', this.start, this.end) : null;
  }

  /** True if the row has unread values. */
  get hasMore(): boolean {
    return this.#at < this.#rowEnd;
  }

  /** Length of the row in bytes, including its header. */
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

/** Decodes the values of one DataRow message in text format; NULL becomes null. */
export function textValuesOf(dataRow: Uint8Array): (string | null)[] {
  const row = new DataRowReader(dataRow);
  const values: (string | null)[] = [];
  row.next();
  while (row.hasMore) values.push(row.text());
  return values;
}

/** Encodes one DataRow message in text format. */
export function dataRow(values: readonly (string | null)[]): Uint8Array {
  const encoded = values.map((v) => (v === null ? null : Buffer.from(v, 'utf8')));
  const size = HEADER_BYTES + encoded.reduce((sum, v) => sum + 4 + (v?.length ?? 0), 0);
  const row = Buffer.allocUnsafe(size);
  row[0] = DATA_ROW;
  row.writeInt32BE(size - 1, 1);
  row.writeUInt16BE(values.length, 5);
  let at = HEADER_BYTES;
  for (const value of encoded) {
    at = row.writeInt32BE(value?.length ?? -1, at);
    if (value !== null) at += value.copy(row, at);
  }
  return row;
}

/** A column of a RowDescription. */
export interface DescribedColumn {
  readonly name: string;
  readonly typeOid: number;
  /** Length of the type in bytes, or −1 if it is variable. */
  readonly typeLength: number;
  /** The type modifier; −1 if there is none. */
  readonly typeModifier: number;
}

/** Parses the columns in the body of a RowDescription. */
export function describedColumns(body: Buffer): DescribedColumn[] {
  let at = 2;
  return Array.from({ length: body.readUInt16BE(0) }, () => {
    const end = body.indexOf(0, at);
    const name = body.toString('utf8', at, end);
    const type = end + 7; // skips the table's OID and attribute number
    at = type + 12;
    return {
      name,
      typeOid: body.readUInt32BE(type),
      typeLength: body.readInt16BE(type + 4),
      typeModifier: body.readInt32BE(type + 6),
    };
  });
}

/**
 * Types whose values have the same bytes as `text` or `varbit` in both formats, and the arrays of these types, which
 * differ only in the element OID of the binary format. By OID.
 */
const SAME_BYTES: ReadonlyMap<number, number> = new Map([
  [19, 25], // name
  [1042, 25], // bpchar
  [1043, 25], // varchar
  [1003, 1009],
  [1014, 1009],
  [1015, 1009],
  [1560, 1562], // bit
  [1561, 1563],
]);

/** True if columns with the OIDs `described` can be sent as columns with the OIDs `promised`. */
export function sameOids(described: readonly number[], promised: readonly number[]): boolean {
  if (described === promised) return true;
  return (
    described.length === promised.length &&
    described.every((oid, i) => oid === promised[i] || SAME_BYTES.get(oid) === promised[i])
  );
}

/** Number of rows and bytes that an execution may still deliver; Infinity if there is no cap. */
export interface RemainingCaps {
  readonly rows: number;
  readonly bytes: number;
}

export function remainingCaps(options: ExecuteOptions, rows: number, bytes: number): RemainingCaps {
  return {
    rows: options.maxRows > 0 ? options.maxRows - rows : Number.POSITIVE_INFINITY,
    bytes: options.maxBytes > 0 ? options.maxBytes - bytes : Number.POSITIVE_INFINITY,
  };
}

/** Returns the number of leading DataRow messages in `bytes` that fit into `caps`, and the offset of their end. */
export function fittingRows(bytes: Uint8Array, count: number, caps: RemainingCaps): RemainingCaps {
  if (count <= caps.rows && bytes.length <= caps.bytes) return { rows: count, bytes: bytes.length };
  const messages = new DataRowReader(bytes);
  let rows = 0;
  let end = 0;
  while (rows < count && rows < caps.rows && messages.next()) {
    const next = messages.skip();
    if (next > caps.bytes) break;
    end = next;
    rows += 1;
  }
  return { rows, bytes: end };
}
