import { isUtf8 } from 'node:buffer';
import {
  arrayText,
  type Expr,
  elementOf,
  elementOid,
  InternalError,
  isArray,
  oidOf,
  queryError,
  type ScalarType,
  type TypeName,
} from 'osl-compiler';
import type { StepInput } from '../parts.js';
import { slotValues } from './slot-values.js';

/** Returns the text of a constant expression: a literal or `$n`, possibly with casts. Null for NULL. */
export function textValue(expr: Expr, input: StepInput): string | null {
  if (expr.kind === 'cast') return textValue(expr.arg, input);
  if (expr.kind === 'null') return null;
  if (expr.kind === 'boolean') return String(expr.value);
  if (expr.kind !== 'parameter') throw new InternalError(`a ${expr.kind} is not a constant`);
  const slot = input.plan.slots[expr.slot];
  if (slot === undefined) return null;
  const declared = slot.kind === 'client' ? slot.declared : null;
  if (slot.kind === 'client' && declared !== null && !SAME_TEXT_FORMAT.has(declared.oid)) {
    throw queryError('declaredType', { index: slot.index + 1, type: declared.sql, cast: null });
  }
  const [value] = slotValues([slot], new Map(), input);
  if (value === undefined || value.bytes === null) return null;
  if (value.format === 1) return textOfBinary(value.bytes, slot.type, declared?.oid);
  return Buffer.from(value.bytes).toString('utf8');
}

/** `name`, `oid`, `varchar` and their arrays: their text format is that of the compiler's types for them. */
const SAME_TEXT_FORMAT: ReadonlySet<number> = new Set([19, 26, 1003, 1015, 1028, 1043]);

/** Parses a decimal integer; NaN for anything else, such as `0x10`, `1e1` or empty text. */
export function wholeNumber(text: string | null): number {
  return text !== null && /^\s*[+-]?\d+\s*$/.test(text) ? Number(text) : Number.NaN;
}

/** Returns a constant array in Postgres' text format; null for NULL. */
export function arrayValue(expr: Expr, input: StepInput): string | null {
  if (expr.kind === 'cast') return arrayValue(expr.arg, input);
  if (expr.kind !== 'array') return textValue(expr, input);
  return arrayText(expr.items.map((i) => textValue(i, input)));
}

/** Returns the value of a constant expression as a JSON value. Arrays omit NULLs; a NULL array is empty. */
export function constantValue(expr: Expr, input: StepInput): unknown {
  if (expr.kind === 'array' || isArray(expr.type)) return elements(arrayValue(expr, input));
  const text = textValue(expr, input);
  return text === null ? null : jsonValue(text, expr.type);
}

/** Converts a value from Postgres' text format to JSON from which `jsonb_to_recordset` restores it. */
export function jsonValue(text: string | null, type: TypeName): unknown {
  if (text === null) return null;
  if (type === 'jsonb') return parseJson(text);
  if (type === 'bool') return text === 't' || text === 'true';
  // NaN and infinities do not exist in JSON, so they stay text, which `jsonb_to_recordset` parses.
  const number = type === 'int2' || type === 'int4' || type === 'float4' || type === 'float8';
  return number && Number.isFinite(Number(text)) ? Number(text) : text;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw queryError('invalidLiteral', { type: 'jsonb' });
  }
}

/** Like `elementsOrNull`, but omits NULLs. */
export function elements(text: string | null): readonly string[] {
  return elementsOrNull(text).filter((e) => e !== null);
}

/** Parses a one-dimensional array in Postgres' text format. For null, returns an empty list. */
export function elementsOrNull(text: string | null): readonly (string | null)[] {
  if (text === null || text === '{}') return [];
  const items: (string | null)[] = [];
  const pattern = /"((?:[^"\\]|\\.)*)"|((?:[^,{}"\\]|\\.)+)/gs;
  for (const match of text.slice(1, -1).matchAll(pattern)) {
    const [, quoted, bare] = match;
    if (quoted !== undefined) items.push(quoted.replace(/\\(.)/gs, '$1'));
    const word = bare?.trim() ?? '';
    if (word !== '') items.push(word.toUpperCase() === 'NULL' ? null : word.replace(/\\(.)/gs, '$1'));
  }
  return items;
}

/**
 * Converts a value from binary to text format, for the types that drivers send as table function arguments.
 *
 * @param oid declared type, if it is not `type`
 * @throws QueryError E0511 (22P02) for malformed bytes, and for unsupported types
 */
export function textOfBinary(bytes: Uint8Array, type: TypeName, oid = oidOf(type)): string {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return isArray(type)
    ? arrayOfBinary(buffer, elementOf(type), elementOid(oid))
    : scalarOfBinary(buffer, type, oid);
}

const OID = 26;

function scalarOfBinary(b: Buffer, type: ScalarType, oid: number): string {
  if (oid === OID) return String(requireSize(b, 4, type).readUInt32BE(0));
  switch (type) {
    case 'text':
    case 'bpchar':
    case 'json':
      if (!isUtf8(b) || b.includes(0)) throw invalid(type);
      return b.toString('utf8');
    case 'bool':
      return requireSize(b, 1, type).readUInt8(0) === 0 ? 'f' : 't';
    case 'int2':
      return String(requireSize(b, 2, type).readInt16BE(0));
    case 'int4':
      return String(requireSize(b, 4, type).readInt32BE(0));
    case 'int8':
      return String(requireSize(b, 8, type).readBigInt64BE(0));
    case 'float4':
      return floatText(requireSize(b, 4, type).readFloatBE(0));
    case 'float8':
      return floatText(requireSize(b, 8, type).readDoubleBE(0));
    case 'uuid':
      return requireSize(b, 16, type)
        .toString('hex')
        .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
    case 'bytea':
      return `\\x${b.toString('hex')}`;
    case 'jsonb':
      if (b[0] !== 1) throw invalid(type);
      return b.toString('utf8', 1);
    default:
      throw queryError('typeMismatch', {
        detail: `an argument of a table function cannot be a binary ${type}`,
        hint: 'send it in text format',
      });
  }
}

/** Layout: dimensions, flag, element type; length and lower bound per dimension; then length-prefixed elements. */
function arrayOfBinary(b: Buffer, element: ScalarType, elementOid: number | null): string {
  const type: TypeName = `${element}[]`;
  // INVARIANT: elements are decoded by the declared type, never by the expected one.
  if (b.length < 12 || elementOid === null || b.readUInt32BE(8) !== elementOid) throw invalid(type);
  const dimensions = b.readInt32BE(0);
  if (dimensions === 0) return '{}';
  if (dimensions !== 1 || b.length < 20) throw invalid(type);
  const items: (string | null)[] = [];
  let at = 20;
  for (let remaining = b.readInt32BE(12); remaining > 0; remaining--) {
    if (b.length < at + 4) throw invalid(type);
    const length = b.readInt32BE(at);
    at += 4;
    if (b.length < at + Math.max(0, length)) throw invalid(type);
    items.push(length < 0 ? null : scalarOfBinary(b.subarray(at, at + length), element, elementOid));
    at += Math.max(0, length);
  }
  if (at !== b.length) throw invalid(type);
  return arrayText(items);
}

function requireSize(b: Buffer, size: number, type: TypeName): Buffer {
  if (b.length !== size) throw invalid(type);
  return b;
}

function floatText(value: number): string {
  if (Number.isFinite(value) || Number.isNaN(value)) return String(value);
  return value > 0 ? 'Infinity' : '-Infinity';
}

function invalid(type: TypeName) {
  return queryError('invalidLiteral', { type });
}
