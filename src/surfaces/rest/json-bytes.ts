import { GrowingBytes } from '../../engine/index.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const INITIAL = 2_048;
/** Number of source bytes escaped at a time, which limits the space to reserve. */
const SLICE = 4_096;
const LONGEST_ESCAPE = 6;

/** Second character of two-character escapes, by byte; 0 if the byte has no such escape. */
const SHORT_ESCAPES = new Uint8Array(128);
for (const [byte, letter] of [
  [QUOTE, '"'],
  [BACKSLASH, '\\'],
  [0x08, 'b'],
  [0x09, 't'],
  [0x0a, 'n'],
  [0x0c, 'f'],
  [0x0d, 'r'],
] as const) {
  SHORT_ESCAPES[byte] = letter.charCodeAt(0);
}

/**
 * Number of bytes of a large value written between two yields. A multiple of six: six hexadecimal digits are three
 * bytes, or four base64 characters.
 */
export const PORTION_BYTES = 65_532;

/** Buffer of JSON text in UTF-8, filled without decoding values to strings. */
export class JsonBytes extends GrowingBytes {
  constructor(capacity = INITIAL) {
    super(capacity);
  }

  plain(source: Uint8Array, start: number, end: number): void {
    this.reserve(end - start + 2);
    this.bytes[this.at++] = QUOTE;
    this.append(source, start, end);
    this.bytes[this.at++] = QUOTE;
  }

  quote(): void {
    this.byte(QUOTE);
  }

  escaped(source: Uint8Array, start: number, end: number): void {
    for (let from = start; from < end; from += SLICE) this.#escape(source, from, Math.min(end, from + SLICE));
  }

  take(): Buffer {
    const taken = this.bytes.subarray(0, this.at);
    // Sized according to the last chunk, since the first, buffered one is much larger than later ones.
    this.bytes = Buffer.allocUnsafe(Math.max(INITIAL, Math.ceil(1.25 * this.at)));
    this.at = 0;
    return taken;
  }

  #escape(source: Uint8Array, start: number, end: number): void {
    this.reserve(LONGEST_ESCAPE * (end - start));
    const bytes = this.bytes;
    let length = this.at;
    for (let at = start; at < end; at++) {
      const byte = source[at] ?? 0;
      if (byte >= 0x20 && byte !== QUOTE && byte !== BACKSLASH) {
        bytes[length++] = byte;
        continue;
      }
      const letter = SHORT_ESCAPES[byte] ?? 0;
      bytes[length++] = BACKSLASH;
      if (letter !== 0) bytes[length++] = letter;
      else length = writeUnicode(bytes, length, byte);
    }
    this.at = length;
  }
}

/** Converts one value at `source[start … end)` from Postgres' text format to JSON. */
export type WriteValue = (source: Buffer, start: number, end: number, out: JsonBytes) => void;

function writeUnicode(bytes: Uint8Array, at: number, byte: number): number {
  bytes[at] = 0x75;
  bytes[at + 1] = ZERO;
  bytes[at + 2] = ZERO;
  bytes[at + 3] = ZERO + (byte >> 4);
  bytes[at + 4] = HEX_DIGITS[byte & 0xf] ?? 0;
  return at + 5;
}

const ZERO = 0x30;
const HEX_DIGITS = Buffer.from('0123456789abcdef');

interface PieceWriter {
  readonly skipped: number;
  open(out: JsonBytes): void;
  /** Writes one piece; all pieces but the last are `PORTION_BYTES` long. */
  readonly piece: WriteValue;
  close(out: JsonBytes): void;
}

export interface ValueWriter {
  readonly write: WriteValue;
  portions(source: Buffer, start: number, end: number, out: JsonBytes): Generator<void>;
  /** Writer for large values; null for types whose values are always short or need no pieces. */
  readonly pieces: PieceWriter | null;
}

/** Creates a writer for values that are never large. */
export function shortValue(write: WriteValue): ValueWriter {
  return {
    write,
    *portions(source, start, end, out) {
      write(source, start, end, out);
      yield;
    },
    pieces: null,
  };
}

const nothing = (): void => undefined;
const quote = (out: JsonBytes): void => out.quote();

/** Creates a writer for values of any size that are either written in quotes or already JSON. */
export function pieceByPiece(form: 'string' | 'json', piece: WriteValue, skipped = 0): ValueWriter {
  const mark = form === 'string' ? quote : nothing;
  return {
    write: (source, start, end, out) => {
      mark(out);
      piece(source, start + skipped, end, out);
      mark(out);
    },
    *portions(source, start, end, out) {
      mark(out);
      for (let at = start + skipped; at < end; at += PORTION_BYTES) {
        piece(source, at, Math.min(at + PORTION_BYTES, end), out);
        yield;
      }
      mark(out);
    },
    pieces: { skipped, open: mark, piece, close: mark },
  };
}
