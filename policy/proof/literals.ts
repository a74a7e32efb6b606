import type { TypeName } from 'osl-compiler';

/** Least and greatest values of types without infinity and NaN; a time is in microseconds since midnight. */
const RANGES: Readonly<Partial<Record<TypeName, { readonly min: string; readonly max: string }>>> = {
  int2: { min: '-32768', max: '32767' },
  int4: { min: '-2147483648', max: '2147483647' },
  int8: { min: '-9223372036854775808', max: '9223372036854775807' },
  time: { min: '0', max: '86400000000' },
};

/** Returns the range of a type that has neither infinity nor NaN; null for other types. */
export function rangeOf(type: TypeName): { readonly min: string; readonly max: string } | null {
  return RANGES[type] ?? null;
}

/** Returns the decimal digits of a number literal; null for another notation or type. */
export function numberIn(literal: string, type: TypeName): string | null {
  const [, digits = null] = /^\s*\+?(-?\d{1,400}(?:\.\d{1,400})?)\s*$/.exec(literal) ?? [];
  switch (type) {
    case 'int2':
    case 'int4':
    case 'int8':
      return digits?.includes('.') === true ? null : digits;
    case 'numeric':
      return digits;
    case 'float8':
      // A literal with more digits would be rounded.
      return digits !== null && digits.replace(/[-.]/g, '').length <= 15 ? digits : null;
    default:
      return null;
  }
}

/** Returns the rank (see `Value`) of a literal for infinity or NaN; null for other literals, and for other types. */
export function rankIn(literal: string, type: TypeName): string | null {
  const word = literal.trim().toLowerCase();
  const isNumber = type === 'numeric' || type === 'float4' || type === 'float8';
  if (!isNumber && type !== 'date' && type !== 'timestamp' && type !== 'timestamptz') return null;
  if (isNumber && word === 'nan') return '2';
  if (/^\+?inf(inity)?$/.test(word) && (isNumber || word.endsWith('inity'))) return '1';
  return /^-inf(inity)?$/.test(word) && (isNumber || word.endsWith('inity')) ? '-1' : null;
}

const DAY_MS = 86_400_000;

/**
 * Converts a date to days since 1970, a timestamp to microseconds since 1970, and a time to microseconds since
 * midnight; null if the literal is not in ISO notation.
 */
export function momentOf(literal: string, type: TypeName): string | null {
  const [, day, time = '00:00:00', zone] =
    /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?)(Z|[+-]\d\d(?::?\d\d)?)?)?$/.exec(literal) ??
    [];
  if (type === 'time') return timeIn(literal);
  const days = day === undefined ? null : daysOf(day);
  if (days === null) return null;
  switch (type) {
    case 'date':
      return time === '00:00:00' && zone === undefined ? String(days) : null;
    case 'timestamp':
      return zone === undefined ? microseconds(days, time, 0) : null;
    case 'timestamptz': {
      const offset = zone === undefined ? 0 : minutesOf(zone);
      return microseconds(days, time, offset);
    }
    default:
      return null;
  }
}

function daysOf(day: string): number | null {
  const ms = Date.parse(`${day}T00:00:00Z`);
  return Number.isNaN(ms) || !new Date(ms).toISOString().startsWith(day) ? null : ms / DAY_MS;
}

function minutesOf(zone: string): number {
  if (zone === 'Z') return 0;
  const [, sign, hours = '0', minutes = '0'] = /^([+-])(\d\d):?(\d\d)?$/.exec(zone) ?? [];
  return (sign === '-' ? -1 : 1) * (60 * Number(hours) + Number(minutes));
}

function microseconds(days: number, time: string, offsetMinutes: number): string | null {
  const timeOfDay = timeIn(time);
  if (timeOfDay === null) return null;
  return String(BigInt(days) * 86_400_000_000n + BigInt(timeOfDay) - BigInt(offsetMinutes) * 60_000_000n);
}

function timeIn(text: string): string | null {
  const [, hours, minutes, seconds = '0', fraction = ''] =
    /^(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?$/.exec(text) ?? [];
  if (hours === undefined || Number(hours) > 23 || Number(minutes) > 59 || Number(seconds) > 59) return null;
  const whole = 3_600 * Number(hours) + 60 * Number(minutes) + Number(seconds);
  return String(BigInt(whole) * 1_000_000n + BigInt(fraction.padEnd(6, '0')));
}
