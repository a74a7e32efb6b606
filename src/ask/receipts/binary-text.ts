import { elementOf, isArray, type ScalarType, type TypeName } from 'osl-compiler';

/**
 * Converts the value at `source[start … end)` from Postgres' binary format to its text format. Returns ASCII texts as
 * strings, other texts as UTF-8.
 */
export type ToText = (source: Buffer, start: number, end: number) => string | Buffer;

/**
 * Returns the conversion for a type; null if there is none. It writes texts as a session does with the settings
 * DateStyle ISO, IntervalStyle postgres, TimeZone UTC, extra_float_digits 1 and bytea_output hex.
 */
export function toTextOf(type: TypeName): ToText | null {
  if (!isArray(type)) return CONVERSIONS[type] ?? null;
  const element = CONVERSIONS[elementOf(type)];
  return element === undefined ? null : (source, start) => arrayText(source, start, element);
}

const copied: ToText = (source, start, end) => source.subarray(start, end);

const CONVERSIONS: Readonly<Partial<Record<ScalarType, ToText>>> = {
  bool: (source, start) => (source[start] === 0 ? 'f' : 't'),
  int2: (source, start) => String(source.readInt16BE(start)),
  int4: (source, start) => String(source.readInt32BE(start)),
  int8: (source, start) => String(source.readBigInt64BE(start)),
  float4: (source, start) => floatText(source.readFloatBE(start), SINGLE),
  float8: (source, start) => floatText(source.readDoubleBE(start), DOUBLE),
  numeric: numericText,
  text: copied,
  bpchar: copied,
  json: copied,
  // The first byte is the version of the binary format.
  jsonb: (source, start, end) => source.subarray(start + 1, end),
  uuid: (source, start) => {
    const hex = source.toString('hex', start, start + 16);
    return hex.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  },
  bytea: (source, start, end) => `\\x${source.toString('hex', start, end)}`,
  date: (source, start) => dateText(source.readInt32BE(start)),
  time: (source, start) => timeText(Number(source.readBigInt64BE(start))),
  timestamp: (source, start) => momentText(source.readBigInt64BE(start), ''),
  timestamptz: (source, start) => momentText(source.readBigInt64BE(start), '+00'),
  interval: intervalText,
};

// ---------------------------------------------------------------- numbers

const NEGATIVE = 0x4000;
const SPECIAL: ReadonlyMap<number, string> = new Map([
  [0xc000, 'NaN'],
  [0xd000, 'Infinity'],
  [0xf000, '-Infinity'],
]);

/** A numeric consists of groups of four decimal digits; the first is multiplied by 10000 to the power of `weight`. */
function numericText(source: Buffer, start: number): string {
  const count = source.readUInt16BE(start);
  const weight = source.readInt16BE(start + 2);
  const sign = source.readUInt16BE(start + 4);
  const scale = source.readUInt16BE(start + 6);
  const special = SPECIAL.get(sign);
  if (special !== undefined) return special;
  let groups = '';
  for (let n = 0; n < count; n++)
    groups += String(source.readUInt16BE(start + 8 + 2 * n)).padStart(GROUP, '0');
  const places = GROUP * (weight + 1);
  const whole = places > 0 ? groups.slice(0, places).padEnd(places, '0') : '';
  const part = places >= 0 ? groups.slice(places) : '0'.repeat(-places) + groups;
  const digits = whole.replace(/^0+(?=\d)/, '') || '0';
  return `${sign === NEGATIVE ? '-' : ''}${digits}${scale > 0 ? `.${part.slice(0, scale).padEnd(scale, '0')}` : ''}`;
}

/** Decimal digits in one group of a numeric. */
const GROUP = 4;

interface FloatFormat {
  /** Number of bits of the significand, and of decimal digits that always suffice to represent it. */
  readonly bits: number;
  readonly digits: number;
  /** The lowest power of ten from which on numbers are written with an exponent. */
  readonly exponentFrom: number;
  readonly rounded: (value: number) => number;
}

const DOUBLE: FloatFormat = { bits: 53, digits: 17, exponentFrom: 15, rounded: (value) => value };
const SINGLE: FloatFormat = { bits: 24, digits: 9, exponentFrom: 6, rounded: Math.fround };

/** Writes a number as Postgres does: the shortest decimal that is nearer to it than to any other number of its type. */
function floatText(value: number, format: FloatFormat): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'NaN' : value < 0 ? '-Infinity' : 'Infinity';
  const sign = value < 0 || Object.is(value, -0) ? '-' : '';
  if (value === 0) return `${sign}0`;
  const { digits, exponent } = shortest(Math.abs(value), format);
  if (exponent < -4 || exponent >= format.exponentFrom) {
    const more = digits.length > 1 ? `.${digits.slice(1)}` : '';
    const power = String(Math.abs(exponent)).padStart(2, '0');
    return `${sign}${digits.slice(0, 1)}${more}e${exponent < 0 ? '-' : '+'}${power}`;
  }
  if (exponent < 0) return `${sign}0.${'0'.repeat(-exponent - 1)}${digits}`;
  const whole = digits.slice(0, exponent + 1).padEnd(exponent + 1, '0');
  const part = digits.slice(exponent + 1);
  return `${sign}${whole}${part === '' ? '' : `.${part}`}`;
}

interface Decimal {
  readonly digits: string;
  /** Power of ten of the first digit. */
  readonly exponent: number;
}

function shortest(value: number, format: FloatFormat): Decimal {
  if (format === DOUBLE) {
    const decimal = decimalOf(value.toExponential());
    if (!isHalfway(decimal, format.bits)) return decimal;
  }
  const denotes = (decimal: Decimal): boolean =>
    format.rounded(numberOf(decimal)) === value && !isHalfway(decimal, format.bits);
  // Numbers just below a power of two are closer together, so perhaps only the next higher decimal is near enough.
  const isPower = Number.isInteger(Math.log2(value));
  for (let places = 0; places < format.digits - 1; places++) {
    const text = value.toExponential(places);
    if (format.rounded(Number(text)) === value) {
      const nearest = evenOf(value, places, text);
      if (denotes(nearest)) return nearest;
    }
    if (!isPower) continue;
    const above = nextAbove(decimalOf(text), places);
    if (denotes(above)) return above;
  }
  return evenOf(value, format.digits - 1, value.toExponential(format.digits - 1));
}

function nextAbove({ digits, exponent }: Decimal, places: number): Decimal {
  const next = String(BigInt(digits.padEnd(places + 1, '0')) + 1n);
  return { digits: next.replace(/0+$/, ''), exponent: exponent + next.length - places - 1 };
}

function numberOf({ digits, exponent }: Decimal): number {
  return Number(`${digits.slice(0, 1)}.${digits.slice(1)}e${exponent}`);
}

/**
 * Rounds `value` to `places` digits after the first; a tie goes to the decimal with an even last digit.
 *
 * @param text `value.toExponential(places)`, which rounds a tie up
 */
function evenOf(value: number, places: number, text: string): Decimal {
  const { digits, exponent } = decimalOf(text);
  const last = Number(digits.at(places) ?? 0);
  // A value halfway between two decimals has exactly one digit more than they have.
  if (last % 2 === 0 || Number(value.toExponential(places + 1)) !== value) return { digits, exponent };
  const [exact = '', power] = value.toExponential(100).split('e');
  // If `value` was rounded up to a power of ten, the digit at the last place became 0, which is even.
  const isTie = Number(power) === exponent && /^50*$/.test(exact.replace('.', '').slice(places + 1));
  if (!isTie) return { digits, exponent };
  return { digits: `${digits.slice(0, places)}${last - 1}`.replace(/0+$/, ''), exponent };
}

function decimalOf(text: string): Decimal {
  const [mantissa = '', exponent = '0'] = text.split('e');
  return { digits: mantissa.replace('.', '').replace(/0+$/, ''), exponent: Number(exponent) };
}

/**
 * True if a decimal lies exactly between two numbers with `bits` significant bits: that is, if it has one bit more.
 * Postgres does not write such a decimal for either of them.
 */
function isHalfway({ digits, exponent }: Decimal, bits: number): boolean {
  const power = exponent - digits.length + 1;
  // No higher power of five divides a number of `bits` + 1 bits or a decimal of 17 digits.
  if (Math.abs(power) > 24) return false;
  let whole = BigInt(digits);
  const five = 5n ** BigInt(Math.abs(power));
  if (power < 0 && whole % five !== 0n) return false;
  whole = power < 0 ? whole / five : whole * five;
  while (whole !== 0n && whole % 2n === 0n) whole /= 2n;
  return whole.toString(2).length === bits + 1;
}

// ---------------------------------------------------------------- dates and times

const MOST_INT32 = 0x7fff_ffff;
const LEAST_INT32 = -0x8000_0000;
const MOST_INT64 = 0x7fff_ffff_ffff_ffffn;
const DAY_US = 86_400_000_000n;
/** Days from 0000-03-01, the start of a 400-year cycle, to 2000-01-01, from which Postgres counts days. */
const DAYS_TO_2000 = 730_425;
const CYCLE_DAYS = 146_097;

/** Formats a date. @param days since 2000-01-01 */
function dateText(days: number): string {
  if (days === MOST_INT32) return 'infinity';
  if (days === LEAST_INT32) return '-infinity';
  const { text, era } = dayText(days);
  return text + era;
}

/** Formats a day; years before 1 get ` BC`. Years start in March, so that a leap day is the last day of its year. */
function dayText(days: number): { readonly text: string; readonly era: string } {
  const shifted = days + DAYS_TO_2000;
  const cycle = Math.floor(shifted / CYCLE_DAYS);
  const day = shifted - cycle * CYCLE_DAYS;
  const year = Math.floor(
    (day - Math.floor(day / 1_460) + Math.floor(day / 36_524) - Math.floor(day / 146_096)) / 365,
  );
  const ofYear = day - (365 * year + Math.floor(year / 4) - Math.floor(year / 100));
  const month = Math.floor((5 * ofYear + 2) / 153);
  const ofMonth = ofYear - Math.floor((153 * month + 2) / 5) + 1;
  const calendarMonth = month < 10 ? month + 3 : month - 9;
  const calendarYear = year + 400 * cycle + (calendarMonth <= 2 ? 1 : 0);
  const shown = calendarYear > 0 ? calendarYear : 1 - calendarYear;
  const text = `${String(shown).padStart(4, '0')}-${two(calendarMonth)}-${two(ofMonth)}`;
  return { text, era: calendarYear > 0 ? '' : ' BC' };
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}

/** @param us a number of microseconds, 0 or more, such as those since midnight */
function timeText(us: number): string {
  const seconds = Math.floor(us / 1_000_000);
  const part = us % 1_000_000;
  const fraction = part === 0 ? '' : `.${String(part).padStart(6, '0').replace(/0+$/, '')}`;
  return `${two(Math.floor(seconds / 3_600))}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}${fraction}`;
}

/** Formats a timestamp. @param us microseconds since 2000-01-01 */
function momentText(us: bigint, zone: string): string {
  if (us === MOST_INT64) return 'infinity';
  if (us === -MOST_INT64 - 1n) return '-infinity';
  const ofDay = ((us % DAY_US) + DAY_US) % DAY_US;
  const { text, era } = dayText(Number((us - ofDay) / DAY_US));
  return `${text} ${timeText(Number(ofDay))}${zone}${era}`;
}

function intervalText(source: Buffer, start: number): string {
  const us = source.readBigInt64BE(start);
  const days = source.readInt32BE(start + 8);
  const months = source.readInt32BE(start + 12);
  if (months === MOST_INT32 && days === MOST_INT32 && us === MOST_INT64) return 'infinity';
  if (months === LEAST_INT32 && days === LEAST_INT32 && us === -MOST_INT64 - 1n) return '-infinity';
  const parts: string[] = [];
  let negative = false;
  const counted = [
    [Math.trunc(months / 12), 'year'],
    [months % 12, 'mon'],
    [days, 'day'],
  ] as const;
  for (const [value, unit] of counted) {
    if (value === 0) continue;
    parts.push(`${negative && value > 0 ? '+' : ''}${value} ${unit}${value === 1 ? '' : 's'}`);
    negative = value < 0;
  }
  if (us !== 0n || parts.length === 0) {
    const size = us < 0n ? -us : us;
    const hours = String(size / 3_600_000_000n).padStart(2, '0');
    const rest = timeText(Number(size % 3_600_000_000n)).slice(2);
    parts.push(`${us < 0n ? '-' : negative ? '+' : ''}${hours}${rest}`);
  }
  return parts.join(' ');
}

// ---------------------------------------------------------------- arrays

const HEAD = 12;
const DIMENSION = 8;

/** Maximum number of characters in the text of an array. */
const MOST_CHARACTERS = 1_048_576;

/** Error for a value whose text would be too long to be made in one turn of the event loop. */
export class TextTooLong extends Error {}

/** Returns the number of elements of an array in binary format. */
export function elementsIn(source: Buffer, start: number): number {
  const dimensions = source.readInt32BE(start);
  let count = dimensions === 0 ? 0 : 1;
  for (let n = 0; n < dimensions; n++) count *= source.readInt32BE(start + HEAD + DIMENSION * n);
  return count;
}

/**
 * Converts an array from binary to text format. Layout: number of dimensions, a flag, the element type, then the size
 * and lower bound of each dimension, then the elements.
 *
 * @throws TextTooLong
 */
function arrayText(source: Buffer, start: number, element: ToText): Buffer {
  const dimensions = source.readInt32BE(start);
  if (dimensions === 0) return Buffer.from('{}');
  const sizes: number[] = [];
  const bounds: number[] = [];
  for (let n = 0; n < dimensions; n++) {
    sizes.push(source.readInt32BE(start + HEAD + DIMENSION * n));
    bounds.push(source.readInt32BE(start + HEAD + DIMENSION * n + 4));
  }
  let at = start + HEAD + DIMENSION * dimensions;
  let characters = 0;
  const elementText = (): string => {
    const length = source.readInt32BE(at);
    at += 4;
    if (length < 0) return 'NULL';
    const text = elementInArray(String(element(source, at, at + length)));
    at += length;
    characters += text.length;
    if (characters > MOST_CHARACTERS) throw new TextTooLong('an array of more than 1 MiB');
    return text;
  };
  const listed = (level: number): string => {
    const items = Array.from({ length: sizes[level] ?? 0 }, () =>
      level === dimensions - 1 ? elementText() : listed(level + 1),
    );
    return `{${items.join(',')}}`;
  };
  const usual = bounds.every((bound) => bound === 1);
  const ranges = bounds.map((bound, n) => `[${bound}:${bound + (sizes[n] ?? 0) - 1}]`);
  return Buffer.from(`${usual ? '' : `${ranges.join('')}=`}${listed(0)}`, 'utf8');
}

/** Writes an element of an array as Postgres does: in quotes if it would be misread without them. */
export function elementInArray(text: string): string {
  const isBare = text !== '' && !/["\\{}, \t\n\r\v\f]/.test(text) && text.toUpperCase() !== 'NULL';
  return isBare ? text : `"${text.replace(/["\\]/g, '\\$&')}"`;
}
