import t from 'tap';
import { settingsFrom } from '../../../src/service/settings.js';
import { freshAddress, type Reply, startRest } from './fixture.js';

const PAGE = 'https://app.example';
const FOREIGN = ['https://app.example.evil', 'http://app.example', 'https://app.example:8443', 'null', '*'];
const PREFLIGHT = {
  'access-control-request-method': 'POST',
  'access-control-request-headers': 'authorization,content-type',
};

const shared = (reply: Reply): string[] =>
  Object.keys(reply.headers).filter((name) => name.startsWith('access-control-'));
const wordsOf = (header: unknown): string[] => String(header).toLowerCase().split(', ');

t.test('pages of listed origins', async (t) => {
  const rest = await startRest({ corsOrigins: [PAGE] });
  t.teardown(() => rest.close());
  const authorization = `Bearer ${await rest.test.token('user:ann')}`;

  await t.test('are told that they may ask, before they have a token', async (t) => {
    const reply = await rest.send('/osl/query', {
      method: 'OPTIONS',
      headers: { origin: PAGE, ...PREFLIGHT },
    });
    t.equal(reply.status, 204);
    t.equal(reply.headers['access-control-allow-origin'], PAGE);
    t.notOk('access-control-allow-credentials' in reply.headers, 'no cookie says who asks');
    t.ok(wordsOf(reply.headers['access-control-allow-methods']).includes('post'));
    const sent = wordsOf(reply.headers['access-control-allow-headers']);
    const needed = ['authorization', 'content-type', 'if-none-match', 'prefer', 'last-event-id'];
    const own = ['osl-purpose', 'osl-task', 'osl-break-glass', 'osl-approval-reason'];
    for (const name of [...needed, ...own]) t.ok(sent.includes(name), name);
    t.equal(reply.headers['vary'], 'Origin');
  });

  await t.test('read answers and refusals, with the headers that they need', async (t) => {
    const headers = { origin: PAGE, authorization, 'content-type': 'application/json' };
    const answers = [
      await rest.send('/osl/query', { method: 'POST', headers, body: { osql: 'SELECT 1 AS a' } }),
      await rest.send('/osl/query', { method: 'POST', headers, body: { osql: 'SELECT nothing' } }),
      await rest.send('/osl/query', { method: 'POST', headers: { origin: PAGE }, from: freshAddress() }),
      await rest.send('/osl/nothing', { headers }),
      await rest.send('/osl/schema?governed=true', { headers }),
      await rest.send('/openapi.json', { headers: { origin: PAGE } }),
    ];
    t.strictSame(
      answers.map((a) => a.status),
      [200, 400, 403, 404, 200, 200],
    );
    for (const reply of answers) {
      t.equal(reply.headers['access-control-allow-origin'], PAGE);
      const read = wordsOf(reply.headers['access-control-expose-headers']);
      for (const name of ['x-request-id', 'retry-after', 'etag']) t.ok(read.includes(name), name);
    }
    t.equal(answers[4]?.headers['vary'], 'Authorization, Origin', 'a cache keeps both apart');
  });

  await t.test('read an answer that is streamed', async (t) => {
    const long = "SELECT repeat('x', 60000) AS x FROM osl.entities.order";
    const headers = { origin: PAGE, accept: 'application/x-ndjson' };
    const reply = await rest.ask('user:ann', { osql: long }, { headers });
    t.ok(reply.bytes.length > 2_000_000, 'it began before its end was known');
    t.equal(reply.headers['access-control-allow-origin'], PAGE);
  });

  await t.test('are no others, and have /mcp and /metrics not at all', async (t) => {
    for (const origin of FOREIGN) {
      const asked = await rest.send('/osl/query', {
        method: 'OPTIONS',
        headers: { origin, ...PREFLIGHT, authorization },
      });
      t.match(asked.json(), { status: 405, code: 'E4050' });
      t.match(
        await rest.trail(asked.requestId),
        [{ decision: 'error', code: 'E4050' }],
        'and it is on record',
      );
      const got = await rest.send('/osl/schema?governed=true', { headers: { origin, authorization } });
      t.equal(got.status, 200);
      for (const reply of [asked, got]) t.strictSame(shared(reply), []);
    }
    for (const path of ['/mcp', '/metrics', '/health']) {
      const reply = await rest.send(path, { headers: { origin: PAGE } });
      t.strictSame(shared(reply), [], path);
    }
  });
});

t.test('without a list nothing of it is there', async (t) => {
  t.strictSame(settingsFrom({}, '/').corsOrigins, []);
  const rest = await startRest();
  t.teardown(() => rest.close());
  const authorization = `Bearer ${await rest.test.token('user:ann')}`;
  const headers = { origin: PAGE, authorization, ...PREFLIGHT };
  const asked = await rest.send('/osl/query', { method: 'OPTIONS', headers });
  t.equal(asked.status, 405);
  const got = await rest.send('/osl/schema?governed=true', { headers });
  for (const reply of [asked, got]) t.strictSame(shared(reply), []);
  t.equal(got.headers['vary'], 'Authorization');
});

t.test('the list has exact origins only', (t) => {
  const read = (text: string) => settingsFrom({ OSL_CORS_ORIGINS: text }, '/').corsOrigins;
  t.strictSame(read(' https://app.example,http://localhost:5173 '), [
    'https://app.example',
    'http://localhost:5173',
  ]);
  for (const wrong of [
    '*',
    'null',
    'app.example',
    'https://app.example/',
    'https://*.example',
    'https://app.example:443',
    'HTTPS://app.example',
    'file://x',
  ])
    t.throws(() => read(wrong), /OSL_CORS_ORIGINS must name origins/, wrong);
  t.end();
});
