import { PGlite } from '@electric-sql/pglite';
import {
  type Access,
  arrayText,
  bindPredicate,
  type Catalog,
  compile,
  emit,
  QueryError,
  type Relation,
  ready,
  type SimpleMetric,
} from 'osl-compiler';
import t from 'tap';
import { emptyDatabaseOfItsOwn } from '../../support/embedded-data.js';
import { functions } from '../functions/support/table.js';

/** Policy and metrics mean the same whatever a session has set: what they mean under UTC. */
t.setTimeout(600_000);

const TYPES = {
  id: 'int4',
  d: 'date',
  ts: 'timestamp',
  tz: 'timestamptz',
  ti: 'time',
  i: 'interval',
  f: 'float8',
  by: 'bytea',
} as const;
const COLUMNS = [...Object.entries(TYPES), ['note', 'text'] as const].map(([name, type]) => ({
  name,
  physical: name,
  type,
  sensitivity: null,
  keyDomain: null,
  nullable: true,
  description: null,
}));

const db = await PGlite.create({ dataDir: await emptyDatabaseOfItsOwn() });
t.teardown(() => db.close());
await ready();
await db.exec(`
  create table moments (id int4, d date, ts timestamp, tz timestamptz, ti time, i interval, f float8, by bytea, note text);
  set timezone = 'UTC';
  insert into moments
  select n, day::date, day::timestamp, day, (time '00:00' + n * interval '97 minutes'), (n - 600) * interval '13 hours',
    n / 7.0 + 0.1, decode(lpad(to_hex(n), 4, '0'), 'hex'), to_char(day, 'YYYY-MM-DD')
  from generate_series(1, 1200) n,
    lateral (select case n % 4 when 0 then now() + (n - 600) * interval '5 minutes'
      when 1 then timestamptz '2026-03-29 00:00+00' + (n - 601) * interval '5 minutes'
      when 2 then timestamptz '2025-12-31 00:00+00' + (n - 602) * interval '7 minutes'
      else timestamptz '2026-03-01 00:00+00' + (n - 603) * interval '11 minutes' end as day) s`);

const SESSIONS = [
  `set timezone = 'Pacific/Kiritimati'; set datestyle = 'SQL, DMY'; set intervalstyle = 'sql_standard'; set extra_float_digits = 0; set bytea_output = 'escape'`,
  `set timezone = 'Etc/GMT+12'; set datestyle = 'German'; set intervalstyle = 'iso_8601'; set extra_float_digits = -10; set bytea_output = 'escape'`,
  `set timezone = 'America/New_York'; set datestyle = 'Postgres, YMD'; set intervalstyle = 'postgres_verbose'`,
  `set timezone = 'Europe/Berlin'; set datestyle = 'ISO, DMY'; set intervalstyle = 'postgres'`,
];
const DEFAULT = `set timezone = 'UTC'; set datestyle = 'ISO, MDY'; set intervalstyle = 'postgres'; set extra_float_digits = 1; set bytea_output = 'hex'`;

const MOMENT: Relation = {
  kind: 'entity',
  name: 'moment',
  description: null,
  connector: 'main',
  schema: 'public',
  table: 'moments',
  columns: COLUMNS,
  primaryKey: ['id'],
  sealedKeys: ['id'],
};

const RECENT: SimpleMetric = {
  type: 'simple',
  name: 'recent',
  description: null,
  entity: 'moment',
  expression: "count(*) filter (where tz::date = date '2026-03-29')",
  filter: "extract(hour from tz) < 12 and tz >= '2026-01-01'",
};

const CATALOG: Catalog = {
  version: 'v',
  relations: new Map([['moment', MOMENT]]),
  metrics: new Map([['recent', RECENT]]),
  facets: new Map(),
  edges: [],
};

function accessWith(filter: string | null): Access {
  const grant = {
    id: 'g',
    columns: new Set(COLUMNS.map((c) => c.name)),
    unmask: new Set<string>(),
    filter: filter === null ? null : bindPredicate(filter, MOMENT),
  };
  const rights = { grants: [grant], masks: new Map(), denied: new Set<string>() };
  return { signature: 's', policyVersion: 'p', chainLength: 1, relations: new Map([['moment', rights]]) };
}

async function governed(text: string, filter: string | null): Promise<string> {
  const { sql, slots } = emit(compile(text, CATALOG, accessWith(filter)));
  const values = slots.map((slot) => {
    if (slot.kind !== 'literal') throw new Error(`a slot of kind ${slot.kind}`);
    return typeof slot.value === 'string' ? slot.value : arrayText(slot.value);
  });
  const literal = (v: string): string => `'${v.replaceAll("'", "''")}'`;
  const whole = sql.replace(/\$(\d+)/g, (_, n) => literal(values[Number(n) - 1] ?? ''));
  const [row] = (await db.query<Record<string, unknown>>(whole)).rows;
  return JSON.stringify(row);
}

const IDS = `select string_agg(id::text, ' ' order by id) from moment`;

/** Each row of these is true of some rows and false of others, and by Postgres alone hangs on the session. */
const REWRITTEN = [
  "tz >= '2026-03-29'",
  "tz between '2026-01-01 12:00' and '2026-03-29 02:30:00'",
  "tz >= '2026-03-29T00:00:00Z'",
  "tz in ('2025-12-31 00:28', '2026-03-29 00:20')",
  'tz::date <= current_date',
  'tz::date = current_date',
  'd <= current_date - 1',
  'tz < current_date',
  "tz >= date '2026-03-29'",
  "tz < timestamp '2026-03-29 03:00'",
  'ts < tz',
  'd = tz',
  'ts > now()',
  'ts < localtimestamp',
  "tz > now() - interval '2 days'",
  "tz + interval '1 day' > '2026-03-30'",
  "date_trunc('day', tz) = '2026-03-29'",
  "date_trunc('week', tz) < '2026-03-01'",
  "date_trunc('day', tz, 'America/New_York') = '2026-03-29 04:00+00'",
  'extract(hour from tz) < 6',
  "date_part('dow', tz) = 1",
  'extract(epoch from tz)::int8 % 2 = 0',
  'date(tz) < date(now())',
  "to_char(tz, 'YYYY-MM-DD HH24') < '2026-03-01 12'",
  "to_char(d, 'YYYY') = '2026'",
  "age(now(), tz) > interval '1 mon'",
  "cast(tz as time) < time '06:00'",
  "tz at time zone 'Europe/Berlin' < timestamp '2026-03-29 02:00'",
  "to_date(note, 'YYYY-MM-DD') < current_date",
  "coalesce(ts, tz) < '2026-01-05'",
  "case when tz::date < date '2026-01-01' then true else ti < '06:00' end",
  "tz = any (array[timestamptz '2026-03-29 00:20', tz])",
  'tz::timestamp(0) = ts',
  'ts::timestamptz(0) > tz',
  "i < interval '-1 day'",
];

/** Advice of the refusals, which depends on no session. */
const FREE = ['length(f::numeric::text) > 16', "to_char(f, '999.99') > ' 100'", "encode(by, 'hex') < '02'"];

for (const text of [...REWRITTEN, ...FREE]) {
  t.test(text, async (t) => {
    await db.exec(DEFAULT);
    const [plain] = (await db.query(`${IDS.replace('moment', 'moments')} where ${text}`)).rows;
    const [alone] = Object.values(plain as Record<string, unknown>); // one column
    const seen = new Set<string>();
    for (const session of [DEFAULT, ...SESSIONS]) {
      await db.exec(session);
      seen.add(await governed(IDS, text));
    }
    t.equal(seen.size, 1, 'under every setting the same');
    t.match([...seen][0], JSON.stringify(alone), 'and what it says under UTC');
  });
}

t.test('by Postgres alone, most of them hang on the session', async (t) => {
  const free: string[] = [];
  for (const text of REWRITTEN) {
    const seen = new Set<string>();
    for (const session of [DEFAULT, ...SESSIONS]) {
      await db.exec(session);
      seen.add(JSON.stringify((await db.query(`${IDS.replace('moment', 'moments')} where ${text}`)).rows));
    }
    if (seen.size === 1) free.push(text);
  }
  t.ok(free.length <= 10, free.join('; '));
});

const REFUSED = [
  "tz::text like '2026%'",
  "d::text = '2026-01-01'",
  "i::text = '1 day'",
  'note::date = d',
  'note::timestamptz < tz',
  "tz > 'today'",
  "tz > 'now'",
  "d = '01/02/2026'",
  "d = 'tomorrow'",
  "ts = 'yesterday'",
  "ti > 'now'",
  "i = '-1 day 02:00'",
  "tz = '2026-01-01 00:00 Europe/Berlin'",
  'extract(timezone from tz) = 0',
  "age(tz) > interval '1 day'",
  "age(ts) > interval '1 day'",
  "to_timestamp(note, 'YYYY-MM-DD') < tz",
  'make_timestamptz(2026, 1, 1, 0, 0, 0) < tz',
  "to_char(tz, 'TZ') = 'UTC'",
  "concat(tz) = ''",
  "tz || '' = ''",
  "note || d = ''",
  "array_to_string(array[d], ',') = ''",
  "to_jsonb(tz) = '1'",
  "jsonb_build_object('a', i) = '{}'",
  'nullif(tz, d) is null',
  "tz in ('2026-01-01', 'today')",
  "tz = attribute('since')",
  "d = attribute('since')",
  "d::char(10) = '2026-01-01'",
  'note::char(10)::date = d',
  "f::text = '0.1'",
  "f::char(3) = '0.1'",
  "array[f]::text = '{0.1}'",
  "note || f = ''",
  "concat(f) = ''",
  "to_jsonb(f) = '0.1'",
  "format('%s', by) = ''",
  "by::text = ''",
  "(tz, interval '1 day') overlaps (tz, interval '1 day')",
];

for (const text of REFUSED) {
  t.test(`refused: ${text}`, async (t) => {
    t.throws(() => bindPredicate(text, MOMENT), { name: 'QueryError' });
    try {
      bindPredicate(text, MOMENT);
    } catch (error) {
      t.match(
        error instanceof QueryError && error.message,
        /settings of the session|cannot|no (function|operator)/,
      );
    }
  });
}

t.test('a metric is the same figure for every session', async (t) => {
  const seen = new Set<string>();
  for (const session of [DEFAULT, ...SESSIONS]) {
    await db.exec(session);
    seen.add(await governed('select measure(recent) from moment', null));
  }
  await db.exec(DEFAULT);
  const text = `select count(*) filter (where tz::date = date '2026-03-29' and extract(hour from tz) < 12) from moments`;
  t.strictSame([...seen], [JSON.stringify((await db.query(text)).rows[0]).replace('count', 'c1')]);
});

/** Of one operator: null where it is left alone, else whether it was refused. */
function treated(text: string): 'alone' | 'rewritten' | 'refused' {
  try {
    const filter = bindPredicate(text, MOMENT);
    return JSON.stringify(filter).includes('"UTC"') ? 'rewritten' : 'alone';
  } catch (error) {
    if (error instanceof QueryError) return 'refused';
    throw error;
  }
}

t.test('no operator that Postgres calls stable is left alone', async (t) => {
  const { rows } = await db.query<{ l: string; o: string; r: string }>(`
    select l.typname as l, o.oprname as o, r.typname as r
    from pg_operator o join pg_proc p on p.oid = o.oprcode
      join pg_type l on l.oid = o.oprleft join pg_type r on r.oid = o.oprright where p.provolatile <> 'i'`);
  const ours = functions.OPERATORS.filter((o) =>
    rows.some((r) => r.l === o.left && r.o === o.name && r.r === o.right),
  );
  t.ok(ours.length >= 14, `${ours.length} of them are in the language`);
  for (const { left, name, right } of ours) {
    const text = `(null::${left} ${name} null::${right}) is null`;
    t.not(treated(text), 'alone', text);
  }
});

t.test('nor a cast', async (t) => {
  const { rows } = await db.query<{ f: string; t: string }>(`
    select f.typname as f, t.typname as t from pg_cast c join pg_proc p on p.oid = c.castfunc
      join pg_type f on f.oid = c.castsource join pg_type t on t.oid = c.casttarget where p.provolatile <> 'i'`);
  const stable = rows.filter(
    (r) => functions.castBetween(r.f as 'date', r.t as 'date') !== null && r.f !== r.t,
  );
  t.ok(stable.length >= 5, `${stable.length} of them are in the language`);
  for (const { f, t: to } of stable) {
    const text = `(null::${f})::${to} is null`;
    t.not(treated(text), 'alone', text);
    t.not(treated(`(array[null::${f}])::${to}[] is null`), 'alone', text);
  }
});

/** Stable for other reasons: the time itself, templates, and the type of what they are given. */
const STABLE_AND_FREE = new Set([
  'now()',
  'transaction_timestamp()',
  'statement_timestamp()',
  'to_date(text, text)',
  'to_number(text, text)',
  'format(text)',
  'format(text, text)',
  'jsonb_build_array()',
  'jsonb_build_object()',
  ...['int4', 'int8', 'float4', 'float8', 'numeric', 'timestamp', 'interval'].map(
    (a) => `to_char(${a}, text)`,
  ),
  'date_trunc(text, timestamptz, text)',
  'make_timestamptz(int4, int4, int4, int4, int4, float8, text)',
]);

t.test('nor a function', async (t) => {
  const stable = functions.FUNCTIONS.filter((f) => f.volatility === 'stable' && f.kind === 'scalar');
  t.ok(stable.length > 25);
  for (const f of stable) {
    const spelled = `${f.name}(${f.arguments.join(', ')})`;
    const concrete = f.arguments.map((a) =>
      a.replace(/^anyarray$/, 'date[]').replace(/^any(element)?$/, 'date'),
    );
    const args = concrete.map((a, i) => (f.structural.has(i) ? "'day'" : `null::${a}`));
    const text = `${f.name}(${args.join(', ')}) is null`;
    if (STABLE_AND_FREE.has(spelled)) t.equal(treated(text), 'alone', spelled);
    else t.not(treated(text), 'alone', spelled);
  }
});
