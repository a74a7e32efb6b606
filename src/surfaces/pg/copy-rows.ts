import { DataRowReader, GrowingBytes } from '../../engine/index.js';
import type { CopyOptions } from './copy-options.js';

/** Makes whole DataRow messages, values in text format, to as many CopyData messages. */
export interface CopyRows {
  whole(dataRows: Uint8Array): Buffer;
  /** As `whole`, of rows that are large: stops after each portion of them, and gives them all at the end. */
  portions(dataRows: Uint8Array): Generator<void, Buffer>;
}

/** What is written of a large value before others have their turn. */
const PORTION_BYTES = 65_536;

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
  return {
    whole: (dataRows) => {
      const rows = new DataRowReader(dataRows);
      const out = new CopyBytes(dataRows.length + 64);
      while (rows.next()) {
        const message = out.begin();
        for (let column = 0; column < forced.length; column++) {
          if (column > 0) out.byte(delimiter);
          if (rows.value()) value.write(rows.source, rows.start, rows.end, column, out);
          else out.copy(missing);
        }
        out.byte(NEWLINE);
        out.end(message);
      }
      return out.written();
    },
    *portions(dataRows) {
      const rows = new DataRowReader(dataRows);
      const out = new CopyBytes(dataRows.length + 64);
      while (rows.next()) {
        const message = out.begin();
        let due = rows.rowStart + PORTION_BYTES;
        for (let column = 0; column < forced.length; column++) {
          if (column > 0) out.byte(delimiter);
          if (!rows.value()) out.copy(missing);
          else yield* value.portions(rows.source, rows.start, rows.end, column, out);
          if (rows.end < due) continue;
          due = rows.end + PORTION_BYTES;
          yield;
        }
        out.byte(NEWLINE);
        out.end(message);
      }
      return out.written();
    },
  };
}

interface CopyValue {
  write(source: Buffer, start: number, end: number, column: number, out: CopyBytes): void;
  portions(source: Buffer, start: number, end: number, column: number, out: CopyBytes): Generator<void>;
}

const ESCAPES: readonly (readonly [byte: number, letter: string])[] = [
  [0x08, 'b'],
  [0x0c, 'f'],
  [NEWLINE, 'n'],
  [RETURN, 'r'],
  [0x09, 't'],
  [0x0b, 'v'],
  [BACKSLASH, '\\'],
];

function textValue({ delimiter }: CopyOptions): CopyValue {
  // What follows the backslash, by byte; 0: the byte needs none.
  const after = new Uint8Array(256);
  after[delimiter.charCodeAt(0)] = delimiter.charCodeAt(0);
  for (const [byte, letter] of ESCAPES) after[byte] = letter.charCodeAt(0);
  return {
    write: (source, start, end, _column, out) => out.escape(source, start, end, BACKSLASH, after),
    *portions(source, start, end, _column, out) {
      for (const [from, to] of portionsOf(start, end)) {
        out.escape(source, from, to, BACKSLASH, after);
        yield;
      }
    },
  };
}

/** Where the portions of a value begin and end. */
function* portionsOf(start: number, end: number): Generator<readonly [from: number, to: number]> {
  for (let at = start; at < end; at += PORTION_BYTES) yield [at, Math.min(at + PORTION_BYTES, end)];
}

function csvValue(options: CopyOptions, forced: readonly boolean[]): CopyValue {
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
  const hasSpecial = (source: Buffer, start: number, end: number): boolean => {
    for (let at = start; at < end; at++) if (special[source[at] ?? 0] === 1) return true;
    return false;
  };
  const isTaken = (source: Buffer, start: number, end: number): boolean => {
    // `\.` in a line of its own would end the data.
    if (alone && end - start === 2 && source[start] === BACKSLASH && source[start + 1] === DOT) return true;
    return end - start === missing.length && source.compare(missing, 0, missing.length, start, end) === 0;
  };
  return {
    write: (source, start, end, column, out) => {
      if (forced[column] !== true && !hasSpecial(source, start, end) && !isTaken(source, start, end)) {
        out.copy(source, start, end);
        return;
      }
      out.byte(quote);
      out.escape(source, start, end, mark, after);
      out.byte(quote);
    },
    *portions(source, start, end, column, out) {
      let quoted = forced[column] === true || isTaken(source, start, end);
      for (const [from, to] of quoted ? [] : portionsOf(start, end)) {
        quoted = hasSpecial(source, from, to);
        yield;
        if (quoted) break;
      }
      if (quoted) out.byte(quote);
      for (const [from, to] of portionsOf(start, end)) {
        if (quoted) out.escape(source, from, to, mark, after);
        else out.copy(source, from, to);
        yield;
      }
      if (quoted) out.byte(quote);
    },
  };
}

/** CopyData messages under construction. */
class CopyBytes extends GrowingBytes {
  /** Where the message begins that `end` ends. */
  begin(): number {
    const message = this.at;
    this.byte(COPY_DATA);
    this.reserve(MESSAGE_HEAD - 1);
    this.bytes.writeUInt32BE(0, this.at); // until the length is known
    this.at += MESSAGE_HEAD - 1;
    return message;
  }

  end(message: number): void {
    this.bytes.writeUInt32BE(this.at - message - 1, message + 1);
  }

  /** Each byte that has one in `after` becomes `mark` and that one. */
  escape(source: Uint8Array, start: number, end: number, mark: number, after: Uint8Array): void {
    this.reserve(2 * (end - start));
    const { bytes } = this;
    let { at } = this;
    for (let from = start; from < end; from++) {
      const byte = source[from] ?? 0;
      const instead = after[byte] ?? 0;
      if (instead === 0) {
        bytes[at++] = byte;
      } else {
        bytes[at++] = mark;
        bytes[at++] = instead;
      }
    }
    this.at = at;
  }

  written(): Buffer {
    return this.bytes.subarray(0, this.at);
  }
}
