import { type FunctionDefinition, STABLE, scalar, withOptional } from './define.js';

/**
 * Units of `date_trunc`, `extract` and `date_part` in all spellings of Postgres 15 to 18, in lower case. Units are part
 * of the plan's shape, so the sets are closed.
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

export const UNIT_NAMES: readonly string[] = Object.freeze([
  ...[...CLOCK, ...CALENDAR, WEEK].map((line) => line.split(' ')[0] ?? ''),
  ...WITHIN.split(' '),
  EPOCH,
  'timezone',
]);

const TRUNC_UNITS = spellings(...CLOCK, ...CALENDAR, WEEK);
const INTERVAL_TRUNC_UNITS = spellings(...CLOCK, ...CALENDAR);

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

/** Functions of dates, times and intervals. `timezone` is AT TIME ZONE. None is volatile. */
export const DATETIME_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  scalar('now', [], 'timestamptz', STABLE),
  scalar('transaction_timestamp', [], 'timestamptz', STABLE),
  scalar('statement_timestamp', [], 'timestamptz', STABLE),

  scalar('date_trunc', ['text', 'timestamp'], 'timestamp', { unit: TRUNC_UNITS }),
  scalar('date_trunc', ['text', 'timestamptz'], 'timestamptz', { stable: true, unit: TRUNC_UNITS }),
  scalar('date_trunc', ['text', 'interval'], 'interval', { unit: INTERVAL_TRUNC_UNITS }),
  scalar('date_trunc', ['text', 'timestamptz', 'text'], 'timestamptz', { stable: true, unit: TRUNC_UNITS }),
  scalar('date_bin', ['interval', 'timestamp', 'timestamp'], 'timestamp'),
  scalar('date_bin', ['interval', 'timestamptz', 'timestamptz'], 'timestamptz'),

  scalar('extract', ['text', 'date'], 'numeric', { unit: DATE_FIELDS }),
  scalar('extract', ['text', 'time'], 'numeric', { unit: TIME_FIELDS }),
  scalar('extract', ['text', 'timestamp'], 'numeric', { unit: TIMESTAMP_FIELDS }),
  scalar('extract', ['text', 'timestamptz'], 'numeric', { stable: true, unit: TIMESTAMPTZ_FIELDS }),
  scalar('extract', ['text', 'interval'], 'numeric', { unit: INTERVAL_FIELDS }),
  scalar('date_part', ['text', 'date'], 'float8', { unit: DATE_FIELDS }),
  scalar('date_part', ['text', 'time'], 'float8', { unit: TIME_FIELDS }),
  scalar('date_part', ['text', 'timestamp'], 'float8', { unit: TIMESTAMP_FIELDS }),
  scalar('date_part', ['text', 'timestamptz'], 'float8', { stable: true, unit: TIMESTAMPTZ_FIELDS }),
  scalar('date_part', ['text', 'interval'], 'float8', { unit: INTERVAL_FIELDS }),

  scalar('age', ['timestamp'], 'interval', STABLE),
  scalar('age', ['timestamptz'], 'interval', STABLE),
  scalar('age', ['timestamp', 'timestamp'], 'interval'),
  scalar('age', ['timestamptz', 'timestamptz'], 'interval'),
  scalar('isfinite', ['date'], 'bool'),
  scalar('isfinite', ['timestamp'], 'bool'),
  scalar('isfinite', ['timestamptz'], 'bool'),
  scalar('isfinite', ['interval'], 'bool'),
  scalar('overlaps', ['time', 'time', 'time', 'time'], 'bool'),
  scalar('overlaps', ['time', 'time', 'time', 'interval'], 'bool'),
  scalar('overlaps', ['time', 'interval', 'time', 'time'], 'bool'),
  scalar('overlaps', ['time', 'interval', 'time', 'interval'], 'bool'),
  scalar('overlaps', ['timestamp', 'timestamp', 'timestamp', 'timestamp'], 'bool'),
  scalar('overlaps', ['timestamp', 'timestamp', 'timestamp', 'interval'], 'bool'),
  scalar('overlaps', ['timestamp', 'interval', 'timestamp', 'timestamp'], 'bool'),
  scalar('overlaps', ['timestamp', 'interval', 'timestamp', 'interval'], 'bool'),
  scalar('overlaps', ['timestamptz', 'timestamptz', 'timestamptz', 'timestamptz'], 'bool'),
  scalar('overlaps', ['timestamptz', 'timestamptz', 'timestamptz', 'interval'], 'bool', STABLE),
  scalar('overlaps', ['timestamptz', 'interval', 'timestamptz', 'timestamptz'], 'bool', STABLE),
  scalar('overlaps', ['timestamptz', 'interval', 'timestamptz', 'interval'], 'bool', STABLE),

  scalar('justify_days', ['interval'], 'interval'),
  scalar('justify_hours', ['interval'], 'interval'),
  scalar('justify_interval', ['interval'], 'interval'),

  scalar('make_date', ['int4', 'int4', 'int4'], 'date'),
  scalar('make_time', ['int4', 'int4', 'float8'], 'time'),
  scalar('make_timestamp', ['int4', 'int4', 'int4', 'int4', 'int4', 'float8'], 'timestamp'),
  scalar('make_timestamptz', ['int4', 'int4', 'int4', 'int4', 'int4', 'float8'], 'timestamptz', STABLE),
  scalar(
    'make_timestamptz',
    ['int4', 'int4', 'int4', 'int4', 'int4', 'float8', 'text'],
    'timestamptz',
    STABLE,
  ),
  ...withOptional(
    'make_interval',
    [],
    ['int4', 'int4', 'int4', 'int4', 'int4', 'int4', 'float8'],
    'interval',
  ),

  scalar('date', ['timestamp'], 'date'),
  scalar('date', ['timestamptz'], 'date', STABLE),
  scalar('timezone', ['text', 'timestamp'], 'timestamptz'),
  scalar('timezone', ['text', 'timestamptz'], 'timestamp'),
  scalar('timezone', ['interval', 'timestamp'], 'timestamptz'),
  scalar('timezone', ['interval', 'timestamptz'], 'timestamp'),
]);
