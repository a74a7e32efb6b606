import { PGlite } from '@electric-sql/pglite';
import type { TypeName } from 'osl-compiler';
import { test } from 'tap';
import { toTextOf } from '../../../src/ask/receipts/binary-text.js';
import { emptyDatabaseOfItsOwn } from '../../support/embedded-data.js';

/** A receipt has a value in binary format as the text that Postgres writes. */

const VALUES: Readonly<Record<string, readonly string[]>> = {
  bool: ['true', 'false'],
  int2: ['-32768', '0', '32767'],
  int4: ['-2147483648', '-1', '2147483647'],
  int8: ['-9223372036854775808', '9223372036854775807'],
  float4: [
    '0',
    '-0',
    '1',
    '1.5',
    '1e5',
    '999999',
    '1e6',
    '1e-4',
    '1e-5',
    '3.4028235e38',
    '1e-45',
    'NaN',
    '-Infinity',
    '16777216',
    '33554432',
    '8388608.5',
    '0.1',
    '1.1754944e-38',
  ],
  float8: [
    '0',
    '-0',
    '1',
    '0.1',
    '1e14',
    '1e15',
    '123456789012345',
    '1234567890123456',
    '1e-4',
    '1e-5',
    '1e23',
    '9007199254740993',
    '5e-324',
    '2.2250738585072014e-308',
    '1.7976931348623157e308',
    'NaN',
    'Infinity',
    '-Infinity',
    '18014398509481984',
    '36028797018963968',
    '9.5367431640625e-07',
    '4503599627370496.5',
    '1.00000000000000011102230246251565',
  ],
  numeric: [
    '0',
    '0.00',
    '-0.5',
    '1',
    '10000',
    '99999999',
    '100000000.0001',
    '0.00000001',
    '-123456789012345678901234567890.123456789',
    '1e100',
    '1e-100',
    'NaN',
    'Infinity',
    '-Infinity',
    '0.1000',
    '12345.6789000',
  ],
  text: ['', 'a', 'é😀', 'NULL', '{"a", b}\\'],
  bpchar: ['a  '],
  uuid: ['123e4567-e89b-12d3-a456-426614174000'],
  bytea: ['\\x', '\\x00ff10'],
  json: ['null', '{"a": [1, 2.50]}'],
  jsonb: ['null', '{"b": 1, "a": [1.50, null, "é"]}'],
  date: [
    '2000-01-01',
    '1999-12-31',
    '2000-02-29',
    '1900-03-01',
    '0001-01-01',
    '0001-12-31 BC',
    '4714-11-24 BC',
    '5874897-12-31',
    'infinity',
    '-infinity',
    '2024-02-29',
    '2100-03-01',
  ],
  time: ['00:00', '24:00:00', '23:59:59.999999', '04:05:06.7'],
  timestamp: [
    '2000-01-01',
    '1999-12-31 23:59:59.999999',
    '4714-11-24 00:00:00 BC',
    '294276-12-31 23:59:59.999999',
    'infinity',
    '-infinity',
    '1970-01-01 00:00:00.000001',
    '0044-03-15 12:00 BC',
  ],
  timestamptz: [
    '2000-01-01 00:00+00',
    '1582-10-15 12:34:56.789+00',
    '4714-11-24 00:00:00+00 BC',
    '294276-12-31 23:59:59.999999+00',
    'infinity',
  ],
  interval: [
    '0',
    '1 year',
    '-1 year',
    '1 year 2 mons 3 days 04:05:06.789',
    '-1 mon 1 day',
    '1 mon -1 day',
    '-1 day 00:00:01',
    '-00:00:01',
    '1 day -00:00:00.000001',
    '100:00:00',
    '-13 mons',
    '178000000 years',
    '1 day',
    '-1 days 1 mon',
    '2562047788:00:54.775807',
  ],
};

/** The text format where a cast to text gives another: that of char(n) has no blanks at its end either. */
function asSent(type: string, text: string): string {
  return type === 'bool' ? text.slice(0, 1) : text;
}

/** Functions that give the binary format of a type. */
const SEND: Readonly<Record<string, string>> = { bool: 'boolsend', text: 'textsend', bpchar: 'bpcharsend' };

function sendOf(type: string): string {
  const own = SEND[type];
  if (own !== undefined) return own;
  return [
    'numeric',
    'uuid',
    'json',
    'jsonb',
    'date',
    'time',
    'timestamp',
    'timestamptz',
    'interval',
  ].includes(type)
    ? `${type}_send`
    : `${type}send`;
}

test('values in binary format become the text of Postgres', { timeout: 120_000 }, async (t) => {
  const db = await PGlite.create({ dataDir: await emptyDatabaseOfItsOwn() });
  t.teardown(() => db.close());
  await db.exec("set timezone = 'UTC'; set extra_float_digits = 1");
  const compare = async (type: TypeName, send: string, source: string): Promise<void> => {
    const convert = toTextOf(type);
    if (convert === null) throw new Error(`${type} has no conversion`);
    const { rows } = await db.query<{ binary: Uint8Array; text: string }>(
      `select ${send}(v) as binary, v::text as text from (select ${source}) as of(v)`,
    );
    const different = rows.flatMap(({ binary, text }) => {
      const bytes = Buffer.from(binary);
      const ours = String(convert(bytes, 0, bytes.length));
      return ours === asSent(type, text) || (type === 'bpchar' && ours.trimEnd() === text)
        ? []
        : [[ours, text]];
    });
    t.ok(rows.length > 0);
    t.strictSame(different, [], type);
  };
  for (const [type, values] of Object.entries(VALUES)) {
    const list = values.map((v) => `'${v.replaceAll("'", "''")}'::${type}`);
    await compare(type as TypeName, sendOf(type), `unnest(array[${list.join(', ')}])`);
    const nested = `array[array[${list.join(', ')}], array[${list.map(() => 'null').join(', ')}]]::${type}[]`;
    const arrays = [`array[${list.join(', ')}, null]`, `'{}'::${type}[]`, nested];
    for (const array of arrays) await compare(`${type}[]` as TypeName, 'array_send', array);
  }
  await compare('int4[]', 'array_send', `'[0:1]={1,2}'::int4[]`);
  await compare('text[]', 'array_send', `array['a b', 'a\tb', 'x,y', '{', '"', '\\', 'null', 'NuLl', '']`);
  const random = 'from generate_series(1, 5000)';
  await compare('float8', 'float8send', `(random() - .5) * 10 ^ (random() * 40 - 20)::int ${random}`);
  await compare(
    'float4',
    'float4send',
    `((random() - .5) * 10 ^ (random() * 30 - 15)::int)::float4 ${random}`,
  );
  await compare(
    'float8',
    'float8send',
    `(2::float8 ^ n) * m from generate_series(-60, 60) n, unnest(array[1, 3, 5, 7]) m`,
  );
  await compare(
    'float4',
    'float4send',
    '((2::float8 ^ n) * m)::float4 from generate_series(-40, 40) n, unnest(array[1, 3, 5, 7]) m',
  );
  for (const type of ['float4', 'float8'] as const) {
    const send = `${type}send`;
    await compare(type, send, `(n / 16.0)::${type} from generate_series(1, 20000) n`);
    await compare(
      type,
      send,
      `(n * 5.0 * 10 ^ k)::${type} from generate_series(1, 999) n, generate_series(-12, 12) k`,
    );
    await compare(
      type,
      send,
      `(10.0 ^ k - 5 * 10.0 ^ (k - p))::${type} from generate_series(-10, 20) k, generate_series(1, 8) p`,
    );
  }
  await compare('date', 'date_send', `date '0001-01-01' + (random() * 4000000)::int ${random}`);
  await compare(
    'timestamptz',
    'timestamptz_send',
    `timestamptz '0001-01-01 00:00+00' + random() * interval '4000000 days' ${random}`,
  );
  await compare(
    'interval',
    'interval_send',
    `make_interval(months => (random() * 100 - 50)::int, days => (random() * 9 - 4)::int, secs => random() * 9e4 - 4e4) ${random}`,
  );
  await compare(
    'numeric',
    'numeric_send',
    `((random() - .5)::numeric * 10::numeric ^ (random() * 40 - 20)::int)::numeric ${random}`,
  );
});
