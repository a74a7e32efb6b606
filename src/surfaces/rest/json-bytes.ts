import { GrowingBytes } from '../../engine/index.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
/** Bytes of room at first. */
const INITIAL = 2_048;
/** Source bytes that are escaped at a time, so that the worst case reserves little. */
const SLICE = 4_096;
/** The longest escape, `\u001f`, of one source byte. */
const LONGEST_ESCAPE = 6;

/** The second character of two-character escapes, by byte; 0 where there is none. */
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
 * What is written of a large value before others have their turn, in bytes of the value. A multiple of six, since so many
 * hexadecimal digits are three bytes, and so four characters of base64.
 */
export const PORTION_BYTES = 65_532;

/** JSON text under construction, as UTF-8; nothing is decoded to strings on the way. */
export class JsonBytes extends GrowingBytes {
  constructor(capacity = INITIAL) {
    super(capacity);
  }

  /** A string whose characters need no escape. */
  plain(source: Uint8Array, start: number, end: number): void {
    this.reserve(end - start + 2);
    this.bytes[this.at++] = QUOTE;
    this.append(source, start, end);
    this.bytes[this.at++] = QUOTE;
  }

  quote(): void {
    this.byte(QUOTE);
  }

  /** A part of a string, of any UTF-8. */
  escaped(source: Uint8Array, start: number, end: number): void {
    for (let from = start; from < end; from += SLICE) this.#escape(source, from, Math.min(end, from + SLICE));
  }

  /** What was written, which is the taker's now; writing starts afresh. */
  take(): Buffer {
    const taken = this.bytes.subarray(0, this.at);
    // Of about the size that was needed: what was held back at first is much more than what streams later.
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

/** Writes one value, which stands in `source[start … end)` in Postgres' text format, as JSON. */
export type WriteValue = (source: Buffer, start: number, end: number, out: JsonBytes) => void;

/** `u001f`, of a byte below 0x20. Gives where it ends. */
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

/** How values that may be large are written piece by piece. */
interface PieceWriter {
  /** Bytes of the value that are passed over before the first piece. */
  readonly skipped: number;
  open(out: JsonBytes): void;
  /** Every piece but the last has `PORTION_BYTES`. */
  readonly piece: WriteValue;
  close(out: JsonBytes): void;
}

/** Writes values of one type. */
export interface ValueWriter {
  readonly write: WriteValue;
  /** As `write`, of a large value, and stops after each portion of it. */
  portions(source: Buffer, start: number, end: number, out: JsonBytes): Generator<void>;
  /** Null where values are never large, or are written in another way. */
  readonly pieces: PieceWriter | null;
}

/** Of values that are never large. */
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

/** Of values of any size, which stand in quotes or are JSON already. */
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
