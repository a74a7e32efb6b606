import { elementOf, isArray, type JsonForm, type ScalarType, type TypeName, typeRow } from 'osl-compiler';
import { arrayValue } from './array-value.js';
import { type JsonBytes, pieceByPiece, shortValue, type ValueWriter, type WriteValue } from './json-bytes.js';

/**
 * Writer for values of `type` in JSON: int2, int4 and floats as numbers (NaN and infinities as strings), int8 and
 * numeric as strings, since JSON readers round them, timestamps in RFC 3339, bytea as base64, jsonb as is, arrays as
 * arrays, all else as Postgres' text.
 */
export function valueWriter(type: TypeName): ValueWriter {
  return isArray(type) ? arrayValue(scalarWriter(elementOf(type))) : scalarWriter(type);
}

/**
 * Writer for a passage's key: always a string, equal to the form of other columns of this type if that is a string.
 * Source: contract, retrieval passage.
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

/** Replaces line breaks by blanks; JSON strings contain none. */
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

/** `NaN`, `Infinity` and `-Infinity` end in a letter, numbers in a digit. */
function float(source: Buffer, start: number, end: number, out: JsonBytes): void {
  if (isDigit(source[end - 1])) out.copy(source, start, end);
  else out.plain(source, start, end);
}

const DATE_LENGTH = 10;
const SPACE = 0x20;
const T = 0x54;
const Z = 0x5a;
const QUOTE = 0x22;

/** `2026-01-31 00:00:00.5` with a T. Infinities, years of five digits and years BC remain in Postgres' form. */
function timestamp(source: Buffer, start: number, end: number, out: JsonBytes): void {
  if (source[start + DATE_LENGTH] !== SPACE || !isDigit(source[end - 1])) {
    out.plain(source, start, end);
    return;
  }
  out.byte(QUOTE);
  out.copy(source, start, start + DATE_LENGTH);
  out.byte(T);
  out.copy(source, start + DATE_LENGTH + 1, end);
  out.byte(QUOTE);
}

/** `2026-01-31 00:00:00+00` as `2026-01-31T00:00:00Z`; the sessions' time zone is UTC. */
function timestamptz(source: Buffer, start: number, end: number, out: JsonBytes): void {
  const zone = end - 3;
  const isUtc = source[zone] === 0x2b && source[zone + 1] === 0x30 && source[zone + 2] === 0x30;
  if (source[start + DATE_LENGTH] !== SPACE || !isUtc) {
    out.plain(source, start, end);
    return;
  }
  out.byte(QUOTE);
  out.copy(source, start, start + DATE_LENGTH);
  out.byte(T);
  out.copy(source, start + DATE_LENGTH + 1, zone);
  out.byte(Z);
  out.byte(QUOTE);
}

/** Converts from hexadecimal digits. */
function base64(source: Buffer, start: number, end: number, out: JsonBytes): void {
  out.text(Buffer.from(source.toString('latin1', start, end), 'hex').toString('base64'));
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}
