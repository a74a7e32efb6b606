/** A table with a column of every type of the model and of every array of one, filled from one seed. */
const SCALARS = [
  ['bool', 'random() < 0.5'],
  ['int2', 'floor(random() * 65535 - 32767)::int2'],
  ['int4', 'floor(random() * 4294967295 - 2147483647)::int4'],
  ['int8', 'floor(random() * 4294967295)::int8 * 2147483647 - 4611686018427387904'],
  ['float4', '(random() * 1e6 - 5e5)::float4'],
  ['float8', 'random() * 1e300 - 5e299'],
  ['numeric', 'trunc((random() * 1e9 - 5e8)::numeric * (10::numeric ^ (n % 25 - 12)), 1 + n % 19)'],
  ['text', "repeat(chr(97 + n % 26), n % 40) || CASE n % 3 WHEN 0 THEN ' é😀\"\\' ELSE '' END"],
  ['uuid', "md5('u' || n)::uuid"],
  ['date', "date '0001-01-01' + floor(random() * 3600000)::int4"],
  ['time', "time '00:00:00' + random() * interval '23:59:59.999'"],
  ['timestamp', "timestamp '0001-01-01' + random() * interval '3600000 days'"],
  ['timestamptz', "timestamptz '0001-01-01 00:00:00+00' + random() * interval '3600000 days'"],
  ['interval', 'make_interval(months => n % 40, days => n % 50, secs => n * 1.000001)'],
  ['bytea', "decode(md5('b' || n), 'hex')"],
  ['jsonb', `jsonb_build_object('n', n, 's', 'é"', 'l', jsonb_build_array(1.50, NULL, true))`],
  ['inet', "inet '10.0.0.0' + n"],
  ['int4range', 'int4range(n, n + n % 5)'],
  ['tsvector', "to_tsvector('simple', 'it''s \"a\" ' || n)"],
  ['money', 'n * 1.5::money'],
] as const;

/** Columns that are declared with a precision: their type, what the manifest says of it, a value. */
const SUMS = [
  ['small', 'numeric(12,2)', 'numeric(12,2)', '9999999999.99'],
  ['large', 'numeric(60,20)', 'numeric(60,20)', `${'9'.repeat(40)}.${'9'.repeat(20)}`],
  ['whole', 'numeric(38)', 'decimal(38)', '9'.repeat(38)],
  ['past', 'numeric(80,2)', 'numeric(80,2)', `${'9'.repeat(78)}.99`],
  ['finer', 'numeric', 'numeric(4,1)', '1.25'],
  ['larger', 'numeric', 'numeric(4,1)', '12345'],
] as const;

export const EVERY_TYPES: readonly string[] = SCALARS.map(([type]) => type);

/** Least and greatest values, and what has a form of its own, as Postgres writes them. */
const EDGES: Readonly<Record<(typeof SCALARS)[number][0], readonly [string, string]>> = {
  bool: ['f', 't'],
  int2: ['-32768', '32767'],
  int4: ['-2147483648', '2147483647'],
  int8: ['-9223372036854775808', '9223372036854775807'],
  float4: ['NaN', '-Infinity'],
  float8: ['5e-324', 'Infinity'],
  numeric: ['-Infinity', `-${'9'.repeat(300)}.${'0'.repeat(80)}1`],
  text: ['', 'NULL'],
  uuid: ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
  date: ['4714-11-24 BC', '5874897-12-31'],
  time: ['00:00:00', '23:59:59.999999'],
  timestamp: ['4714-11-24 00:00:00 BC', '294246-12-31 23:59:59.999999'],
  timestamptz: ['1969-12-31 23:59:59.999999+00', '1970-01-01 00:00:00+00'],
  interval: ['-178000000 years', '1 mon -3 days 04:05:06.000007'],
  bytea: ['\\x', '\\x00ff'],
  jsonb: ['null', '"\\u2028"'],
  inet: ['::/0', '255.255.255.255/1'],
  int4range: ['empty', '(,)'],
  tsvector: ['', "''a\"\\\\b'':1A"],
  money: ['-92233720368547758.08', '0'],
};

/** Rows from 1 to `random` are random; then come the two edges, a row of NULLs, and one of empty arrays. */
export function every(random: number) {
  const columns = SCALARS.flatMap(([type]) => [
    `a_${type}: { type: ${type} }`,
    `l_${type}: { type: "${type}[]" }`,
  ]);
  const names = SCALARS.flatMap(([type]) => [`a_${type}`, `l_${type}`]);
  const values = SCALARS.flatMap(([type, value]) => [
    `CASE WHEN n % 7 = 0 THEN NULL ELSE ${value} END`,
    `CASE n % 5 WHEN 0 THEN '{}' WHEN 1 THEN NULL ELSE ARRAY[${value}, NULL, ${value}] END::${type}[]`,
  ]);
  const edge = (at: 0 | 1): string =>
    SCALARS.map(([type]) => {
      const text = `'${EDGES[type][at]}'`;
      return `${text}::${type}, ARRAY[${text}, NULL]::${type}[]`;
    }).join(', ');
  return {
    manifest: `
version: 1
tenant: shop
connectors:
  db: { kind: pglite, tables: { shop.everything: { columns: { id: { type: int4 }, ${columns.join(', ')} } }, shop.sums: { columns: { id: { type: int4 }, ${SUMS.map(([n, , as]) => `${n}: { type: "${as}" }`).join(', ')} } } } }
entities:
  sums: { source: db.shop.sums, primary_key: [id], columns: [id, ${SUMS.map(([n]) => n).join(', ')}] }
  everything: { source: db.shop.everything, primary_key: [id], columns: [id, ${names.join(', ')}] }
raw_sql: { allow: [db.shop.everything] }
`,
    policy: `
version: 1
tenant: shop
subjects: { "user:ann": { ceiling: [reader] } }
roles: { reader: { grants: [{ on: everything, columns: "*" }, { on: sums, columns: "*" }] } }
masks: {}
limits: { query: 1000 }
`,
    script: `
CREATE SCHEMA shop;
CREATE TABLE shop.everything (id int4 PRIMARY KEY, ${SCALARS.map(([t]) => `a_${t} ${t}, l_${t} ${t}[]`).join(', ')});
CREATE TABLE shop.sums (id int4 PRIMARY KEY, ${SUMS.map(([n, is]) => `${n} ${is}`).join(', ')});
INSERT INTO shop.sums VALUES (1, ${SUMS.map(([, , , v]) => v).join(', ')}), (2, ${SUMS.map(([, , , v]) => `-${v}`).join(', ')}),
  (3, ${SUMS.map(() => '0').join(', ')}), (4, ${SUMS.map(() => 'NULL').join(', ')}), (5, 0.01, 0.00000000000000000001, 10000, 1, 1, 1);
INSERT INTO shop.sums (id, small) VALUES (6, 'NaN');
SELECT setseed(0.25);
INSERT INTO shop.everything SELECT n, ${values.join(', ')} FROM generate_series(1, ${random}) AS n;
INSERT INTO shop.everything SELECT ${random + 1}, ${edge(0)};
INSERT INTO shop.everything SELECT ${random + 2}, ${edge(1)};
INSERT INTO shop.everything (id) VALUES (${random + 3});
INSERT INTO shop.everything SELECT ${random + 4}, ${SCALARS.map(([t]) => `NULL, '{}'::${t}[]`).join(', ')};
`,
  };
}
