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
  readonly skipped: number;
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
function shortValue(write: WriteValue): ValueWriter {
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
function pieceByPiece(form: 'string' | 'json', piece: WriteValue, skipped = 0): ValueWriter {
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

/**
 * Returns a writer for values of `type` in JSON. bool, int2, int4 and floats become JSON booleans and numbers, except
 * that NaN and infinities become strings. int8 and numeric become strings, since JSON parsers would round them.
 * Timestamps become RFC 3339 strings, bytea becomes base64, and arrays become JSON arrays. json and jsonb are passed
 * through, without line breaks; other types become strings in Postgres' text format.
 */
export function valueWriter(type: TypeName): ValueWriter {
  return isArray(type) ? arrayValue(scalarWriter(elementOf(type))) : scalarWriter(type);
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

const copied: WriteValue = (source, start, end, out) => out.copy(source, start, end);
const verbatim = pieceByPiece('json', copied);
const plain: ValueWriter = {
  ...pieceByPiece('string', copied),
  write: (source, start, end, out) => out.plain(source, start, end),
};

const WRITERS: Readonly<Record<JsonForm, ValueWriter>> = {
  bool: shortValue(bool),
  number: verbatim,
  float: shortValue(float),
  plain,
  string: pieceByPiece('string', (source, start, end, out) => out.escaped(source, start, end)),
  timestamp: shortValue(timestamp),
  timestamptz: shortValue(timestamptz),
  base64: pieceByPiece('string', base64, 2),
  jsonb: verbatim,
  json: pieceByPiece('json', onOneLine),
};

function onOneLine(source: Buffer, start: number, end: number, out: JsonBytes): void {
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

function bool(source: Buffer, start: number, _end: number, out: JsonBytes): void {
  const word = source[start] === 0x74 ? TRUE : FALSE;
  out.copy(word, 0, word.length);
}

/** Writes a number unchanged, and `NaN` or an infinity as a string: only numbers end in a digit. */
function float(source: Buffer, start: number, end: number, out: JsonBytes): void {
  if (isDigit(source[end - 1])) out.copy(source, start, end);
  else out.plain(source, start, end);
}

const DATE_LENGTH = 10;
const SPACE = 0x20;
const T = 0x54;
const Z = 0x5a;

/** Writes `2026-01-31 00:00:00.5` with a T. Infinities, five-digit years and years BC keep Postgres' form. */
function timestamp(source: Buffer, start: number, end: number, out: JsonBytes): void {
  if (source[start + DATE_LENGTH] !== SPACE || !isDigit(source[end - 1])) out.plain(source, start, end);
  else dateTime(source, start, end, '', out);
}

/** Writes `2026-01-31 00:00:00+00` as `2026-01-31T00:00:00Z`; sessions use the time zone UTC. */
function timestamptz(source: Buffer, start: number, end: number, out: JsonBytes): void {
  const zone = end - 3;
  const isUtc = source[zone] === 0x2b && source[zone + 1] === 0x30 && source[zone + 2] === 0x30;
  if (source[start + DATE_LENGTH] !== SPACE || !isUtc) out.plain(source, start, end);
  else dateTime(source, start, zone, 'Z', out);
}

function dateTime(source: Buffer, start: number, end: number, zone: '' | 'Z', out: JsonBytes): void {
  out.byte(QUOTE);
  out.copy(source, start, start + DATE_LENGTH);
  out.byte(T);
  out.copy(source, start + DATE_LENGTH + 1, end);
  if (zone === 'Z') out.byte(Z);
  out.byte(QUOTE);
}

function base64(source: Buffer, start: number, end: number, out: JsonBytes): void {
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
  escaped = false;
  readonly #end: number;
  #at: number;
  #inQuotes = false;

  constructor(source: Buffer, start: number, end: number) {
    this.source = source;
    this.#end = end;
    this.#at = source[start] === BRACKET ? source.indexOf(EQUALS, start) + 1 : start;
  }

  get at(): number {
    return this.#at;
  }

  /**
   * Returns the next token, or null at the end. If a quoted element is longer than `most` bytes, returns `unfinished`,
   * and the next call continues the element. An unquoted element is always read whole.
   */
  next(most = Number.POSITIVE_INFINITY): ArrayToken | null {
    if (this.#inQuotes) return this.#quoted(most);
    if (this.#at >= this.#end) return null;
    switch (this.source[this.#at]) {
      case OPEN:
        this.#at += 1;
        return 'open';
      case CLOSE:
        this.#at += 1;
        return 'close';
      case COMMA:
        this.#at += 1;
        return 'comma';
      case QUOTE:
        this.#at += 1;
        this.start = this.#at;
        this.escaped = false;
        this.#inQuotes = true;
        return this.#quoted(most);
      default:
        return this.#bare();
    }
  }

  element(): Buffer {
    const written = this.source.subarray(this.start, this.end);
    return this.escaped ? unescaped(written, 0, Buffer.allocUnsafe(written.length)).bytes : written;
  }

  #quoted(most: number): ArrayToken {
    const { source } = this;
    const end = Math.min(this.#end, this.#at + most);
    let at = this.#at;
    while (at < end && source[at] !== QUOTE) {
      if (source[at] === BACKSLASH) {
        this.escaped = true;
        at += 1;
      }
      at += 1;
    }
    this.#at = at;
    if (at >= this.#end) throw new InternalError('an array ends inside an element');
    if (at >= end) return 'unfinished';
    this.#inQuotes = false;
    this.end = at;
    this.#at += 1;
    return 'element';
  }

  /** Reads an unquoted element, which ends at the next comma or brace. Unquoted NULL means null; quoted, it is text. */
  #bare(): ArrayToken {
    const { source } = this;
    let at = this.#at;
    while (at < this.#end && source[at] !== COMMA && source[at] !== CLOSE) at += 1;
    this.start = this.#at;
    this.end = at;
    this.escaped = false;
    this.#at = at;
    const isNull =
      at - this.start === 4 && source.toString('latin1', this.start, at).toUpperCase() === 'NULL';
    return isNull ? 'null' : 'element';
  }
}

function unescaped(
  written: Buffer,
  at: number,
  room: Buffer,
): { readonly bytes: Buffer; readonly at: number } {
  let length = 0;
  let from = at;
  for (; from < written.length && length < room.length; from++) {
    if (written[from] === BACKSLASH) from += 1;
    room[length++] = written[from] ?? 0;
  }
  return { bytes: room.subarray(0, length), at: from };
}

function arrayValue(element: ValueWriter): ValueWriter {
  const token = (kind: ArrayToken, reader: ArrayReader, out: JsonBytes): void => {
    if (kind === 'open') out.byte(BRACKET);
    else if (kind === 'close') out.byte(END_BRACKET);
    else if (kind === 'comma') out.byte(COMMA);
    else if (kind === 'null') out.copy(NULL, 0, NULL.length);
    else if (kind === 'element' && reader.escaped) {
      const plain = reader.element();
      element.write(plain, 0, plain.length, out);
    } else if (kind === 'element') element.write(reader.source, reader.start, reader.end, out);
  };
  return {
    write: (source, start, end, out) => {
      const reader = new ArrayReader(source, start, end);
      for (let kind = reader.next(); kind !== null; kind = reader.next()) token(kind, reader, out);
    },
    *portions(source, start, end, out) {
      const reader = new ArrayReader(source, start, end);
      let due = start + PORTION_BYTES;
      for (let kind = reader.next(PORTION_BYTES); kind !== null; kind = reader.next(PORTION_BYTES)) {
        if (kind === 'element' && reader.end - reader.start > PORTION_BYTES) {
          yield* largeElement(element, reader, out);
        } else {
          token(kind, reader, out);
        }
        if (reader.at < due) continue;
        due = reader.at + PORTION_BYTES;
        yield;
      }
    },
    pieces: null,
  };
}

function* largeElement({ write, pieces }: ValueWriter, reader: ArrayReader, out: JsonBytes): Generator<void> {
  if (pieces === null) {
    const whole = reader.element();
    write(whole, 0, whole.length, out);
    return;
  }
  const written = reader.source.subarray(reader.start, reader.end);
  const room = Buffer.allocUnsafe(PORTION_BYTES);
  let { bytes, at } = unescaped(written, 0, Buffer.allocUnsafe(pieces.skipped + PORTION_BYTES));
  pieces.open(out);
  pieces.piece(bytes, pieces.skipped, bytes.length, out);
  // INVARIANT: all pieces but the last are `PORTION_BYTES` long.
  while (at < written.length) {
    yield;
    ({ bytes, at } = unescaped(written, at, room));
    pieces.piece(bytes, 0, bytes.length, out);
  }
  pieces.close(out);
}

const NULL = Buffer.from('null');
