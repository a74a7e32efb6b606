/**
 * The units that `date_trunc`, `extract` and `date_part` take, with every spelling that Postgres 15 to 18
 * accept for them, lower case. A unit is part of the plan's shape, so each set is closed.
 */

function spellings(...lines: readonly string[]): ReadonlySet<string> {
  return Object.freeze(new Set(lines.flatMap((line) => line.split(' '))));
}

const CLOCK = [
  'microsecond microseconds us usec usecs usecond useconds',
  'millisecond milliseconds ms msec msecs msecond mseconds',
  'second seconds s sec secs',
  'minute minutes m min mins',
  'hour hours h hr hrs',
];

const CALENDAR = [
  'day days d',
  'month months mon mons',
  'quarter qtr',
  'year years y yr yrs',
  'decade decades dec decs',
  'century centuries c cent',
  'millennium millennia millenniums mil mils',
];

const WEEK = 'week weeks w';
const WITHIN = 'dow isodow doy isoyear julian';
const EPOCH = 'epoch';

/** One name of each unit, for messages. */
export const UNIT_NAMES: readonly string[] = Object.freeze([
  ...[...CLOCK, ...CALENDAR, WEEK].map((line) => line.split(' ')[0] ?? ''),
  ...WITHIN.split(' '),
  EPOCH,
  'timezone',
]);

export const TRUNC_UNITS = spellings(...CLOCK, ...CALENDAR, WEEK);
export const INTERVAL_TRUNC_UNITS = spellings(...CLOCK, ...CALENDAR);

export const DATE_FIELDS = spellings(...CALENDAR, WEEK, WITHIN, EPOCH);
export const TIME_FIELDS = spellings(...CLOCK, EPOCH);
export const TIMESTAMP_FIELDS = spellings(...CLOCK, ...CALENDAR, WEEK, WITHIN, EPOCH);
export const TIMESTAMPTZ_FIELDS = spellings(
  ...CLOCK,
  ...CALENDAR,
  WEEK,
  WITHIN,
  EPOCH,
  'timezone timezone_hour timezone_minute',
);
export const INTERVAL_FIELDS = spellings(...CLOCK, ...CALENDAR, EPOCH);
