import { test } from 'tap';
import { freshAddress, startRest } from './fixture.js';

const rest = await startRest();
const JSON_TYPE = { 'content-type': 'application/json' };
const SECRET = 'do-not-echo';

interface Case {
  readonly name: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly status: number;
  readonly code: string;
  readonly detail?: RegExp;
  /** Line and column in the body. */
  readonly at?: readonly [number, number];
}

const e0511 = (name: string, body: unknown, detail?: RegExp): Case => ({
  name,
  body,
  status: 400,
  code: 'E0511',
  ...(detail === undefined ? {} : { detail }),
});
const e0513 = (name: string, body: unknown): Case => ({ name, body, status: 400, code: 'E0513' });
const e4150 = (name: string, headers: Readonly<Record<string, string>>): Case => ({
  name,
  body: '{"osql":"SELECT 1"}',
  headers,
  status: 415,
  code: 'E4150',
});

const CASES: readonly Case[] = [
  e0511('no body', undefined, /empty/),
  e0511('broken JSON', `{"osql": "${SECRET}`, /not valid JSON/),
  e0511('values deep in each other', `{"osql":${'['.repeat(1_001)}${']'.repeat(1_001)}}`, /depth/),
  e0511('bytes that are no UTF-8', Buffer.from([0x7b, 0xff, 0x7d]), /UTF-8/),
  {
    ...e0511('a key twice', '{"osql": "select 1",\n "osql": "select 2"}', /names a key twice/),
    at: [2, 2],
  },
  {
    ...e0511('a key twice, in another spelling', '{"osql":"select 1","\\u006fsql":"select 2"}', /twice/),
    at: [1, 20],
  },
  {
    ...e0511('a key twice further in', '{"metrics":["x"],"order_by":[{"name":"x","name":"y"}]}', /twice/),
    at: [1, 42],
  },
  {
    ...e0511('a key twice, after a backslash', '{"osql":"\\\\","osql":"select 2"}', /names a key twice/),
    at: [1, 14],
  },
  {
    ...e0511('a key twice, after an escaped quote', '{"osql":"\\"","osql":"select 2"}', /names a key twice/),
    at: [1, 14],
  },
  {
    ...e0511('a key twice that ends in a backslash', '{"a\\\\":1,"a\\\\":2}', /names a key twice/),
    at: [1, 10],
  },
  { ...e0511('half of a pair', '{"osql":"select \'\\ud83d\'"}', /half of a surrogate/), at: [1, 9] },
  {
    ...e0511('half of a pair in a key', '{"osql":"select 1","\\udc00":1}', /half of a surrogate/),
    at: [1, 20],
  },
  e0511('an array', '[]', /object/),
  e0511('a string', `"${SECRET}"`, /object/),
  e0511('null', 'null', /object/),
  e0511('deep nesting', '['.repeat(100_000), /depth of the body/),
  e0511('osql of another type', { osql: 1 }, /`osql` must be a string/),
  e0511('osql null', { osql: null }, /`osql` must be a string/),
  e0511('sql of another type', { sql: [SECRET] }, /`sql` must be a string/),
  e0511('metrics of another type', { metrics: SECRET }, /`metrics` must be an array/),
  e0511('explain of another type', { osql: 'SELECT 1', explain: SECRET }, /`explain`/),
  e0511('an unknown field', { osql: 'SELECT 1', roles: SECRET }, /no field `roles`/),
  e0511('a field named __proto__', '{"osql":"SELECT 1","__proto__":{"x":1}}', /no field `__proto__`/),
  e0511('an unknown field with a long name', { osql: 'SELECT 1', ['x'.repeat(5_000)]: 1 }, /^.{1,100}$/),
  e0511('parameters that are no list', { osql: 'SELECT 1', parameters: { a: SECRET } }, /`parameters`/),
  e0511('a parameter that is a list', { osql: 'SELECT $1::int4', parameters: [[SECRET]] }, /\$1/),
  e0511('a parameter that is an object', { osql: 'SELECT $1::int4', parameters: [1, {}] }, /\$2/),
  {
    ...e0511(
      'a parameter that JSON rounds',
      '{"osql":"SELECT 1","parameters":[9007199254740993]}',
      /`\/parameters\/0`/,
    ),
    at: [1, 34],
  },
  {
    ...e0511('the first that is unsafe', '{"osql":"SELECT 1",\n"parameters":[-9007199254740992]}', /0`/),
    at: [2, 15],
  },
  e0511(
    'a parameter beyond any number',
    '{"osql":"SELECT 1","parameters":["x", 1, 1e400]}',
    /`\/parameters\/2`/,
  ),
  e0511('a parameter below any number', '{"osql":"SELECT 1","parameters":[1e-400]}', /`\/parameters\/0`/),
  e0511(
    'digits that a double drops',
    '{"parameters":[0.12345678901234567891],"osql":"SELECT 1"}',
    /`\/parameters\/0`/,
  ),
  e0511('a limit of many digits', '{"metrics":["revenue"],"limit":10000000000000000000001}', /`\/limit`/),
  e0511(
    'deep in the body',
    '{"metrics":["revenue"],"a~/b":{"\\"c":[[],{"d":1e999}]}}',
    /`\/a~0~1b\/"c\/1\/d`/,
  ),
  e0511('a parameter with NUL', { osql: 'SELECT $1::text', parameters: ['a\0b'] }, /NUL/),
  e0511('too many parameters', { osql: 'SELECT 1', parameters: new Array(65_536).fill(1) }, /65535/),
  e0511('parameters of metrics', { metrics: [], parameters: [] }, /`osql` and `sql` only/),
  e0511('an entry without its name', { metrics: [{ nme: SECRET }] }, /`name` is missing in an entry of/),
  e0511(
    'an entry of another type',
    { metrics: ['revenue', [SECRET]] },
    /metrics` must be a string or an obj/,
  ),
  e0511(
    'a member of an entry that is none of those allowed',
    { metrics: ['revenue'], group_by: ['region', { name: 'region', grain: SECRET }] },
    /`grain` in `group_by` must be one of second/,
  ),
  e0511('a name that is none', { metrics: ['revenue'], order_by: [`-${SECRET}; x`] }, /is not a name/),
  e0511('blank osql', { osql: ' ' }, /query text is empty/),
  e0511('a statement that writes', { osql: 'DELETE FROM osl.entities.order' }, /read-only/),
  e0511('no shape', {}, /none of `osql`, `sql`, `metrics`/),
  e0511('explain alone', { explain: true }, /none of/),
  e0511('what goes with metrics, without them', { group_by: ['region'] }, /none of/),
  e0513('osql and sql', { osql: 'SELECT 1', sql: 'SELECT 1' }),
  e0513('osql and metrics', { osql: 'SELECT 1', metrics: [] }),
  e0513('all three', { osql: '', sql: '', metrics: [] }),
  e0511(
    'osql with a field of metrics',
    { osql: 'SELECT 1', group_by: [] },
    /^`group_by` goes with `metrics` only$/,
  ),
  e0511('osql with a limit', { osql: 'SELECT 1', limit: 1 }, /^`limit` goes with `metrics` only$/),
  e0511(
    'metrics with parameters',
    { metrics: ['revenue'], parameters: [1] },
    /^`parameters` goes with `osql` and `sql` only$/,
  ),
  { name: 'empty sql', body: { sql: '' }, status: 400, code: 'E0246' },
  { name: 'blank sql', body: { sql: ' \n' }, status: 400, code: 'E0246' },
  { name: 'a semicolon for sql', body: { sql: ';' }, status: 400, code: 'E0246' },
  { name: 'a comment for sql', body: { sql: '/* later */ -- or never' }, status: 400, code: 'E0246' },
  e0511('a comment for osql', { osql: '-- later' }, /query text is empty/),
  { name: 'a table outside the allowlist', body: { sql: 'TABLE shop.samples' }, status: 403, code: 'E0512' },
  {
    name: 'a metrics body without an answer',
    body: { metrics: ['revenue'], group_by: ['product__label'] },
    status: 422,
    code: 'E1001',
  },
  e4150('text', { 'content-type': 'text/plain' }),
  e4150('a form', { 'content-type': 'application/x-www-form-urlencoded' }),
  e4150('another charset', { 'content-type': 'application/json; charset=latin1' }),
  e4150('a type that is none', { 'content-type': ';;;' }),
  e4150('no type', { 'content-type': '' }),
  e4150('compressed', { ...JSON_TYPE, 'content-encoding': 'gzip' }),
  { name: 'too large', body: `{"osql":"${' '.repeat(2_097_152)}"}`, status: 413, code: 'E4130' },
];

test('bodies that are refused', async (t) => {
  t.teardown(() => rest.close());
  const valid = `Bearer ${await rest.test.token('user:ann')}`;
  const send = (c: Case, authorization?: string) =>
    rest.send('/osl/query', {
      method: 'POST',
      headers: { ...(c.headers ?? JSON_TYPE), ...(authorization === undefined ? {} : { authorization }) },
      ...(c.body === undefined ? {} : { body: c.body }),
      from: freshAddress(),
    });

  for (const c of CASES) {
    await t.test(c.name, async (t) => {
      const reply = await send(c, valid);
      t.match(reply.json(), { status: c.status, code: c.code, request_id: reply.requestId });
      t.equal(reply.status, c.status);
      t.equal(reply.headers['content-type'], 'application/problem+json');
      if (c.detail !== undefined) t.match(reply.json()['detail'], c.detail);
      if (c.at !== undefined) t.match(reply.json()['position'], { line: c.at[0], column: c.at[1] });
      t.notMatch(reply.text, SECRET, 'nothing of its values comes back');
      t.strictSame(await rest.trail(reply.requestId), [
        {
          kind: 'decision',
          action: 'query',
          subject: 'user:ann',
          decision: c.status === 403 ? 'deny' : 'error',
          code: c.code,
        },
      ]);

      const stranger = await send(c);
      t.match(stranger.json(), { status: 403, code: 'E2102' }, 'who sends it comes before what it is');
      t.match(await rest.trail(stranger.requestId), [{ subject: null, decision: 'deny', code: 'E2102' }]);
      t.equal((await send(c, 'Bearer broken')).status, 401);
    });
  }

  await t.test('every body is read as strictly', async (t) => {
    const admin = await rest.test.token('user:ada', { roles: ['TENANT_ADMIN'] });
    for (const path of [
      '/osl/query',
      '/osl/sample',
      '/osl/suggest',
      '/osl/validate',
      '/osl/objects',
      '/mcp',
    ]) {
      for (const body of ['{"kind":"table","kind":"facet"}', '{"a":{"b":"\\ud800"}}']) {
        const headers = { ...JSON_TYPE, authorization: `Bearer ${admin}` };
        const reply = await rest.send(path, { method: 'POST', headers, body });
        t.match(
          reply.json(),
          { status: 400, code: 'E0511', detail: /twice|surrogate/, position: { line: 1 } },
          path,
        );
      }
    }
    const pair = JSON.stringify({ osql: "SELECT '\u{1f600}' AS a" }).replace('\u{1f600}', '\\ud83d\\ude00');
    const whole = await rest.send('/osl/query', {
      method: 'POST',
      headers: { ...JSON_TYPE, authorization: valid },
      body: pair,
    });
    t.match(whole.json(), { rows: [{ a: '\u{1f600}' }] }, 'a whole pair is a character');
  });

  await t.test('a number is taken exactly, or refused', async (t) => {
    const digits = (n: number): string => Array.from({ length: n }, (_, i) => (i * 7 + n) % 10).join('');
    const tokens = [
      ...[
        '0',
        '-0',
        '0.0',
        '0e9',
        '1.0',
        '100',
        '1e3',
        '1E+3',
        '1e-7',
        '0.1',
        '0.30000000000000004',
        '-12.50',
      ],
      ...[
        '123456789012345',
        '9007199254740991',
        '-9007199254740991',
        '9007199254740992',
        '1e15',
        '1e16',
        '1e308',
      ],
      ...[14, 15, 16, 17, 18, 19].flatMap((n) => [
        `0.${digits(n)}`,
        `1${digits(n - 1)}`,
        `3.${digits(n)}e-5`,
        `0.00${digits(n)}`,
      ]),
    ];
    const tally = { taken: 0, refused: 0 };
    for (const token of tokens) {
      const body = `{"osql":"select $1::numeric = ${token}::numeric as same","parameters":[${token}]}`;
      const headers = { ...JSON_TYPE, authorization: valid };
      const reply = await rest.send('/osl/query', { method: 'POST', headers, body });
      if (reply.status === 200) t.same(reply.json()['rows'], [{ same: true }], token);
      else t.match(reply.json(), { code: 'E0511', sqlstate: '22003', hint: 'send it as a string' }, token);
      tally[reply.status === 200 ? 'taken' : 'refused']++;
    }
    t.ok(tally.taken > 15 && tally.refused > 10, JSON.stringify(tally));
  });

  await t.test('a number of a million digits is refused at once', async (t) => {
    const body = `{"osql":"select 1","parameters":[0.1${'0'.repeat(1_000_000)}1]}`;
    const begun = performance.now();
    const reply = await rest.send('/osl/query', { method: 'POST', headers: JSON_TYPE, body });
    t.match(reply.json(), { code: 'E2102' }, 'it takes no token to send it');
    t.ok(performance.now() - begun < 2_000, 'and it costs linear time');
  });

  await t.test('a content type with many blanks costs linear time', async (t) => {
    const headers = { 'content-type': `application/json; charset=utf8${' '.repeat(15_000)}x` };
    const send = () => rest.send('/osl/query', { method: 'POST', headers, body: '{}', from: freshAddress() });
    await send();
    const begun = performance.now();
    for (let i = 0; i < 5; i++) t.match((await send()).json(), { code: 'E2102' });
    t.ok(performance.now() - begun < 1_000, `${performance.now() - begun} ms`);
  });

  await t.test('spellings of the one type', async (t) => {
    for (const type of [
      'application/json',
      'Application/JSON; charset=UTF-8',
      'application/json;charset="utf-8"',
    ]) {
      const headers = { 'content-type': type, authorization: valid };
      const reply = await rest.send('/osl/query', {
        method: 'POST',
        headers,
        body: '{"osql":"SELECT 1 AS a"}',
      });
      t.equal(reply.status, 200, type);
    }
  });
});
