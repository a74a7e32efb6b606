import type { Client } from 'pg';
import tap, { test } from 'tap';
import { int32 } from '../../wire/support/bytes.js';
import { type Asked, asked, connectTo } from './asked.js';
import { startBoth } from './support.js';

/**
 * Types that a client declares for its parameters, against a real Postgres with the same tables: the same description,
 * the same rows for a value in text and in binary form, or a refusal that names the type.
 */

const both = await startBoth();
const skip = both === null ? 'no native Postgres to compare with' : false;
const ours = both === null ? null : await connectTo(await both.gateway('user:ada'));
const theirs = both === null ? null : await connectTo(both.direct);
tap.teardown(async () => {
  await ours?.end();
  await theirs?.end();
  await both?.close();
});

const PLACES = [
  'select id from customer where region = $1',
  'select id from "order" where id = $1',
  'select id from "order" where placed_at >= $1 and amount > 0',
  'select id from sample where doc = $1',
  'select id from sample where clock = $1',
  'select id from customer where id = any($1)',
  'select $1 from customer',
  'select $1::text from customer',
  'select $1::jsonb from customer',
  'select lower($1)',
];

/** Types of the server itself that no client has values of have no name here; they are refused by their OID. */
const NAMED = `
  select t.oid::int8 as oid, coalesce(e.typname || '[]', t.typname)
  from pg_type t left join pg_type e on e.oid = t.typelem and t.typname ~ '^_'
  where t.oid < 10000 and t.typtype <> 'c' and (e.typtype is null or e.typtype <> 'c')
    and (t.typarray <> 0 or e.oid is not null) and t.typname not in ('any', 'record', 'cstring')`;

test('each type of Postgres is described as it was declared, or refused by name', { skip }, async (t) => {
  if (both === null || theirs === null) return;
  const { rows: types } = await asked(theirs, { text: NAMED, values: [] });
  t.ok(types.length > 120, `${types.length} types`);
  const gateway = await both.gateway('user:ada');
  // A connection for each place: refusals wait for the audit log, and share its waits.
  const found = await Promise.all(
    PLACES.map(async (text) => {
      const [mine, real] = await Promise.all([connectTo(gateway), connectTo(both.direct)]);
      const differences = await differencesAt(text, types, mine, real);
      await Promise.all([mine.end(), real.end()]);
      return differences;
    }),
  );
  t.same(
    found.flatMap((f) => f.wrong),
    [],
  );
  t.ok(found.reduce((sum, f) => sum + f.same, 0) > 150, 'and many of them are taken');
});

async function differencesAt(text: string, types: Asked['rows'], ours: Client, theirs: Client) {
  const wrong: string[] = [];
  let same = 0;
  for (const [oid = '', name = ''] of types) {
    const asking = { text, types: [Number(oid)] };
    const [mine, real] = await Promise.all([asked(ours, asking), asked(theirs, asking)]);
    if (mine.error === null) {
      if (`${mine.parameters}` !== oid) wrong.push(`${text}, ${name}: described as ${mine.parameters}`);
      if (real.error === null) same++;
    } else if (real.error === null && !mine.error.message.includes(`declared as \`${name}\``)) {
      wrong.push(`${text}, ${name}: ${mine.error.message}`);
    }
  }
  return { wrong, same };
}

test('a type left open is described as its use says', { skip }, async (t) => {
  if (ours === null || theirs === null) return;
  for (const types of [[], [0], [705]]) {
    for (const text of [
      ...PLACES.slice(0, 9),
      'select id from customer limit $1',
      "select coalesce($1, 'x')",
    ]) {
      const [mine, real] = await Promise.all([asked(ours, { text, types }), asked(theirs, { text, types })]);
      t.same(mine.parameters, real.parameters, `${text}, ${types}`);
    }
  }
});

/** A declared type, a value of it, and a question that Postgres answers with it. */
const VALUES: readonly (readonly [type: string, value: string, text: string])[] = [
  ['varchar', 'eu', 'select id from customer where region = $1 order by id'],
  ['bpchar', 'eu  ', 'select id from customer where region = $1 order by id'],
  ['name', 'eu', 'select id from customer where region = $1 order by id'],
  ['text', 'eu', 'select id from customer where region = $1 order by id'],
  ['"char"', 'e', 'select id from customer where left(region, 1) = $1 order by id'],
  ['varchar[]', '{eu,NULL,"a b"}', 'select id from customer where region = any($1) order by id'],
  ['bpchar[]', '{"eu ",us}', 'select id from customer where region = any($1) order by id'],
  ['name[]', '{eu}', 'select id from customer where region = any($1) order by id'],
  ['text[]', '{eu,us}', 'select id from customer where region = any($1) order by id'],
  ['oid', '3', 'select id from customer where id = $1 order by id'],
  ['oid', '4294967295', 'select $1::text from customer where id = 1'],
  ['oid[]', '{1,3}', 'select $1::text from customer where id = 1'],
  ['int2', '3', 'select id from "order" where id = $1'],
  ['numeric', '1.50', 'select $1::text from customer where id = 1'],
  ['json', '{"a": [1, 1.50]}', 'select $1::jsonb from customer where id = 1'],
  ['json', '{"a": 1,  "a": 2}', 'select $1::text from customer where id = 1'],
  ['money', '12.34', 'select $1::numeric from customer where id = 1'],
  ['inet', '10.0.0.1/8', 'select $1::text from customer where id = 1'],
  ['cidr', '10.0.0.0/8', 'select $1::text from customer where id = 1'],
  ['macaddr', '08:00:2b:01:02:03', 'select $1::text from customer where id = 1'],
  ['timetz', '04:05:06.789-08', 'select $1::text from customer where id = 1'],
  ['timetz', '04:05:06.789-08', 'select $1::time from customer where id = 1'],
  ['int4range', '[1,5)', 'select $1::text from customer where id = 1'],
  ['bit', '1', 'select $1::text from customer where id = 1'],
  ['"bit"', '00000011', 'select $1::text from customer where id = 1'],
  ['varbit', '101', 'select $1::text'],
  ['tsvector', "'a':1 'b'", 'select $1::text from customer where id = 1'],
  ['point', '(1,2.5)', 'select $1::text from customer where id = 1'],
];

test('a value in text and in binary form is the value that Postgres reads', { skip }, async (t) => {
  if (ours === null || theirs === null) return;
  for (const [type, value, text] of VALUES) {
    const facts = `select t.oid::int8, t.typsend::text from pg_type t where t.oid = '${type.replaceAll("'", '')}'::regtype`;
    const [[oid, send] = []] = (await asked(theirs, { text: facts, values: [] })).rows;
    const hex = `select encode(${send}($1::text::${type}), 'hex')`;
    const [[bytes] = []] = (await asked(theirs, { text: hex, values: [value] })).rows;
    for (const form of [value, Buffer.from(bytes ?? '', 'hex')]) {
      const asking = { text, types: [Number(oid)], values: [form] };
      const [mine, real] = await Promise.all([asked(ours, asking), asked(theirs, asking)]);
      const how = `${type} ${value} as ${typeof form === 'string' ? 'text' : 'binary'}`;
      t.equal(mine.error?.message ?? null, null, how);
      t.same(mine, real, `${how}: ${text}`);
    }
  }
});

/** Bytes of one type under the name of another. */
const TORN: readonly (readonly [name: string, oid: number, bytes: string, text: string])[] = [
  ['int4 in eight bytes', 23, '0000000000000001', 'select id from customer where id = $1'],
  ['oid in eight bytes', 26, '0000000000000001', 'select id from customer where id = $1'],
  ['varchar that is not UTF-8', 1043, 'ff', 'select id from customer where region = $1'],
  ['varchar with a NUL', 1043, '650075', 'select id from customer where region = $1'],
  [
    'text[] of varchar elements',
    1009,
    '000000010000000000000413000000010000000100000002' + '6575',
    'select id from customer where region = any($1)',
  ],
  [
    'int4[] of text elements',
    1007,
    '000000010000000000000019000000010000000100000004' + '00000001',
    'select id from customer where id = any($1)',
  ],
];

test('bytes that are not of the declared type are refused', { skip }, async (t) => {
  if (ours === null || theirs === null) return;
  for (const [name, oid, bytes, text] of TORN) {
    const asking = { text, types: [oid], values: [Buffer.from(bytes, 'hex')] };
    const [mine, real] = await Promise.all([asked(ours, asking), asked(theirs, asking)]);
    t.ok(real.error, `${name}: ${real.error?.code}`);
    t.equal(mine.error?.code, real.error?.code, `${name}: ${mine.error?.message}`);
    t.same(mine.rows, []);
  }
});

/** An array in binary form whose elements say that they are of type `element`. */
const arrayOf = (element: number, value: Buffer) =>
  Buffer.concat([...[1, 0, element, 1, 1, value.length].map(int32), value]);
const ANY_TYPE = [0, 16, 18, 23, 25, 26, 1007, 1009, 1015, 1042, 1043, 1184, 1700, 114, 869, 2950];
const ANY_BYTES: readonly (Buffer | string | null)[] = [
  ...[null, '', 'eu', '{eu}', '{"a": 1}', '1', '{1,NULL}', '\\xff', '2026-01-01'],
  ...['', '00', '01', '00000001', '0000000000000001', 'ff', '017b7d', '0001000000000000000a'].map((h) =>
    Buffer.from(h, 'hex'),
  ),
  ...[16, 12].map((n) => Buffer.alloc(n, 1)),
  ...[25, 1043, 1042, 18, 19].map((element) => arrayOf(element, Buffer.from('e'))),
  ...[23, 26].map((element) => arrayOf(element, int32(1))),
  Buffer.concat([0x7fff_ffff, 0, 25].map(int32)),
  Buffer.concat([1, 0, 25, 0x7fff_ffff, 1].map(int32)),
];

test('whatever bytes come for whatever type, they are what Postgres takes them for', { skip }, async (t) => {
  if (both === null) return;
  const gateway = await both.gateway('user:ada');
  const found = await Promise.all(
    [...PLACES.filter((text) => / (region|any|doc|::text)/.test(text)), 'select $1'].map(async (text) => {
      const [mine, real] = await Promise.all([connectTo(gateway), connectTo(both.direct)]);
      const wrong: string[] = [];
      for (const type of ANY_TYPE) {
        for (const value of ANY_BYTES) {
          const asking = { text, types: [type], values: [value] };
          const [a, b] = await Promise.all([asked(mine, asking), asked(real, asking)]);
          const named = a.error?.message.includes('is declared as') === true;
          const same =
            a.error === null ? `${a.rows}` === `${b.rows}` && b.error === null : b.error !== null || named;
          const shown = Buffer.isBuffer(value) ? `\\x${value.toString('hex')}` : value;
          if (!same) wrong.push(`${text}, ${type}, ${shown}: ${a.error?.message ?? a.rows}`);
        }
      }
      await Promise.all([mine.end(), real.end()]);
      return wrong;
    }),
  );
  t.same(found.flat(), []);
});
