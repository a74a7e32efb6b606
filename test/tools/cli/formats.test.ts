import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parquetMetadata, parquetReadObjects, type SchemaElement } from 'hyparquet';
import t from 'tap';
import { formatMarkdown } from '../../../cli/answer.js';
import { startRest } from '../../surfaces/rest/fixture.js';
import { osl, shell, temporary } from './support.js';

/** Formats of answers, written by the real command that asks a real server. */

const rest = await startRest();
t.teardown(() => rest.close());

const asks = async (subject: string): Promise<readonly string[]> => [
  'query',
  '--server',
  `http://127.0.0.1:${rest.port}`,
  '--token',
  await rest.test.token(subject),
];

t.test('NDJSON is rows and nothing else, exact; the trailer is told of on standard error', async (t) => {
  const run = await osl([
    ...(await asks('user:ann')),
    '--format',
    'ndjson',
    "select id, name, email, 9007199254740993 as big, '\u001b[31m' as esc from customer order by id limit 2",
  ]);
  t.equal(run.code, 0, run.stderr);
  t.equal(
    run.stdout,
    '{"id":1,"name":"Ada","email":"[redacted]","big":"9007199254740993","esc":"\\u001b[31m"}\n' +
      '{"id":2,"name":"Bo","email":"[redacted]","big":"9007199254740993","esc":"\\u001b[31m"}\n',
  );
  t.equal(run.stderr, 'masked: customer.email\n');
  const named = await osl([
    ...(await asks('user:ann')),
    '--format',
    'ndjson',
    'select id as trailer from customer order by id limit 2',
  ]);
  t.equal(named.stdout, '{"trailer":1}\n{"trailer":2}\n', 'a column of that name is no trailer');
  const none = await osl([
    ...(await asks('user:ann')),
    '--format',
    'ndjson',
    'select id from customer where id < 0',
  ]);
  t.strictSame([none.code, none.stdout], [0, '']);
  const refused = await osl([
    ...(await asks('user:ann')),
    '--format',
    'ndjson',
    'select nothing from customer',
  ]);
  t.match(refused, { code: 1, stdout: '', stderr: /^error E0512: .*nothing/ });
});

t.test('an answer that fails on its way ends with 1, and its rows are as they came', async (t) => {
  const failing = 'select 1/(id - 3) as one from customer order by id';
  for (const format of ['ndjson', 'parquet']) {
    const run = await shell(
      `npx osl ${(await asks('user:ann')).join(' ')} --format ${format} "${failing}" | cat; exit \${PIPESTATUS[0]}`,
    );
    t.match(run, { code: 1, stderr: /^error E\d{4}: .*zero/ }, format);
  }
});

t.test('Markdown: figures as their metrics say, and what cells hold stays text', async (t) => {
  const run = await osl([
    ...(await asks('user:ann')),
    '--format',
    'markdown',
    'select name, email, measure(revenue) as r from customer c join "order" o on o.customer_id = c.id group by name, email order by name limit 2',
  ]);
  t.match(run, { code: 0, stderr: '' });
  t.match(
    run.stdout,
    /^\| name \| email \| r \|\n\| --- \| --- \| ---: \|\n\| Ada \| \\\[redacted\\\] \| [\d.]+ EUR \|\n[\s\S]*\n\nmasked: customer\.email\n$/,
  );
  const shown = (value: string): string =>
    formatMarkdown({
      request_id: 'r',
      columns: [{ name: 'c', type: 'text', redacted: false }],
      rows: [{ c: value }],
      row_count: 1,
      truncated: false,
      redacted_columns: [],
    })
      .split('\n')[2]
      ?.slice(2, -2) ?? '';
  t.equal(shown('a | b\nc'), 'a \\| b\\\\nc');
  t.equal(
    shown('[x](javascript:alert(1)) ![y](http://z)'),
    '\\[x\\](javascript:alert(1)) \\!\\[y\\](http://z)',
  );
  t.equal(
    shown('<img onerror=x> &amp; `code` *b* _i_ ~s~ $m$'),
    '&lt;img onerror=x&gt; &amp;amp; \\`code\\` \\*b\\* \\_i\\_ \\~s\\~ \\$m\\$',
  );
  t.equal(shown('\u001b[31m\u202e'), '\\\\x1b\\[31m\\\\u{202e}');
});

t.test('formats that people read show figures as their metrics say, raw formats have values', async (t) => {
  const question = 'select measure(revenue) as r from "order"';
  const by = async (...flags: string[]): Promise<string> =>
    (await osl([...(await asks('user:ann')), ...flags, question])).stdout;
  t.match(await by(), /1025\.00 EUR/);
  t.match(await by('--format', 'markdown'), /1025\.00 EUR/);
  t.equal(await by('--format', 'csv'), 'r\r\n1025.00\r\n');
  t.equal(await by('--format', 'ndjson'), '{"r":"1025.00"}\n');
  t.match(await by('--json'), /"rows":\[\{"r":"1025\.00"\}\]/);
});

/** What the command writes to a file, as its bytes. */
async function parquetOf(question: string, subject = 'user:ann'): Promise<ArrayBuffer> {
  const file = join(temporary(), 'answer.parquet');
  const who = (await asks(subject)).join(' ');
  const run = await shell(`npx osl ${who} --format parquet '${question.replaceAll("'", `'"'"'`)}' > ${file}`);
  t.equal(run.code, 0, run.stderr);
  const bytes = readFileSync(file);
  return bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
}

t.test('CSV keeps spreadsheets from calculating, and --exact leaves values as they are', async (t) => {
  const texts = "select 1 as n, '@babel/core' as a, '=1+1' as b, e'\\x1b[31m' as c";
  const csv = [...(await asks('user:ann')), '--format', 'csv'];
  t.equal((await osl([...csv, texts])).stdout, "n,a,b,c\r\n1,'@babel/core,'=1+1,\\x1b[31m\r\n");
  t.equal((await osl([...csv, '--exact', texts])).stdout, 'n,a,b,c\r\n1,@babel/core,=1+1,\u001b[31m\r\n');
  t.match(await osl([...(await asks('user:ann')), '--exact', texts]), {
    code: 2,
    stderr: 'error: --exact goes with --format csv',
  });
});

t.test('Parquet: every type and NULL, to the last digit', async (t) => {
  const file = await parquetOf(
    `select id, flag, small, big, real4, real8, exact, exact::numeric(30,2) as fixed, words, token, day, clock, local,
      moment, span, bytes, doc, numbers, texts from sample where id = 1
     union all select id, flag, small, big, real4, real8, exact, null, words, token, null, clock, null, null, span, bytes,
      doc, numbers, null from sample where id = 3 order by id`,
  );
  const [one, none] = await parquetReadObjects({ file, parsers: EXACT, utf8: false });
  t.strictSame(
    { ...one },
    {
      id: 1,
      flag: true,
      small: -7,
      big: 9007199254740993n,
      real4: 1.5,
      real8: 0.1,
      exact: '12345678901234567890.10',
      fixed: '12345678901234567890.10',
      words: 'a "b" \\ \n\t\u0001 é 😀',
      token: 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11',
      day: 20_484,
      clock: 86_341_500_000n,
      local: 1_769_903_941_500_000n,
      moment: 1_769_903_941_250_000n,
      span: 'P1Y2DT3H4M5S',
      bytes: Uint8Array.from([0xde, 0xad, 0xbe, 0xef, 0]),
      doc: Uint8Array.from(Buffer.from(`{"a": [1, null, 1${'0'.repeat(400)}], "b": "é"}`)),
      numbers: [1, null, 3],
      texts: ['a,b', 'c"d\\', null, 'NULL', ''],
    },
  );
  t.match(none, { id: 3, small: null, big: null, fixed: null, token: null, moment: null, texts: null });
  const schema = new Map(parquetMetadata(file).schema.map((element) => [element.name, element]));
  t.match(schema.get('small'), { type: 'INT32', converted_type: 'INT_16' });
  t.match(schema.get('big'), { type: 'INT64' });
  t.match(schema.get('moment'), {
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MICROS' },
  });
  t.match(schema.get('local'), {
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: false, unit: 'MICROS' },
  });
  t.match(schema.get('token'), { type_length: 16, logical_type: { type: 'UUID' } });
  t.match(schema.get('numbers'), { converted_type: 'LIST', num_children: 1 });
});

/** As they are stored: the reader's own parsers round moments to milliseconds. */
const EXACT = {
  timestampFromMilliseconds: (value: bigint) => value,
  timestampFromMicroseconds: (value: bigint) => value,
  timestampFromNanoseconds: (value: bigint) => value,
  dateFromDays: (value: number) => value,
};

t.test('Parquet: declared decimals, empty answers, what the server said', async (t) => {
  const file = await parquetOf('select id, name, email from customer where id < 0');
  t.same(await parquetReadObjects({ file }), []);
  const { schema, key_value_metadata } = parquetMetadata(file);
  t.same(
    schema.map(({ name }: SchemaElement) => name),
    ['schema', 'id', 'name', 'email'],
  );
  t.match(JSON.parse(key_value_metadata?.find(({ key }) => key === 'osl.trailer')?.value ?? ''), {
    row_count: 0,
    truncated: false,
    redacted_columns: ['customer.email'],
  });
});

t.test('Parquet is written in row groups, whatever the number of rows', async (t) => {
  const file = await parquetOf(
    `select n, 'x' as x from generate_series(1, 64000) as n
     union all select 0 - n, null from generate_series(1, 64000) as n`,
  );
  const { row_groups, num_rows } = parquetMetadata(file);
  t.equal(num_rows, 128_000n);
  t.same(
    row_groups.map((group) => Number(group.num_rows)),
    [65_536, 62_464],
  );
  const rows = await parquetReadObjects({ file });
  t.equal(new Set(rows.map((row) => row['n'])).size, 128_000);
  t.equal(rows.filter((row) => row['x'] === 'x').length, 64_000);
});
