import { generatedSql } from '../../../../src/base/sql.js';
import { onBothEngines } from '../both-engines.js';
import { startRest } from '../fixture.js';
import { EVERY_TYPES, every } from './every.js';
import { asJson, readArrow } from './read.js';

const RANDOM = 200;
const WORLD = every(RANDOM);
const ARROW = { headers: { accept: 'application/vnd.apache.arrow.stream' } };

const COLUMNS = EVERY_TYPES.flatMap((type) => [`a_${type}`, `l_${type}`]);
const ARROW_TYPES: Readonly<Record<string, string>> = {
  bool: 'Bool',
  int2: 'Int16',
  int4: 'Int32',
  int8: 'Int64',
  float4: 'Float32',
  float8: 'Float64',
  numeric: 'Utf8',
  text: 'Utf8',
  uuid: 'FixedSizeBinary[16]',
  date: 'Date32<DAY>',
  time: 'Time64<MICROSECOND>',
  timestamp: 'Timestamp<MICROSECOND>',
  timestamptz: 'Timestamp<MICROSECOND, UTC>',
  interval: 'Interval<MONTH_DAY_NANO>',
  bytea: 'Binary',
  jsonb: 'Utf8',
  inet: 'Utf8',
  int4range: 'Utf8',
  tsvector: 'Utf8',
  money: 'Utf8',
};

onBothEngines('every type of the model keeps its value', async (t, options) => {
  const rest = await startRest({ ...WORLD, ...options });
  t.teardown(() => rest.close());
  const osql = `SELECT id, ${COLUMNS.join(', ')} FROM osl.entities.everything ORDER BY id`;
  const reply = await rest.ask('user:ann', { osql }, ARROW);
  t.equal(reply.status, 200, reply.status === 200 ? 'answered' : reply.text);
  const stream = readArrow(reply.bytes);
  const shown = asJson(stream);
  t.equal(shown.length, RANDOM + 4);

  for (const type of EVERY_TYPES) {
    const scalar = stream.schema.fields.find((f) => f.name === `a_${type}`);
    t.equal(String(scalar?.type), ARROW_TYPES[type], type);
    t.match(scalar, { nullable: true });
    t.strictSame(scalar?.metadata.get('osl.type'), type);
    t.equal(scalar?.metadata.get('osl.source'), `osl.entities.everything.a_${type}`);
    const list = stream.schema.fields.find((f) => f.name === `l_${type}`);
    t.equal(String(list?.type), `List<${ARROW_TYPES[type]}>`);
  }

  const json = (await rest.ask('user:ann', { osql })).json()['rows'];
  if (!Array.isArray(json)) throw new Error('no rows');
  const parts = await intervals(rest);
  for (const [n, row] of json.entries()) {
    const { a_interval, l_interval, ...others } = shown[n] ?? {};
    const { a_interval: _, l_interval: __, a_float4, l_float4, ...expected } = row;
    t.strictSame(
      others,
      { ...expected, a_float4: single(a_float4), l_float4: singles(l_float4) },
      `row ${n + 1} is that of JSON`,
    );
    t.strictSame([a_interval, l_interval], parts[n], `intervals of row ${n + 1}`);
  }

  const sums = `SELECT small, large, whole, past, small + 0 AS sum FROM osl.entities.sums WHERE id < 6 ORDER BY id`;
  const decimals = readArrow((await rest.ask('user:ann', { osql: sums }, ARROW)).bytes);
  t.strictSame(
    decimals.schema.fields.map((f) => `${f.type} ${f.metadata.get('osl.type')}`),
    [
      'Decimal[12e+2] numeric',
      'Decimal[60e+20] numeric',
      'Decimal[38e0] numeric',
      'Utf8 numeric',
      'Utf8 numeric',
    ],
  );
  t.strictSame(asJson(decimals), (await rest.ask('user:ann', { osql: sums })).json()['rows']);
  for (const [column, id] of [
    ['small', 6],
    ['finer', 1],
    ['larger', 1],
  ] as const) {
    const unfit = `SELECT ${column} FROM osl.entities.sums WHERE id = ${id}`;
    t.match((await rest.ask('user:ann', { osql: unfit }, ARROW)).json(), { code: 'E4060' }, column);
  }
});

/** Postgres writes as few digits as make the same number in 32 bits; here it is that number. */
const single = (value: unknown): unknown => (typeof value === 'number' ? Math.fround(value) : value);
const singles = (value: unknown): unknown => (Array.isArray(value) ? value.map(single) : value);

/** Intervals as months, days and nanoseconds, which is what Arrow has, worked out by the database. */
async function intervals(rest: Awaited<ReturnType<typeof startRest>>) {
  const rows = await rest.test.engine.system.query(
    generatedSql(`
    SELECT ${parts('a_interval')} AS one,
      CASE WHEN l_interval IS NULL THEN NULL
        ELSE ARRAY(SELECT ${parts('v')} FROM unnest(l_interval) AS v) END AS many
    FROM shop.everything ORDER BY id`),
  );
  return rows.map(({ one, many }) => [one, many]);
}

const parts = (v: string): string => `
  (extract(year from ${v}) * 12 + extract(month from ${v})) || ' ' || extract(day from ${v}) || ' ' ||
  trunc((extract(hour from ${v}) * 3600 + extract(minute from ${v}) * 60 + extract(second from ${v})) * 1000000000)`;
