import { type FunctionDefinition, STABLE, scalar, scalars, withOptional } from './define.js';

/**
 * The units of `date_trunc`, `extract` and `date_part` in all spellings of Postgres 15 to 18, in lower case. The sets
 * are closed because units are part of the plan's shape.
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

function overlaps(type: 'time' | 'timestamp' | 'timestamptz'): readonly FunctionDefinition[] {
  const traits = type === 'timestamptz' ? STABLE : {};
  return [
    scalar('overlaps', [type, type, type, type], 'bool'),
    scalar('overlaps', [type, type, type, 'interval'], 'bool', traits),
    scalar('overlaps', [type, 'interval', type, type], 'bool', traits),
    scalar('overlaps', [type, 'interval', type, 'interval'], 'bool', traits),
  ];
}

/** Date, time and interval functions. `timezone` implements AT TIME ZONE. None is volatile. */
export const DATETIME_FUNCTIONS: readonly FunctionDefinition[] = Object.freeze([
  ...scalars(['now', 'transaction_timestamp', 'statement_timestamp'], [], 'timestamptz', STABLE),

  scalar('date_trunc', ['text', 'timestamp'], 'timestamp', { unit: TRUNC_UNITS }),
  scalar('date_trunc', ['text', 'timestamptz'], 'timestamptz', { stable: true, unit: TRUNC_UNITS }),
  scalar('date_trunc', ['text', 'interval'], 'interval', { unit: INTERVAL_TRUNC_UNITS }),
  scalar('date_trunc', ['text', 'timestamptz', 'text'], 'timestamptz', { stable: true, unit: TRUNC_UNITS }),
  scalar('date_bin', ['interval', 'timestamp', 'timestamp'], 'timestamp'),
  scalar('date_bin', ['interval', 'timestamptz', 'timestamptz'], 'timestamptz'),

  ...(
    [
      ['extract', 'numeric'],
      ['date_part', 'float8'],
    ] as const
  ).flatMap(([name, result]) => [
    // Unlike EXTRACT, date_part takes a date as a timestamp: its hour is 0.
    scalar(name, ['text', 'date'], result, { unit: name === 'extract' ? DATE_FIELDS : TIMESTAMP_FIELDS }),
    scalar(name, ['text', 'time'], result, { unit: TIME_FIELDS }),
    scalar(name, ['text', 'timestamp'], result, { unit: TIMESTAMP_FIELDS }),
    scalar(name, ['text', 'timestamptz'], result, { stable: true, unit: TIMESTAMPTZ_FIELDS }),
    scalar(name, ['text', 'interval'], result, { unit: INTERVAL_FIELDS }),
  ]),

  scalar('age', ['timestamp'], 'interval', STABLE),
  scalar('age', ['timestamptz'], 'interval', STABLE),
  scalar('age', ['timestamp', 'timestamp'], 'interval'),
  scalar('age', ['timestamptz', 'timestamptz'], 'interval'),
  ...(['date', 'timestamp', 'timestamptz', 'interval'] as const).map((type) =>
    scalar('isfinite', [type], 'bool'),
  ),
  ...(['time', 'timestamp', 'timestamptz'] as const).flatMap(overlaps),

  ...scalars(['justify_days', 'justify_hours', 'justify_interval'], ['interval'], 'interval'),

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
