import { isUtf8 } from 'node:buffer';
import {
  arrayText,
  elementOf,
  elementOid,
  isArray,
  oidOf,
  queryError,
  type ScalarType,
  type TypeName,
} from 'osl-compiler';

/**
 * Converts a value from binary to text format, for the types that drivers send for table function arguments.
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
  if (oid === OID) return String(sized(b, 4, type).readUInt32BE(0));
  switch (type) {
    case 'text':
    case 'bpchar':
    case 'json':
      if (!isUtf8(b) || b.includes(0)) throw invalid(type);
      return b.toString('utf8');
    case 'bool':
      return sized(b, 1, type).readUInt8(0) === 0 ? 'f' : 't';
    case 'int2':
      return String(sized(b, 2, type).readInt16BE(0));
    case 'int4':
      return String(sized(b, 4, type).readInt32BE(0));
    case 'int8':
      return String(sized(b, 8, type).readBigInt64BE(0));
    case 'float4':
      return floatText(sized(b, 4, type).readFloatBE(0));
    case 'float8':
      return floatText(sized(b, 8, type).readDoubleBE(0));
    case 'uuid':
      return sized(b, 16, type)
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
  for (let left = b.readInt32BE(12); left > 0; left--) {
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

function sized(b: Buffer, size: number, type: TypeName): Buffer {
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
