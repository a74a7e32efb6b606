import { InternalError } from 'osl-compiler';
import type { ArrowBytes } from './buffers.js';

const NEGATIVE = 0x4000;
const SPECIAL: ReadonlyMap<number, Buffer> = new Map([
  [0xc000, Buffer.from('NaN')],
  [0xd000, Buffer.from('Infinity')],
  [0xf000, Buffer.from('-Infinity')],
]);
const HEAD = 8;
const ZERO = 0x30;
const MINUS = 0x2d;
const POINT = 0x2e;

/**
 * Converts a numeric at `source[start …)` from Postgres' binary format (groups of four decimal digits) to its text:
 * all digits of its scale, no exponent.
 */
export function numericText(source: Buffer, start: number, out: ArrowBytes): void {
  const groups = source.readUInt16BE(start);
  const weight = source.readInt16BE(start + 2);
  const sign = source.readUInt16BE(start + 4);
  const scale = source.readUInt16BE(start + 6);
  const special = SPECIAL.get(sign);
  if (special !== undefined) {
    out.reserve(special.length);
    out.length += special.copy(out.bytes, out.length);
    return;
  }
  if (sign !== 0 && sign !== NEGATIVE) throw new InternalError('a numeric has no known sign');
  const group = (n: number): number => (n >= 0 && n < groups ? source.readUInt16BE(start + HEAD + 2 * n) : 0);
  out.reserve(4 * (Math.max(weight, 0) + 1) + scale + 8);
  const { bytes } = out;
  let at = out.length;
  if (sign === NEGATIVE) bytes[at++] = MINUS;
  at = weight < 0 ? digits(0, bytes, at, 1) : digits(group(0), bytes, at, widthOf(group(0)));
  for (let n = 1; n <= weight; n++) at = digits(group(n), bytes, at, 4);
  if (scale > 0) {
    bytes[at++] = POINT;
    const end = at + scale;
    for (let n = weight + 1; at < end; n++) at = digits(group(n), bytes, at, 4);
    at = end; // the last group may extend beyond the scale
  }
  out.length = at;
}

function widthOf(group: number): number {
  return group < 10 ? 1 : group < 100 ? 2 : group < 1_000 ? 3 : 4;
}

/** Writes the last `width` of four digits. */
function digits(group: number, bytes: Buffer, at: number, width: number): number {
  let left = group;
  for (let n = width - 1; n >= 0; n--) {
    bytes[at + n] = ZERO + (left % 10);
    left = Math.floor(left / 10);
  }
  return at + width;
}
