import { createHash } from 'node:crypto';
import tap, { test } from 'tap';
import { bind, execute, message, parse, query, sync } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { psqlScript, startBoth } from './support.js';

/** Clients that write no UTF-8, as Postgres itself answers them. */

const both = await startBoth();
tap.setTimeout(600_000);
tap.teardown(() => both?.close());
const skip = both === null ? 'no native Postgres to compare with' : false;

/** Bytes above ASCII are written as psql's terminal would: one character for each byte. */
const SCRIPTS: Readonly<Record<string, string>> = {
  'names by which an encoding is known': [
    'latin1',
    'ISO-8859-1',
    '"Latin_9"',
    'win1252',
    'WINDOWS-1251',
    'koi8r',
    'shift_jis',
    'euc_jp',
    'gbk',
    'big5',
    'unicode',
    'nonsense',
    '',
  ]
    .map((name) => `set client_encoding to '${name}'; show client_encoding; select pg_client_encoding();`)
    .join('\n'),
  'values and names, both ways': `
set client_encoding to 'latin1';
select 'caf\u00e9' as "na\u00efve", length('caf\u00e9'), chr(233) = '\u00e9' from customer where id = 1;
prepare q (text) as select $1 || '\u00fc', length($1); execute q('\u00e9');
\\copy (select 'caf\u00e9') to stdout
set client_encoding to 'win1252'; select '\u0080' = chr(8364), length('\u0080') from customer where id = 1; select '\u0081';
set client_encoding to 'win1251'; select ascii('\u00e9') from customer where id = 1;
set client_encoding to 'sjis'; select ascii('\u0082\u00a0'), '\u0082\u00a0' from customer where id = 1; select '\u00ff\u00ff';
set client_encoding to 'utf8'; select length('\u00c3\u00a9') from customer where id = 1;`,
  'what an encoding has not': `
set client_encoding to 'latin1'; select chr(8364) from customer where id = 1; select 1;
set client_encoding to 'sjis'; select chr(233) from customer where id = 1; select chr(12354) from customer where id = 1;`,
  'in blocks, as any setting': `
begin; set client_encoding to 'latin1'; rollback; show client_encoding;
set client_encoding to 'latin1'; begin; set local client_encoding to 'utf8'; commit; show client_encoding;
reset client_encoding; show client_encoding; select set_config('client_encoding', 'latin2', false); show client_encoding; discard all; show client_encoding;`,
};

for (const [name, script] of Object.entries(SCRIPTS)) {
  test(name, { skip }, async (t) => {
    if (both === null) return;
    const bytes = Buffer.from(script.trim().replaceAll(/; (?=\S)/g, ';\n'), 'latin1');
    t.equal(await psqlScript(await both.gateway('user:ada'), bytes), await psqlScript(both.direct, bytes));
  });
}

/** Longer than what is converted in one turn of the event loop, cut within characters too. */
const LONG = `
set client_encoding to 'latin1';
select chr(233) || '-' || g from generate_series(1, 80000) g order by g;
select id, repeat(chr(233) || chr(10), 100000) from customer where id < 3 order by id;
select md5('${'\u00e9'.repeat(300_000)}') from customer where id = 1;
set client_encoding to 'gbk';
select repeat(chr(20013), 200001), md5('${'\u00d6\u00d0'.repeat(200_001)}') from customer where id = 1;
select md5('x${'\u00d6\u00d0'.repeat(200_001)}') from customer where id = 1;
select repeat(chr(20013), 200001) || chr(233) || chr(128512) from customer where id = 1;
set client_encoding to 'gb18030';
select 'x' || repeat(chr(128512), 100000) from customer where id = 1;`;

test('many rows, long values, and texts of more than one slice', { skip }, async (t) => {
  if (both === null) return;
  const bytes = Buffer.from(LONG.trim(), 'latin1');
  const [mine, real] = [
    await psqlScript(await both.gateway('user:ada'), bytes),
    await psqlScript(both.direct, bytes),
  ];
  t.ok(mine.length > 2_500_000, `${mine.length} characters`);
  // The texts themselves are too long to be shown side by side.
  t.equal(createHash('sha256').update(mine).digest('hex'), createHash('sha256').update(real).digest('hex'));
});

test('an encoding of the startup packet holds from the first statement on', { skip }, async (t) => {
  if (both === null) return;
  const said = 'select \'\u00e9\' as "\u00e9"; show client_encoding;';
  const bytes = Buffer.from(said, 'latin1');
  const environment = { PGCLIENTENCODING: 'LATIN1' };
  t.equal(
    await psqlScript({ ...(await both.gateway('user:ada')), ...environment }, bytes),
    await psqlScript({ ...both.direct, ...environment }, bytes),
  );
});

const TEXT = 25;
const JSONB = 3802;
const latin = (text: string): Buffer => Buffer.from(text, 'latin1');
const asked = 'select $1::text, length($1::text), $2::jsonb, $3::bytea';

/** Series whose values and results are text or binary, of types that hold text and of such that do not. */
const SERIES: Readonly<Record<string, Buffer>> = {
  'text both ways': bind('', '', { values: [latin('caf\u00e9'), latin('{"a": "\u00e9"}'), '\\xe9'] }),
  'binary both ways': bind('', '', {
    values: [
      latin('caf\u00e9'),
      Buffer.concat([Buffer.from([1]), latin('{"\u00e9": 1}')]),
      Buffer.from([0xe9]),
    ],
    formats: [1, 1, 1],
    results: [1, 1, 1, 1],
  }),
  'binary in, text out': bind('', '', {
    values: [latin('\u00fc'), null, Buffer.from([0xe9, 0])],
    formats: [1, 1, 1],
  }),
  'a cut message': message('B', latin('\u00e9\0\0'), Buffer.from([0, 1])),
};

test('values of Bind and rows of Execute, by their types and formats', { skip }, async (t) => {
  if (both === null) return;
  const token = await both.shop.token('user:ada');
  const gateway = await Client.login(both.port, 'user:ada', token);
  const { PGPORT, PGUSER = '', PGDATABASE = '', PGPASSWORD = '' } = both.direct;
  const direct = await Client.postgres(Number(PGPORT), PGUSER, PGDATABASE, PGPASSWORD);
  const told = async (client: Client, series: readonly Buffer[]): Promise<readonly string[]> =>
    (await client.ask(...series)).filter((line) => /^[DC]/.test(line) || /^E \w/.test(line)).map(shape);
  for (const client of [gateway, direct]) await client.ask(query("set client_encoding to 'latin1'"));
  for (const [name, bound] of Object.entries(SERIES)) {
    const series = [parse('', asked, [TEXT, JSONB]), bound, execute(), sync];
    const wanted = await told(direct, series);
    t.same(await told(gateway, series), wanted, name);
    t.ok(wanted.length > 0, name);
  }
  for (const client of [gateway, direct]) client.end();
});

/** Errors by their SQLSTATE. */
function shape(line: string): string {
  return line.startsWith('E') ? line.replace(/^(E \w* ?\w{5}).*/, '$1') : line;
}

test('what only this server says: binary COPY, and messages with what an encoding has not', {
  skip,
}, async (t) => {
  if (both === null) return;
  const client = await Client.login(both.port, 'user:ada', await both.shop.token('user:ada'));
  await client.ask(query("set client_encoding to 'latin1'"));
  t.match(await client.ask(query('copy (select 1 from customer) to stdout (format binary)')), [
    /0A000.*LATIN1/,
    'Z I',
  ]);
  const sjis = await client.ask(query("set client_encoding to 'sjis'"));
  t.match(sjis.at(-1), 'Z I');
  t.match(await client.ask(query('select "\u00a5" from customer')), [/42703/, 'Z I']);
  client.end();
});
