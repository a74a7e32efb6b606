import type { WriteFixed } from './fixed-column.js';

const MAX_INT32 = 0x7fff_ffff;
const MIN_INT32 = -0x8000_0000;
const MAX_UINT32 = 0xffff_ffff;
const WORD = 0x1_0000_0000;

/** Days from 1970-01-01 to 2000-01-01, where Postgres counts from. */
const EPOCH_DAYS = 10_957;
/** Microseconds from 1970-01-01 to 2000-01-01, and its two words. */
const EPOCH_US = EPOCH_DAYS * 86_400_000_000;
const EPOCH_HIGH = Math.floor(EPOCH_US / WORD);
const EPOCH_LOW = EPOCH_US - EPOCH_HIGH * WORD;
const DAY_US = 86_400_000_000;

/** Days since 2000 as days since 1970. Every date of Postgres fits but the infinite ones. */
export const date: WriteFixed = (source, start, into, at) => {
  const days = source.readInt32BE(start);
  if (days === MAX_INT32) return 'infinity';
  if (days === MIN_INT32) return '-infinity';
  into.writeInt32LE(days + EPOCH_DAYS, at);
  return undefined;
};

/** Microseconds since 2000 as microseconds since 1970; the last 48 years of Postgres' range are beyond Arrow's. */
export const timestamp: WriteFixed = (source, start, into, at) => {
  const high = source.readInt32BE(start);
  const low = source.readUInt32BE(start + 4);
  if (high === MAX_INT32 && low === MAX_UINT32) return 'infinity';
  if (high === MIN_INT32 && low === 0) return '-infinity';
  const sum = low + EPOCH_LOW;
  const carry = sum >= WORD ? 1 : 0;
  const total = high + EPOCH_HIGH + carry;
  if (total > MAX_INT32) return 'a time after 294247-01-10';
  into.writeUInt32LE(sum - carry * WORD, at);
  into.writeInt32LE(total, at + 4);
  return undefined;
};

/** Microseconds since midnight; Postgres has 24:00:00, Arrow has not. */
export const time: WriteFixed = (source, start, into, at) => {
  const high = source.readInt32BE(start);
  const low = source.readUInt32BE(start + 4);
  if (high * WORD + low >= DAY_US) return '24:00:00';
  into.writeUInt32LE(low, at);
  into.writeInt32LE(high, at + 4);
  return undefined;
};

const MAX_INT64 = 0x7fff_ffff_ffff_ffffn;

/** Microseconds, days and months as months, days and nanoseconds. */
export const interval: WriteFixed = (source, start, into, at) => {
  const us = source.readBigInt64BE(start);
  const days = source.readInt32BE(start + 8);
  const months = source.readInt32BE(start + 12);
  if (months === MAX_INT32 && days === MAX_INT32 && us === MAX_INT64) return 'infinity';
  if (months === MIN_INT32 && days === MIN_INT32 && us === -MAX_INT64 - 1n) return '-infinity';
  const ns = us * 1_000n;
  if (ns > MAX_INT64 || ns < -MAX_INT64 - 1n) return 'more than 292 years in hours';
  into.writeInt32LE(months, at);
  into.writeInt32LE(days, at + 4);
  into.writeBigInt64LE(ns, at + 8);
  return undefined;
};
