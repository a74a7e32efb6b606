import { Decimal } from 'apache-arrow';
import { type ColumnForm, decimalOf } from 'osl-compiler';
import type { ValueLayout, WriteFixed } from './fixed-column.js';

/** The most digits of Arrow's decimals of 128 and of 256 bits. */
const MOST_IN_128 = 38;
const MOST_IN_256 = 76;

/**
 * A column that is declared as `numeric(p,s)` in the decimals of Arrow; null where these have no room for it. NaN is
 * none of them, nor is a number of more digits than are declared: nothing is rounded.
 */
export function decimalLayout(form: ColumnForm | null): ValueLayout | null {
  const declared = decimalOf(form);
  if (declared === null) return null;
  const { precision, scale } = declared;
  if (precision > MOST_IN_256 || scale < 0 || scale > precision) return null;
  const bits = precision <= MOST_IN_128 ? 128 : 256;
  return {
    type: new Decimal(scale, precision, bits),
    width: bits / 8,
    view: Uint32Array,
    write: decimal(bits / 64, scale, 10n ** BigInt(precision)),
  };
}

const NEGATIVE = 0x4000;
const HEAD = 8;
/** Decimal digits of one group. */
const GROUP = 4;
/** What 76 digits come to in groups, before the point and altogether. */
const MOST_WEIGHT = 19;
const MOST_GROUPS = 21;

/** From Postgres' binary format: groups of four decimal digits, of which the first counts 10000 to the `weight`. */
function decimal(words: number, scale: number, beyond: bigint): WriteFixed {
  return (source, start, into, at) => {
    const groups = source.readUInt16BE(start);
    const weight = source.readInt16BE(start + 2);
    const sign = source.readUInt16BE(start + 4);
    if (sign !== 0 && sign !== NEGATIVE) return 'a numeric that is no number';
    if (weight > MOST_WEIGHT || groups > MOST_GROUPS) return 'a numeric of more digits than are declared';
    let digits = 0n;
    for (let n = 0; n < groups; n++)
      digits = digits * 10_000n + BigInt(source.readUInt16BE(start + HEAD + 2 * n));
    const shift = scale + GROUP * (weight - groups + 1);
    const unit = 10n ** BigInt(Math.abs(shift));
    if (shift < 0 && digits % unit !== 0n) return 'a numeric of a greater scale than is declared';
    const value = shift < 0 ? digits / unit : digits * unit;
    if (value >= beyond) return 'a numeric of more digits than are declared';
    let rest = sign === NEGATIVE ? -value : value;
    for (let word = 0; word < words; word++) {
      into.writeBigUInt64LE(BigInt.asUintN(64, rest), at + 8 * word);
      rest >>= 64n;
    }
    return undefined;
  };
}
