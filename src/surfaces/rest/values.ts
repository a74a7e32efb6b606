import {
  elementOf,
  InternalError,
  isArray,
  type JsonForm,
  type ScalarType,
  type TypeName,
  typeRow,
} from 'osl-compiler';
import {
  type JsonBytes,
  PORTION_BYTES,
  pieceByPiece,
  shortValue,
  type ValueWriter,
  type WriteValue,
} from './json-bytes.js';

/**
 * Returns a writer for values of `type` in JSON: int2, int4 and floats become numbers (NaN and infinities strings);
 * int8 and numeric strings, since JSON parsers would round them; timestamps RFC 3339; bytea base64; arrays JSON
 * arrays. jsonb is passed through, and all other types become Postgres' text.
 */
export function valueWriter(type: TypeName): ValueWriter {
  return isArray(type) ? arrayValue(scalarWriter(elementOf(type))) : scalarWriter(type);
}

/**
 * Returns a writer for a passage's key. The key is always a string, in the same form as other columns of its type if
 * those are strings. Source: contract, retrieval passage.
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

/** `NaN`, `Infinity` and `-Infinity` end in a letter, whereas numbers end in a digit. */
function float(source: Buffer, start: number, end: number, out: JsonBytes): void {
  if (isDigit(source[end - 1])) out.copy(source, start, end);
  else out.plain(source, start, end);
}

const DATE_LENGTH = 10;
const SPACE = 0x20;
const T = 0x54;
const Z = 0x5a;
const QUOTE = 0x22;

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
const BACKSLASH = 0x5c;
const BRACKET = 0x5b;
const END_BRACKET = 0x5d;
const EQUALS = 0x3d;

/** `unfinished` means that the element continues beyond the bytes that were to be read. */
type ArrayToken = 'open' | 'close' | 'comma' | 'null' | 'element' | 'unfinished';

/** Tokenizes a Postgres array (`{1,NULL,"a b"}`, `{{1,2},{3,4}}`). Lower bounds (`[0:1]={1,2}`) are skipped. */
export class ArrayReader {
  readonly source: Buffer;
  /** Start and end of the last element in `source`, without its quotes. */
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
   * Returns the next token, or null at the end. A quoted element longer than `most` bytes is `unfinished`, and the next
   * call continues it; an unquoted one is read whole.
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

  /** Reads an unquoted element, which ends at the next comma or brace; only here does NULL mean null. */
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
  // INVARIANT: all pieces but the last have PORTION_BYTES.
  while (at < written.length) {
    yield;
    ({ bytes, at } = unescaped(written, at, room));
    pieces.piece(bytes, 0, bytes.length, out);
  }
  pieces.close(out);
}

const NULL = Buffer.from('null');
