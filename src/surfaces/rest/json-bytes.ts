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

  /** A string of any UTF-8. */
  string(source: Uint8Array, start: number, end: number): void {
    this.byte(QUOTE);
    for (let from = start; from < end; from += SLICE) this.#escape(source, from, Math.min(end, from + SLICE));
    this.byte(QUOTE);
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
      else length += bytes.write(`u${byte.toString(16).padStart(4, '0')}`, length, 'latin1');
    }
    this.at = length;
  }
}

/** Writes one value, which stands in `source[start … end)` in Postgres' text format, as JSON. */
export type WriteValue = (source: Buffer, start: number, end: number, out: JsonBytes) => void;
