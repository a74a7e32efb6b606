/** Point in time, or a day at midnight, without a time zone of its own. */
export interface Moment {
  /** Whole seconds since 1970. */
  readonly seconds: number;
  /** Microseconds since then, from 0 to 999,999. */
  readonly micros: number;
}

const MOMENT = /^(\d{4,6})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?(?:Z|\+00)?)?( BC)?$/;

/** Reads a date, timestamp or timestamptz as an answer has it; null for infinities and anything else. */
export function momentOf(text: string): Moment | null {
  const match = MOMENT.exec(text);
  if (match === null) return null;
  const [, year, month, day, hour = 0, minute = 0, second = 0, fraction = '', bc] = match;
  const days = daysSince1970(bc === undefined ? Number(year) : 1 - Number(year), Number(month), Number(day));
  return {
    seconds: days * 86_400 + Number(hour) * 3_600 + Number(minute) * 60 + Number(second),
    micros: Number(fraction.padEnd(6, '0')),
  };
}

/** Days of the Gregorian calendar, also beyond the years of `Date`. The year is counted from March. */
function daysSince1970(year: number, month: number, day: number): number {
  const from = month < 3 ? year - 1 : year;
  const inYear = Math.floor((153 * ((month + 9) % 12) + 2) / 5) + day - 1;
  return (
    365 * from + Math.floor(from / 4) - Math.floor(from / 100) + Math.floor(from / 400) + inYear - 719_468
  );
}
