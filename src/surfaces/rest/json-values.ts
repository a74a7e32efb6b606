import {
  elementOf,
  InternalError,
  isArray,
  type JsonForm,
  type ScalarType,
  type TypeName,
  typeRow,
} from 'osl-compiler';
import { GrowingBytes } from '../../engine/index.js';

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const INITIAL_BYTES = 2_048;
/** Number of source bytes escaped at a time, which limits the space to reserve. */
const ESCAPE_SLICE = 4_096;
const MAX_ESCAPE_BYTES = 6;

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
  constructor(capacity = INITIAL_BYTES) {
    super(capacity);
  }

  quoted(source: Uint8Array, start: number, end: number): void {
    this.reserve(end - start + 2);
    this.bytes[this.at++] = QUOTE;
    this.append(source, start, end);
    this.bytes[this.at++] = QUOTE;
  }

  quote(): void {
    this.byte(QUOTE);
  }

  appendEscaped(source: Uint8Array, start: number, end: number): void {
    for (let from = start; from < end; from += ESCAPE_SLICE)
      this.#escape(source, from, Math.min(end, from + ESCAPE_SLICE));
  }

  take(): Buffer {
    const bytes = this.bytes.subarray(0, this.at);
    // Sized according to the last chunk, since the first, buffered one is much larger than later ones.
    this.bytes = Buffer.allocUnsafe(Math.max(INITIAL_BYTES, Math.ceil(1.25 * this.at)));
    this.at = 0;
    return bytes;
  }

  #escape(source: Uint8Array, start: number, end: number): void {
    this.reserve(MAX_ESCAPE_BYTES * (end - start));
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
type WriteValue = (source: Buffer, start: number, end: number, out: JsonBytes) => void;

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
  readonly prefixBytes: number;
  open(out: JsonBytes): void;
  /** Writes one piece; all pieces but the last are `PORTION_BYTES` long. */
  readonly piece: WriteValue;
  close(out: JsonBytes): void;
}

export interface ValueWriter {
  readonly write: WriteValue;
  portions(source: Buffer, start: number, end: number, out: JsonBytes): Generator<void>;
  /**
   * Writes an array element that is too large for one step; null for types whose values are short and for arrays, which
   * are never elements.
   */
  readonly pieces: PieceWriter | null;
}

/** Creates a writer for values that are never large. */
function shortValueWriter(write: WriteValue): ValueWriter {
  return {
    write,
    *portions(source, start, end, out) {
      write(source, start, end, out);
      yield;
    },
    pieces: null,
  };
}

const writeNothing = (): void => undefined;
const writeQuote = (out: JsonBytes): void => out.quote();

/** Creates a writer for values of any size that are either written in quotes or already JSON. */
function writeInPieces(form: 'string' | 'json', piece: WriteValue, prefixBytes = 0): ValueWriter {
  const delimiter = form === 'string' ? writeQuote : writeNothing;
  return {
    write: (source, start, end, out) => {
      delimiter(out);
      piece(source, start + prefixBytes, end, out);
      delimiter(out);
    },
    *portions(source, start, end, out) {
      delimiter(out);
      for (let at = start + prefixBytes; at < end; at += PORTION_BYTES) {
        piece(source, at, Math.min(at + PORTION_BYTES, end), out);
        yield;
      }
      delimiter(out);
    },
    pieces: { prefixBytes, open: delimiter, piece, close: delimiter },
  };
}

/**
 * Returns a writer for values of `type` in JSON. bool, int2, int4 and floats become JSON booleans and numbers, except
 * that NaN and infinities become strings. int8 and numeric become strings, since JSON parsers would round them.
 * Timestamps become RFC 3339 strings, bytea becomes base64, and arrays become JSON arrays. json and jsonb are passed
 * through, without line breaks; other types become strings in Postgres' text format.
 */
export function valueWriter(type: TypeName): ValueWriter {
  return isArray(type) ? arrayWriter(scalarWriter(elementOf(type))) : scalarWriter(type);
}

/**
 * Returns a writer for a passage's key, which is always a JSON string, as the contract requires for retrieval. Types
 * that are written as strings in other columns have the same format here.
 */
export function keyWriter(type: TypeName): ValueWriter {
  return isArray(type) || UNQUOTED.has(typeRow(type).json) ? WRITERS.string : scalarWriter(type);
}

const UNQUOTED: ReadonlySet<JsonForm> = new Set<JsonForm>(['bool', 'number', 'float', 'json', 'jsonb']);

function scalarWriter(type: ScalarType): ValueWriter {
  return WRITERS[typeRow(type).json];
}

const copyBytes: WriteValue = (source, start, end, out) => out.copy(source, start, end);
const verbatim = writeInPieces('json', copyBytes);
const quotedUnescaped: ValueWriter = {
  ...writeInPieces('string', copyBytes),
  write: (source, start, end, out) => out.quoted(source, start, end),
};

const WRITERS: Readonly<Record<JsonForm, ValueWriter>> = {
  bool: shortValueWriter(writeBool),
  number: verbatim,
  float: shortValueWriter(writeFloat),
  plain: quotedUnescaped,
  string: writeInPieces('string', (source, start, end, out) => out.appendEscaped(source, start, end)),
  timestamp: shortValueWriter(writeTimestamp),
  timestamptz: shortValueWriter(writeTimestamptz),
  base64: writeInPieces('string', writeBase64, 2),
  jsonb: verbatim,
  json: writeInPieces('json', writeWithoutBreaks),
};

function writeWithoutBreaks(source: Buffer, start: number, end: number, out: JsonBytes): void {
  let from = start;
  for (let at = start; at < end; at++) {
    if (source[at] !== 0x0a && source[at] !== 0x0d) continue;
    out.copy(source, from, at);
    out.copy(BLANK, 0, 1);
    from = at + 1;
  }
  out.copy(source, from, end);
}

const BLANK = Buffer.from(' ');
const TRUE = Buffer.from('true');
const FALSE = Buffer.from('false');

function writeBool(source: Buffer, start: number, _end: number, out: JsonBytes): void {
  const word = source[start] === 0x74 ? TRUE : FALSE;
  out.copy(word, 0, word.length);
}

/** Writes a number unchanged, and `NaN` or an infinity as a string: only numbers end in a digit. */
function writeFloat(source: Buffer, start: number, end: number, out: JsonBytes): void {
  if (isDigit(source[end - 1])) out.copy(source, start, end);
  else out.quoted(source, start, end);
}

const DATE_LENGTH = 10;
const SPACE = 0x20;
const T = 0x54;
const Z = 0x5a;

/** Writes `2026-01-31 00:00:00.5` with a T. Infinities, five-digit years and years BC keep Postgres' form. */
function writeTimestamp(source: Buffer, start: number, end: number, out: JsonBytes): void {
  if (source[start + DATE_LENGTH] !== SPACE || !isDigit(source[end - 1])) out.quoted(source, start, end);
  else writeDateTime(source, start, end, '', out);
}

/** Writes `2026-01-31 00:00:00+00` as `2026-01-31T00:00:00Z`; sessions use the time zone UTC. */
function writeTimestamptz(source: Buffer, start: number, end: number, out: JsonBytes): void {
  const zone = end - 3;
  const isUtc = source[zone] === 0x2b && source[zone + 1] === 0x30 && source[zone + 2] === 0x30;
  if (source[start + DATE_LENGTH] !== SPACE || !isUtc) out.quoted(source, start, end);
  else writeDateTime(source, start, zone, 'Z', out);
}

function writeDateTime(source: Buffer, start: number, end: number, zone: '' | 'Z', out: JsonBytes): void {
  out.byte(QUOTE);
  out.copy(source, start, start + DATE_LENGTH);
  out.byte(T);
  out.copy(source, start + DATE_LENGTH + 1, end);
  if (zone === 'Z') out.byte(Z);
  out.byte(QUOTE);
}

function writeBase64(source: Buffer, start: number, end: number, out: JsonBytes): void {
  out.text(Buffer.from(source.toString('latin1', start, end), 'hex').toString('base64'));
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

const OPEN = 0x7b;
const CLOSE = 0x7d;
const COMMA = 0x2c;
const BRACKET = 0x5b;
const END_BRACKET = 0x5d;
const EQUALS = 0x3d;

/** `unfinished`: more of a quoted element remains than may be read at once. */
type ArrayToken = 'open' | 'close' | 'comma' | 'null' | 'element' | 'unfinished';

/** Tokenizes a Postgres array (`{1,NULL,"a b"}`, `{{1,2},{3,4}}`). Lower bounds (`[0:1]={1,2}`) are skipped. */
export class ArrayReader {
  readonly source: Buffer;
  /** Offset in `source` of the last element, without its quotes; `end` is the offset after its last byte. */
  start = 0;
  end = 0;
  hasEscapes = false;
  readonly #end: number;
  #offset: number;
  #inQuotes = false;

  constructor(source: Buffer, start: number, end: number) {
    this.source = source;
    this.#end = end;
    this.#offset = source[start] === BRACKET ? source.indexOf(EQUALS, start) + 1 : start;
  }

  get at(): number {
    return this.#offset;
  }

  /**
   * Returns the next token, or null at the end. If a quoted element is longer than `maxBytes`, returns `unfinished`,
   * and the next call continues the element. An unquoted element is always read whole.
   */
  next(maxBytes = Number.POSITIVE_INFINITY): ArrayToken | null {
    if (this.#inQuotes) return this.#readQuoted(maxBytes);
    if (this.#offset >= this.#end) return null;
    switch (this.source[this.#offset]) {
      case OPEN:
        this.#offset += 1;
        return 'open';
      case CLOSE:
        this.#offset += 1;
        return 'close';
      case COMMA:
        this.#offset += 1;
        return 'comma';
      case QUOTE:
        this.#offset += 1;
        this.start = this.#offset;
        this.hasEscapes = false;
        this.#inQuotes = true;
        return this.#readQuoted(maxBytes);
      default:
        return this.#readUnquoted();
    }
  }

  element(): Buffer {
    const raw = this.source.subarray(this.start, this.end);
    return this.hasEscapes ? removeBackslashes(raw, 0, Buffer.allocUnsafe(raw.length)).bytes : raw;
  }

  #readQuoted(maxBytes: number): ArrayToken {
    const { source } = this;
    const end = Math.min(this.#end, this.#offset + maxBytes);
    let at = this.#offset;
    while (at < end && source[at] !== QUOTE) {
      if (source[at] === BACKSLASH) {
        this.hasEscapes = true;
        at += 1;
      }
      at += 1;
    }
    this.#offset = at;
    if (at >= this.#end) throw new InternalError('an array ends inside an element');
    if (at >= end) return 'unfinished';
    this.#inQuotes = false;
    this.end = at;
    this.#offset += 1;
    return 'element';
  }

  /** Reads an unquoted element, which ends at the next comma or brace. Unquoted NULL means null; quoted, it is text. */
  #readUnquoted(): ArrayToken {
    const { source } = this;
    let at = this.#offset;
    while (at < this.#end && source[at] !== COMMA && source[at] !== CLOSE) at += 1;
    this.start = this.#offset;
    this.end = at;
    this.hasEscapes = false;
    this.#offset = at;
    const isNull =
      at - this.start === 4 && source.toString('latin1', this.start, at).toUpperCase() === 'NULL';
    return isNull ? 'null' : 'element';
  }
}

function removeBackslashes(
  raw: Buffer,
  at: number,
  buffer: Buffer,
): { readonly bytes: Buffer; readonly at: number } {
  let length = 0;
  let from = at;
  for (; from < raw.length && length < buffer.length; from++) {
    if (raw[from] === BACKSLASH) from += 1;
    buffer[length++] = raw[from] ?? 0;
  }
  return { bytes: buffer.subarray(0, length), at: from };
}

function arrayWriter(element: ValueWriter): ValueWriter {
  const writeToken = (kind: ArrayToken, reader: ArrayReader, out: JsonBytes): void => {
    if (kind === 'open') out.byte(BRACKET);
    else if (kind === 'close') out.byte(END_BRACKET);
    else if (kind === 'comma') out.byte(COMMA);
    else if (kind === 'null') out.copy(NULL, 0, NULL.length);
    else if (kind === 'element' && reader.hasEscapes) {
      const unescaped = reader.element();
      element.write(unescaped, 0, unescaped.length, out);
    } else if (kind === 'element') element.write(reader.source, reader.start, reader.end, out);
  };
  return {
    write: (source, start, end, out) => {
      const reader = new ArrayReader(source, start, end);
      for (let kind = reader.next(); kind !== null; kind = reader.next()) writeToken(kind, reader, out);
    },
    *portions(source, start, end, out) {
      const reader = new ArrayReader(source, start, end);
      let nextYield = start + PORTION_BYTES;
      for (let kind = reader.next(PORTION_BYTES); kind !== null; kind = reader.next(PORTION_BYTES)) {
        if (kind === 'element' && reader.end - reader.start > PORTION_BYTES) {
          yield* writeLargeElement(element, reader, out);
        } else {
          writeToken(kind, reader, out);
        }
        if (reader.at < nextYield) continue;
        nextYield = reader.at + PORTION_BYTES;
        yield;
      }
    },
    pieces: null,
  };
}

function* writeLargeElement(
  { write, pieces }: ValueWriter,
  reader: ArrayReader,
  out: JsonBytes,
): Generator<void> {
  if (pieces === null) {
    const value = reader.element();
    write(value, 0, value.length, out);
    return;
  }
  const raw = reader.source.subarray(reader.start, reader.end);
  const buffer = Buffer.allocUnsafe(PORTION_BYTES);
  let { bytes, at } = removeBackslashes(raw, 0, Buffer.allocUnsafe(pieces.prefixBytes + PORTION_BYTES));
  pieces.open(out);
  pieces.piece(bytes, pieces.prefixBytes, bytes.length, out);
  // INVARIANT: all pieces but the last are `PORTION_BYTES` long.
  while (at < raw.length) {
    yield;
    ({ bytes, at } = removeBackslashes(raw, at, buffer));
    pieces.piece(bytes, 0, bytes.length, out);
  }
  pieces.close(out);
}

const NULL = Buffer.from('null');
