import { DataRowReader } from '../../engine/index.js';
import type { CopyOptions } from './copy-options.js';

/** Makes whole DataRow messages, values in text format, to as many CopyData messages. */
export type CopyRows = (dataRows: Uint8Array) => Buffer;

/** Type and length of a message. */
const MESSAGE_HEAD = 5;
const COPY_DATA = 0x64;
const NEWLINE = 0x0a;
const RETURN = 0x0d;
const BACKSLASH = 0x5c;
const DOT = 0x2e;

/** A row of binary COPY is a DataRow under another name. */
export function binaryRows(dataRows: Uint8Array): Buffer {
  const rows = new DataRowReader(Buffer.from(dataRows)); // a copy
  for (; rows.next(); rows.skip()) rows.source[rows.rowStart] = COPY_DATA;
  return rows.source;
}

/** `forced`: the columns whose values are quoted always. */
export function textRows(options: CopyOptions, forced: readonly boolean[]): CopyRows {
  const value = options.format === 'csv' ? csvValue(options, forced) : textValue(options);
  const delimiter = options.delimiter.charCodeAt(0);
  const missing = Buffer.from(options.null);
  return (dataRows) => {
    const rows = new DataRowReader(dataRows);
    const out = new Growing(dataRows.length);
    while (rows.next()) {
      const message = out.begin();
      for (let column = 0; column < forced.length; column++) {
        if (column > 0) out.byte(delimiter);
        if (rows.value()) value(rows.source, rows.start, rows.end, column, out);
        else out.bytes(missing);
      }
      out.byte(NEWLINE);
      out.end(message);
    }
    return out.written();
  };
}

type WriteValue = (source: Buffer, start: number, end: number, column: number, out: Growing) => void;

const ESCAPES: readonly (readonly [byte: number, letter: string])[] = [
  [0x08, 'b'],
  [0x0c, 'f'],
  [NEWLINE, 'n'],
  [RETURN, 'r'],
  [0x09, 't'],
  [0x0b, 'v'],
  [BACKSLASH, '\\'],
];

function textValue({ delimiter }: CopyOptions): WriteValue {
  // What follows the backslash, by byte; 0: the byte needs none.
  const after = new Uint8Array(256);
  after[delimiter.charCodeAt(0)] = delimiter.charCodeAt(0);
  for (const [byte, letter] of ESCAPES) after[byte] = letter.charCodeAt(0);
  return (source, start, end, _column, out) => out.escape(source, start, end, BACKSLASH, after);
}

function csvValue(options: CopyOptions, forced: readonly boolean[]): WriteValue {
  const [delimiter, quote, mark] = [options.delimiter, options.quote, options.escape].map((c) =>
    c.charCodeAt(0),
  );
  if (delimiter === undefined || quote === undefined || mark === undefined)
    throw new RangeError('an option is missing');
  const special = new Uint8Array(256);
  for (const byte of [delimiter, quote, NEWLINE, RETURN]) special[byte] = 1;
  const after = new Uint8Array(256);
  after[quote] = quote;
  after[mark] = mark;
  const missing = Buffer.from(options.null);
  const alone = forced.length === 1;
  const needsQuotes = (source: Buffer, start: number, end: number): boolean => {
    for (let at = start; at < end; at++) if (special[source[at] ?? 0] === 1) return true;
    // `\.` in a line of its own would end the data.
    if (alone && end - start === 2 && source[start] === BACKSLASH && source[start + 1] === DOT) return true;
    return end - start === missing.length && source.compare(missing, 0, missing.length, start, end) === 0;
  };
  return (source, start, end, column, out) => {
    if (forced[column] !== true && !needsQuotes(source, start, end)) {
      out.copy(source, start, end);
      return;
    }
    out.byte(quote);
    out.escape(source, start, end, mark, after);
    out.byte(quote);
  };
}

/** Below this many bytes a loop beats a native copy. */
const SHORT = 48;

/** CopyData messages under construction. */
class Growing {
  #bytes: Buffer;
  #length = 0;

  /** `size`: about as many bytes as will be written. */
  constructor(size: number) {
    this.#bytes = Buffer.allocUnsafe(size + 64);
  }

  /** Where the message begins that `end` ends. */
  begin(): number {
    this.#reserve(MESSAGE_HEAD);
    const message = this.#length;
    this.#bytes[message] = COPY_DATA;
    this.#length += MESSAGE_HEAD;
    return message;
  }

  end(message: number): void {
    this.#bytes.writeUInt32BE(this.#length - message - 1, message + 1);
  }

  byte(byte: number): void {
    this.#reserve(1);
    this.#bytes[this.#length++] = byte;
  }

  bytes(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    this.#bytes.set(bytes, this.#length);
    this.#length += bytes.length;
  }

  copy(source: Buffer, start: number, end: number): void {
    if (end - start > SHORT) {
      this.bytes(source.subarray(start, end));
      return;
    }
    this.#reserve(end - start);
    const bytes = this.#bytes;
    let length = this.#length;
    for (let at = start; at < end; at++) bytes[length++] = source[at] ?? 0;
    this.#length = length;
  }

  /** Each byte that has one in `after` becomes `mark` and that one. */
  escape(source: Buffer, start: number, end: number, mark: number, after: Uint8Array): void {
    this.#reserve(2 * (end - start));
    const bytes = this.#bytes;
    let length = this.#length;
    for (let at = start; at < end; at++) {
      const byte = source[at] ?? 0;
      const instead = after[byte] ?? 0;
      if (instead === 0) {
        bytes[length++] = byte;
      } else {
        bytes[length++] = mark;
        bytes[length++] = instead;
      }
    }
    this.#length = length;
  }

  written(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(more: number): void {
    const needed = this.#length + more;
    if (needed <= this.#bytes.length) return;
    const grown = Buffer.allocUnsafe(Math.max(needed, 2 * this.#bytes.length));
    grown.set(this.#bytes.subarray(0, this.#length));
    this.#bytes = grown;
  }
}
