import { spawn } from 'node:child_process';
import pg from 'pg';
import tap, { test } from 'tap';
import { partOf } from '../../support/part.js';
import { connectTo } from './asked.js';
import { ENDLESS } from './fuzz/traces.js';
import { psqlScript, startBoth } from './support.js';

/** What a session sets changes its answers as it does in Postgres itself: each script, byte for byte. */

const both = await startBoth();
tap.setTimeout(600_000);
tap.teardown(() => both?.close());
const skip = both === null ? 'no native Postgres to compare with' : false;

const ANSWERS = `
select id, moment, local, day, span, moments from sample order by id;
select id, placed_at::date, date_trunc('day', placed_at), extract(hour from placed_at) from "order" order by id;
select moment::text, moment at time zone 'America/New_York', to_char(moment, 'YYYY-MM-DD HH24:MI TZ OF') from sample order by id;
select count(*) from "order" where placed_at >= '2026-01-02' and placed_at < timestamp '2026-01-03 12:00';
select id from "order" where placed_at::date in ('2026-01-02', '2026-01-05') order by id;
select timestamptz '2026-03-29 02:30', timestamp '2026-03-29 02:30'::timestamptz, date '2026-03-29'::timestamptz;
select to_jsonb(timestamptz '2026-07-01 12:00+00'), age(timestamptz '2026-07-01', '2025-12-31 23:00+00');
select timestamptz '2026-03-28 12:00+00' + interval '1 day', interval '-1 day 02:00:00', interval '1 year -2 mons 3.5 s';
select date_trunc('day', timestamptz '2024-07-01 20:00+00'), to_char(timestamptz '2024-07-01 20:00+00', 'HH24:MI TZ OF');
select now()::date = (now() at time zone current_setting('TimeZone'))::date, current_date = now()::date, now()::text = now()::text;
with moments as (select timestamptz '2024-07-01 20:00+00' as at) select at, at::date, at::text, extract(hour from at) from moments;
select at::time, age(at, '2023-01-01') from (select timestamptz '2024-07-01 20:00+00' as at) as moments;
select g, g::text from generate_series(timestamptz '2024-03-30 22:00+00', '2024-03-31 04:00+00', '2 hours') as g;
select * from (values (date '2024-07-01', interval '1 day 02:00', timestamp '2024-07-01 20:00')) as v;
select current_setting('TimeZone'), current_setting('datestyle'), current_setting('IntervalStyle');
select '03/04/2024'::date::text, make_timestamptz(2024, 7, 1, 20, 0, 0), to_timestamp(1719864000);
select id, real4, real8, bytes, real8::text, bytes::text, to_jsonb(real8), real4 || '!' from sample order by id;
select array_agg(real8 order by id), concat(bytes, ' ', max(real4)) from sample where id < 3 group by bytes order by 2;
select 0.1::float8 + 0.2::float8 as f, (1 / 3.0)::float4::text as g, '\\x0141ff5c'::bytea as b, '\\001A'::bytea::text as c;
with v(f, b) as (values (0.1::float8 + 0.2::float8, '\\x0141ff5c'::bytea)) select f, f::text, b, b::text, to_json(f) from v;
copy (select id, real4, real8, bytes from sample order by id) to stdout;
copy (select timestamptz '2024-07-01 20:00+00', interval '1 year 2 mons') to stdout;
copy (select id, moment, day, span from sample order by id) to stdout;
copy (select id, moment, local from sample order by id) to stdout (format csv, header);
copy (select id, moment, local from sample order by id) to stdout (format binary);
\\set FETCH_COUNT 2
select id, placed_at from "order" order by id limit 5;
\\unset FETCH_COUNT
begin;
declare c cursor for select id, moment from sample order by id;
fetch 1 from c;
fetch all from c;
commit;
begin;
declare n cursor for select timestamptz '2024-07-01 20:00+00' as at union all select date '2024-07-01' order by at;
fetch all from n;
commit;
show timezone; show datestyle; show intervalstyle; show extra_float_digits; show bytea_output;
`;

const SESSIONS: readonly string[] = [
  '',
  "set timezone = 'Europe/Berlin';",
  "set timezone to 'europe/berlin';",
  "set time zone 'America/New_York';",
  "set timezone = 'Asia/Kolkata'; set datestyle = 'SQL, DMY';",
  "set timezone = 'Pacific/Kiritimati'; set datestyle = German;",
  "set timezone = 'Etc/GMT+12'; set datestyle = 'Postgres, YMD'; set intervalstyle = 'postgres_verbose';",
  'set time zone -7; set intervalstyle = sql_standard;',
  'set time zone 5.5; set intervalstyle = iso_8601;',
  "set time zone interval '-08:30' hour to minute;",
  "set time zone interval '3' hour;",
  "set timezone = 'EST5EDT'; set datestyle to sql;",
  "set timezone = '<+03>-03'; set datestyle to dmy;",
  "set timezone = 'GMT';",
  'set extra_float_digits = 0; set bytea_output = escape;',
  "set extra_float_digits = -10; set bytea_output to 'ESCAPE'; show extra_float_digits; show bytea_output;",
  "select set_config('extra_float_digits', '0', false), set_config('bytea_output', 'escape', false), '\\x00'::bytea;",
  'set bytea_output = escape; set extra_float_digits = -2; reset bytea_output; set extra_float_digits to default;',
  'begin; set local bytea_output = escape; select bytes from sample where id = 1; rollback;',
  "set timezone = 'Etc/UTC';",
  "set timezone = 'Asia/Tokyo'; reset timezone;",
  "set timezone = 'Asia/Tokyo'; set timezone to default;",
  "set timezone = 'Asia/Tokyo'; set time zone local;",
  "set timezone = 'Asia/Tokyo'; reset all; reset search_path;",
  "begin; set timezone = 'Asia/Tokyo'; show timezone; rollback;",
  "begin; set timezone = 'Asia/Tokyo'; commit;",
  "begin; set local timezone = 'Asia/Tokyo'; show timezone; select timestamptz '2026-01-01 00:00+00'; commit;",
  "begin; set local timezone = 'Asia/Tokyo'; set timezone = 'Asia/Seoul'; commit;",
  "set timezone = 'Asia/Seoul'; begin; set local timezone = 'Asia/Tokyo'; select 1/0; rollback;",
  "begin; set timezone = 'Asia/Tokyo'; savepoint a; set timezone = 'Asia/Seoul'; rollback to a; show timezone; commit;",
  "begin; savepoint a; set timezone = 'Asia/Seoul'; release a; savepoint b; select 1/0; rollback to b; show timezone; commit;",
  "begin; set timezone = 'Asia/Tokyo'; select 1/0; commit;",
  "set local timezone = 'Asia/Tokyo';",
  "set timezone = 'Asia/Tokyo'\\; select 1/0;",
  "set local timezone = 'Asia/Tokyo'\\; select timestamptz '2026-01-01 00:00+00';",
  "begin\\; set timezone = 'Asia/Tokyo'\\; commit\\; set timezone = 'Asia/Seoul'\\; select 1/0;",
  "select set_config('timezone', 'Asia/Tokyo', false), set_config('datestyle', 'german', false);",
  "select set_config('timezone', 'Asia/Tokyo', true), now()::text like '%+09';",
  "begin; select set_config('timezone', 'Asia/Tokyo', true), set_config('intervalstyle', 'iso_8601', false); commit;",
  "begin; select set_config('timezone', 'Asia/Tokyo', false); rollback;",
  "set timezone = 'Asia/Tokyo'; select set_config('timezone', null, false);",
  "select set_config('timezone', 'Asia/Tokyo', false), 1/(length(current_setting('timezone')) - 10);",
];

for (const session of partOf('settings of sessions', SESSIONS, 3)) {
  test(session === '' ? 'the default' : session, { skip }, async (t) => {
    if (both === null) return;
    const script = `${session}\n${ANSWERS}`;
    const [ours, theirs] = await Promise.all([
      psqlScript(await both.gateway('user:ada'), script),
      psqlScript(both.direct, script),
    ]);
    t.equal(ours, theirs);
  });
}

const REFUSED: readonly string[] = [
  "set timezone = 'Foo/Bar';",
  "set timezone = '';",
  "set datestyle = 'nonsense';",
  "set datestyle = 'iso, sql';",
  "set datestyle = 'ymd, dmy';",
  "set intervalstyle = 'x';",
  "select set_config('timezone', 'Foo/Bar', false);",
  "select set_config('datestyle', 'nonsense', false);",
  "select set_config('intervalstyle', 'x', false), current_setting('timezone');",
];

for (const text of REFUSED) {
  test(`refused: ${text}`, { skip }, async (t) => {
    if (both === null) return;
    const script = `\\set VERBOSITY verbose\n${text}\nshow timezone; show datestyle; show intervalstyle;\n`;
    const said = async (env: NodeJS.ProcessEnv): Promise<string> =>
      (await psqlScript(env, script)).replace(/\nLOCATION.*/g, '').replace(/psql:.*?: /g, '');
    t.equal(await said(await both.gateway('user:ada')), await said(both.direct));
  });
}

test('refused, but with less to say', { skip }, async (t) => {
  if (both === null) return;
  const script = `set time zone 'right/UTC'; set time zone 200; set time zone interval '1 month' hour; show timezone;`;
  t.equal(await psqlScript(await both.gateway('user:ada'), script), await psqlScript(both.direct, script));
});

const BINARY = `select moment, local, day, span, clock from sample where moment >= $1 and day <> all ($2) order by id`;

/** What a client of the extended protocol hears: ParameterStatus, and values in both formats. */
async function conversation(env: NodeJS.ProcessEnv, zone: string): Promise<unknown> {
  const options = env === both?.direct ? { PGOPTIONS: '-c search_path=entities' } : {};
  const client = await connectTo({ ...env, ...options });
  const heard: unknown[] = [];
  const { connection } = client as unknown as { connection: NodeJS.EventEmitter }; // not in the types of `pg`
  connection.on('parameterStatus', (m: { parameterName: string; parameterValue: string }) =>
    heard.push([m.parameterName, m.parameterValue]),
  );
  try {
    const values = ['2026-01-01 00:00', '{2026-01-01,2026-02-28}'];
    for (const setting of [
      '',
      "set datestyle = 'SQL, DMY'",
      `set timezone = '${zone}'`,
      'set intervalstyle = iso_8601',
    ]) {
      if (setting !== '') await client.query(setting);
      for (const binary of [false, true]) {
        const asked = {
          text: BINARY,
          values,
          rowMode: 'array' as const,
          binary,
          types: { getTypeParser: () => raw },
        };
        const { rows } = await client.query(asked);
        heard.push(rows);
      }
    }
  } finally {
    await client.end();
  }
  return heard;
}

const raw = (value: unknown): string => (Buffer.isBuffer(value) ? value.toString('hex') : String(value));

for (const zone of partOf('zones', ['Europe/Berlin', 'america/new_york', 'GMT+3', '-5'], 2)) {
  test(`values in text and in binary: ${zone}`, { skip }, async (t) => {
    if (both === null) return;
    const ours = await conversation(await both.gateway('user:ada'), zone);
    t.same(ours, await conversation(both.direct, zone));
    t.match(ours, [[[/2026-01-31/]]], 'with rows');
  });
}

const AT_START = `show timezone; show datestyle;
  select id, placed_at from "order" order by id limit 2;
  set timezone = 'Asia/Tokyo'; reset timezone; show timezone; set datestyle = 'german'; reset all; show timezone; show datestyle;
`;

for (const zone of partOf(
  'zones at the start',
  ['UTC', 'Europe/Berlin', 'america/new_york', 'GMT+3', '-5'],
  2,
)) {
  test(`a startup packet with TimeZone ${zone}`, { skip }, async (t) => {
    if (both === null) return;
    const start = { PGTZ: zone, PGDATESTYLE: 'SQL, DMY' };
    const ours = await psqlScript({ ...(await both.gateway('user:ada')), ...start }, AT_START);
    const direct = { ...both.direct, PGOPTIONS: '-c search_path=entities', ...start };
    t.equal(ours, await psqlScript(direct, AT_START));
  });
}

test('of a setting given twice in the options, the last value', { skip }, async (t) => {
  if (both === null) return;
  const start = { PGOPTIONS: '-c search_path=entities -c datestyle=ISO -c timezone=UTC -c datestyle=German' };
  const ours = await psqlScript({ ...(await both.gateway('user:ada')), ...start }, 'show datestyle;');
  t.equal(ours, await psqlScript({ ...both.direct, ...start }, 'show datestyle;'));
  t.match(ours, 'German, DMY');
});

const PATHS = `show search_path; set search_path = entities, public; show search_path; set search_path to "$user", ENTITIES;
  show search_path; select current_setting('search_path'), current_schema; select id from customer where id = 1;
  begin; set local search_path = public, entities; show search_path; commit; show search_path;
  select set_config('search_path', '"$user",entities , Public', false), current_setting('search_path'); show search_path;
  set search_path = 'entities'; show search_path; reset search_path; show search_path; set search_path to default;
`;

for (const path of ['entities', '"$user",entities,public', 'ENTITIES,\\ public']) {
  test(`a search path of schemas that are here, or nowhere: ${path}`, { skip }, async (t) => {
    if (both === null) return;
    const start = { PGOPTIONS: `-c search_path=${path}` };
    const ours = await psqlScript({ ...(await both.gateway('user:ada')), ...start }, PATHS);
    t.equal(ours, await psqlScript({ ...both.direct, ...start }, PATHS));
    t.notMatch(ours, /ERROR/);
  });
}

test('a startup packet with a setting that is none', { skip }, async (t) => {
  if (both === null) return;
  const saidTo = (env: NodeJS.ProcessEnv): Promise<string> =>
    psqlScript(env, 'select 1;').then(
      () => 'connected',
      (failure: Error) => /FATAL:.*/.exec(failure.message)?.[0] ?? failure.message,
    );
  for (const start of [{ PGTZ: 'Foo/Bar' }, { PGDATESTYLE: 'nonsense' }]) {
    const theirs = await saidTo({ ...both.direct, ...start });
    t.equal(await saidTo({ ...(await both.gateway('user:ada')), ...start }), theirs);
    t.match(theirs, 'invalid value for parameter');
  }
});

test('sessions of many zones at once see none of each other', { skip }, async (t) => {
  if (both === null) return;
  const env = await both.gateway('user:ada');
  const zones = [
    'UTC',
    'Asia/Tokyo',
    'America/New_York',
    'Europe/Berlin',
    'Asia/Kolkata',
    'Pacific/Kiritimati',
    '',
    '',
  ];
  const clients = zones.map(
    () =>
      new pg.Client({
        host: '127.0.0.1',
        port: both.port,
        user: 'user:ada',
        password: env['PGPASSWORD'],
        database: 'osl',
      }),
  );
  await Promise.all(clients.map((c) => c.connect()));
  t.teardown(() => Promise.all(clients.map((c) => c.end())));
  await Promise.all(
    clients.map((c, i) => (zones[i] === '' ? null : c.query(`set timezone = '${zones[i]}'`))),
  );
  const shown = new Map<string, Set<string>>();
  // Often enough that the statement proves short, and comes to share upstream sessions.
  for (let round = 0; round < 40; round++) {
    await Promise.all(
      clients.map(async (client, i) => {
        const wrong =
          round % 7 === i % 7 ? client.query('select 1/(id - id) from sample').catch(() => null) : null;
        const { rows } = await client.query(
          `select placed_at::text as at, date_trunc('day', placed_at)::text as day from "order" where id = 1`,
        );
        await wrong;
        const zone = zones[i] === '' ? 'UTC' : (zones[i] ?? '');
        shown.set(zone, (shown.get(zone) ?? new Set()).add(JSON.stringify(rows)));
      }),
    );
  }
  t.ok(
    [...shown.values()].every((s) => s.size === 1),
    'each always the same',
  );
  t.equal(new Set([...shown.values()].flatMap((s) => [...s])).size, 6, 'each zone its own');
});

test('settings of an upstream session are its own again after every end of a statement', {
  skip,
}, async (t) => {
  if (both === null) return;
  const env = await both.gateway('user:ada');
  const script = (texts: string): Promise<string> => psqlScript(env, texts);
  await script(
    `set timezone = 'Asia/Tokyo'; select 1/0; select id, placed_at from "order" limit 1; select nothing;`,
  );
  let said = '';
  const questions = async (): Promise<number> =>
    (await both.shop.records()).filter((r) => r.action === 'query' && r.kind === 'decision').length;
  const before = await questions();
  const psql = spawn('psql', ['-X', '-c', "set timezone = 'Asia/Tokyo'", '-c', ENDLESS], { env });
  psql.stderr.on('data', (chunk) => {
    said += String(chunk);
  });
  const closed = new Promise((resolve) => psql.once('close', resolve));
  while ((await questions()) === before) await new Promise((resolve) => setTimeout(resolve, 20));
  await new Promise((resolve) => setTimeout(resolve, 300)); // let in, it begins
  psql.kill('SIGINT');
  await closed;
  t.match(said, 'cancelled');
  for (let i = 0; i < 8; i++) t.match(await script('select placed_at from "order" where id = 1;'), /\+00\n/);
});

const TIMES = [
  "'5s'",
  '5000',
  "'1min'",
  "'90s'",
  "'1.5s'",
  "'2 h'",
  "'1h '",
  "'5 S'",
  "'30d'",
  "'64MB'",
  '0',
  '-1',
];
const SIZES = [
  '64',
  "'64MB'",
  "'1.5GB'",
  "'100kB'",
  "'1mb'",
  "'1TB'",
  "'0x1000'",
  "'0100'",
  "'1e3'",
  '63',
  "'5s'",
];
const REALS = ['0', '1', '-1', "'.5'", "'1e-7'", '1.25', "'010'", "'0x10'", "'x'", "'1 2'", "'2.5ms'"];
const WORDS = ['on', 'off', "'tr'", "'o'", "'FALSE'", "'1'", "'y'", "'no'", "'2'", "''"];
/** What tools set, and texts that are a value of such a setting or none. */
const VALUES: readonly (readonly [name: string, values: readonly string[]])[] = [
  ['statement_timeout', [...TIMES, "'2147483648'", "'99999999999'", "'x'", "''"]],
  ['idle_in_transaction_session_timeout', TIMES],
  ['work_mem', SIZES],
  ['temp_buffers', SIZES],
  ['jit', WORDS],
  ['geqo_seed', REALS],
  ['random_page_cost', REALS],
  ['synchronous_commit', [...WORDS, "'remote_apply'", "'LOCAL'"]],
  ['client_min_messages', ["'debug1'", "'WARNING'", "'notice'", "'fatal'", "'x'"]],
  ['max_parallel_workers_per_gather', ['0', '1024', '1025', "'1.5'", "'2.5'", "'1kB'"]],
  ['extra_float_digits', ['0', '-15', '-16', '3', '4', "'1.4'", "'x'"]],
  ['bytea_output', ["'hex'", "'Escape'", "'x'"]],
  ['application_name', ["'a b'", '5', 'on', "''"]],
];

test('a value with a long run of blanks costs linear time', { skip }, async (t) => {
  if (both === null) return;
  const begun = performance.now();
  const said = await psqlScript(
    await both.gateway('user:ada'),
    `set work_mem = '1a${' '.repeat(60_000)}b'; set work_mem = '1${' '.repeat(60_000)}MB'; show work_mem;`,
  );
  t.match(said, /ERROR: {2}22023/);
  t.match(said, '\n1MB\n');
  t.ok(performance.now() - begun < 4_000);
});

/** An error as Postgres words it, without its place in the source. */
function worded(printed: string): string {
  return printed
    .replace(/\n(LOCATION|LINE|CONTEXT|DETAIL: {2}E\d{4}|PL\/pgSQL).*/g, '')
    .replace(/\n\s*\^/g, '')
    .replace(/psql:.*?: /g, '');
}

for (const [name, values] of partOf('values of settings', [...VALUES], 3)) {
  test(`SET, SHOW, set_config and current_setting of ${name}`, { skip }, async (t) => {
    if (both === null) return;
    const asked = [...values, 'default'].map((value) => {
      const config = value === 'default' ? 'null' : `'${value.replaceAll("'", '')}'`;
      return `set ${name} to ${value};
        show ${name}; select current_setting('${name}');
        select setting, unit from pg_settings where name = '${name}';
        begin; select set_config('${name}', ${config}, true) as a, current_setting('${name}') as b; show ${name}; commit;
        show ${name}; select set_config('${name}', ${config}, false); show ${name};`;
    });
    const script = `\\set VERBOSITY verbose\nset ${name} to default;\n${asked.join('\n')}`;
    const [ours, theirs] = await Promise.all([
      psqlScript(await both.gateway('user:ada'), script),
      psqlScript(both.direct, script),
    ]);
    const [mine, real] = [worded(ours).split('\n'), worded(theirs).split('\n')];
    const apart = mine.findIndex((line, i) => line !== real[i]);
    const around = (lines: readonly string[]): readonly string[] =>
      apart < 0 ? [] : lines.slice(Math.max(0, apart - 6), apart + 3);
    t.same(around(mine), around(real));
    t.equal(mine.length, real.length);
  });
}
