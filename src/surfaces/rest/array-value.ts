import { InternalError } from 'osl-compiler';
import type { JsonBytes, WriteValue } from './json-bytes.js';

const OPEN = 0x7b;
const CLOSE = 0x7d;
const COMMA = 0x2c;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const BRACKET = 0x5b;
const END_BRACKET = 0x5d;
const EQUALS = 0x3d;

/**
 * Writes a Postgres array (`{1,NULL,"a b"}`, `{{1,2},{3,4}}`) as a JSON array. Lower bounds other than 1
 * (`[0:1]={1,2}`) have no place in JSON and are dropped.
 */
export function arrayValue(element: WriteValue): WriteValue {
  return (source, start, end, out) => {
    let at = source[start] === BRACKET ? source.indexOf(EQUALS, start) + 1 : start;
    while (at < end) {
      const byte = source[at];
      if (byte === OPEN) {
        out.byte(BRACKET);
        at += 1;
      } else if (byte === CLOSE) {
        out.byte(END_BRACKET);
        at += 1;
      } else if (byte === COMMA) {
        out.byte(COMMA);
        at += 1;
      } else if (byte === QUOTE) {
        at = writeQuoted(source, at + 1, end, element, out);
      } else {
        at = writeBare(source, at, end, element, out);
      }
    }
  };
}

const NULL = Buffer.from('null');

/** An element without quotes ends at the next comma or brace; only here NULL is null. Gives its end. */
function writeBare(source: Buffer, start: number, end: number, element: WriteValue, out: JsonBytes): number {
  let at = start;
  while (at < end && source[at] !== COMMA && source[at] !== CLOSE) at += 1;
  if (at - start === 4 && source.toString('latin1', start, at).toUpperCase() === 'NULL')
    out.copy(NULL, 0, NULL.length);
  else element(source, start, at, out);
  return at;
}

/** An element in quotes; `start` is after the first. Gives the position after the last. */
function writeQuoted(
  source: Buffer,
  start: number,
  end: number,
  element: WriteValue,
  out: JsonBytes,
): number {
  let escapes = 0;
  let at = start;
  while (at < end && source[at] !== QUOTE) {
    if (source[at] === BACKSLASH) {
      escapes += 1;
      at += 1;
    }
    at += 1;
  }
  if (at >= end) throw new InternalError('an array ends inside an element');
  if (escapes === 0) {
    element(source, start, at, out);
  } else {
    const plain = unescapeElement(source, start, at);
    element(plain, 0, plain.length, out);
  }
  return at + 1;
}

function unescapeElement(source: Buffer, start: number, end: number): Buffer {
  const plain = Buffer.allocUnsafe(end - start);
  let length = 0;
  for (let at = start; at < end; at++) {
    if (source[at] === BACKSLASH) at += 1;
    plain[length++] = source[at] ?? 0;
  }
  return plain.subarray(0, length);
}
