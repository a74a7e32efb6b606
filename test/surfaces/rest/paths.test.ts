import { connect } from 'node:net';
import { ERRORS } from 'osl-compiler';
import { test } from 'tap';
import { localOrIn, networkOf } from '../../../src/base/networks.js';
import { METHODS } from '../../../src/surfaces/rest/openapi/document.js';
import { hasTitle } from '../../../src/surfaces/rest/problem.js';
import { CONFORMANCE_LEVELS } from '../../../src/surfaces/rest/routes/service.js';
import { eventually, freshAddress, sendRaw, startRest } from './fixture.js';

test('every code of the catalogue has a title', async (t) => {
  for (const { code } of Object.values(ERRORS)) t.ok(hasTitle(code), code);
});

const rest = await startRest({ requestTimeoutMs: 1_000 });
test('paths and methods', async (t) => {
  const authorization = `Bearer ${await rest.test.token('user:ann')}`;
  const denied = (subject: string | null, code: string, decision = 'error') => [
    { kind: 'decision', action: 'http', subject, decision, code },
  ];

  await t.test('an unknown path is E4040, below /osl for those with a token only', async (t) => {
    for (const path of ['/', '/nope', '/osl/nope', '/osl', '/osl/query/', '/OSL/query', '//osl/query']) {
      const known = await rest.send(path, { headers: { authorization } });
      t.match(known.json(), { status: 404, code: 'E4040' }, path);
      t.strictSame(await rest.trail(known.requestId), denied('user:ann', 'E4040'), path);
      const stranger = await rest.send(path, { from: freshAddress() });
      const below = path === '/osl' || path.startsWith('/osl/');
      const [status, code, decision] = below ? [403, 'E2102', 'deny'] : [404, 'E4040', 'error'];
      t.match(stranger.json(), { status, code }, `${path} without a token`);
      t.strictSame(await rest.trail(stranger.requestId), denied(null, String(code), String(decision)), path);
      const broken = await rest.send(path, { headers: { authorization: 'Bearer x' }, from: freshAddress() });
      t.equal(broken.status, 401, 'a broken token is never none');
    }
  });

  await t.test('another method of a known path is E4050, with those that it has', async (t) => {
    for (const [path, allow] of METHODS) {
      for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']) {
        const reply = await rest.send(path, { method, headers: { authorization } });
        t.match(reply.json(), { status: 405, code: 'E4050' }, `${method} ${path}`);
        t.equal(reply.headers['allow'], allow);
        t.match(await rest.trail(reply.requestId), denied('user:ann', 'E4050'));
      }
    }
    t.equal((await rest.send('/osl/query', { headers: { authorization } })).status, 405);
    const posted = await rest.send('/health', { method: 'POST', body: '{}', from: freshAddress() });
    t.match(posted.json(), { status: 405, code: 'E4050' });
    t.match(await rest.trail(posted.requestId), denied(null, 'E4050'));
  });

  await t.test(
    'what has a route is in the list of methods, and what is in the list has a route',
    async (t) => {
      for (const [path, allow] of METHODS) {
        for (const method of allow.split(', ')) {
          const reply = await rest.send(path, {
            method,
            headers: { authorization, 'content-type': 'text/plain' },
          });
          // A route that finds nothing is on record with its own action, and what has no route as `http`.
          const actions =
            reply.status === 404 ? (await rest.trail(reply.requestId)).map((r) => r.action) : [];
          t.ok(
            reply.status !== 404 || (actions.length > 0 && !actions.includes('http')),
            `${method} ${path}`,
          );
          t.not(reply.status, 405, `${method} ${path}`);
        }
      }
    },
  );

  await t.test('health and readiness need no token, and no record each', async (t) => {
    await eventually(async () => (await rest.test.verdict()).openDecisions === 0);
    const before = (await rest.test.records()).length;
    const health = await rest.send('/health');
    t.strictSame(health.json(), { status: 'ok' });
    t.equal((await rest.send('/health', { headers: { authorization: 'Bearer broken' } })).status, 200);
    const ready = await rest.send('/ready');
    t.strictSame(ready.json(), {
      status: 'ready',
      checks: {
        engines: true,
        policy: true,
        audit: true,
        accepting: true,
        control: true,
        clock: true,
        limits: true,
        issuers: true,
      },
    });
    t.equal((await rest.test.records()).length, before);
  });

  await t.test('conformance is a list of levels, for any valid token', async (t) => {
    const reply = await rest.send('/osl/conformance', {
      headers: { authorization: `Bearer ${await rest.test.token('user:nil')}` },
    });
    t.strictSame([reply.status, reply.json()], [200, CONFORMANCE_LEVELS]);
    t.match(await rest.trail(reply.requestId), [
      { action: 'conformance', subject: 'user:nil', decision: 'allow' },
      { action: 'conformance', outcome: 'ok' },
    ]);
    t.equal((await rest.send('/osl/conformance', { from: freshAddress() })).status, 403);
  });

  await t.test('metrics are for this machine only', async (t) => {
    await rest.ask('user:ann', { osql: 'SELECT 1 AS a' });
    const reply = await rest.send('/metrics');
    t.match(reply.headers['content-type'], /^text\/plain/);
    t.match(reply.text, /osl_http_requests_total\{route="\/osl\/query",method="POST",status="200"\} \d/);
    t.match(reply.text, /osl_http_requests_total\{route="unknown",method="GET",status="404"\} \d/);
    for (const name of ['osl_plan_cache_misses', 'osl_plan_cache_bytes', 'osl_audit_durable_records']) {
      t.match(reply.text, new RegExp(`^${name} [1-9]`, 'm'));
    }
    t.match(reply.text, /^osl_audit_failed 0$/m);
    const proxied = await rest.send('/metrics', { headers: { 'x-forwarded-for': '203.0.113.7' } });
    t.match(proxied.json(), { status: 404, code: 'E4040' });
    t.match(await rest.trail(proxied.requestId), denied(null, 'E4040'));
  });
});

test('who may read metrics: this machine, and the networks that are named', async (t) => {
  const named = localOrIn(['10.0.0.0/8', 'fd00::/8', '192.0.2.7']);
  for (const address of [
    '127.0.0.1',
    '::1',
    '::ffff:127.9.9.9',
    '10.1.2.3',
    '::ffff:10.1.2.3',
    'fd12::1',
    '192.0.2.7',
  ])
    t.ok(named(address), address);
  for (const address of ['11.0.0.1', '192.0.2.8', '2001:db8::1', '::ffff:11.0.0.1', '', 'localhost'])
    t.notOk(named(address), address);
  const nobody = localOrIn([]);
  t.ok(nobody('127.0.0.1'));
  t.notOk(nobody('10.1.2.3'));
  for (const text of ['10.0.0.0/33', '10.0.0', 'example.org', '10.0.0.0/', 'fd00::/129'])
    t.equal(networkOf(text), null);
});

test('what is no proper HTTP', async (t) => {
  t.teardown(() => rest.close());
  const raw = async (bytes: string) => {
    const answer = await sendRaw(rest.port, bytes, freshAddress());
    const [head = '', body = ''] = answer.split('\r\n\r\n');
    const requestId = /x-request-id: (\S+)/i.exec(head)?.[1] ?? '';
    return { head, problem: body === '' ? null : JSON.parse(body), trail: await rest.trail(requestId) };
  };
  const cases: readonly (readonly [string, string, RegExp])[] = [
    ['no HTTP', 'hello\r\n\r\n', /not well formed/],
    ['TLS on a plain port', '\x16\x03\x01\x02\x00\x01\x00', /not well formed/],
    ['a bad method', 'FETCH / HTTP/1.1\r\nHost: x\r\n\r\n', /not well formed/],
    ['a method of proxies', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n', /not well formed/],
    [
      'two lengths',
      'POST /osl/query HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab',
      /not well formed/,
    ],
    [
      'a length and chunks',
      'POST /osl/query HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      /not well formed/,
    ],
    ['a head that is too large', `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`, /16384/],
    ['a path that does not decode', 'GET /%C3%28 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n', /path/],
    ['no Host', 'GET / HTTP/1.1\r\nConnection: close\r\n\r\n', /no Host header/],
    ['a head that never ends', 'GET / HTTP/1.1\r\nHost: x\r\n', /in time/],
  ];
  for (const [name, bytes, detail] of cases) {
    await t.test(name, async (t) => {
      const { head, problem, trail } = await raw(bytes);
      t.match(head, /^HTTP\/1\.1 400 /);
      t.match(head, /application\/problem\+json/i);
      t.match(problem, { code: 'E0511', detail });
      t.strictSame(trail, [
        { kind: 'decision', action: 'http', subject: null, decision: 'error', code: 'E0511' },
      ]);
    });
  }

  await t.test('an expectation that nobody knows is passed over, and the request recorded', async (t) => {
    const sent =
      'POST /osl/query HTTP/1.1\r\nHost: x\r\nConnection: close\r\nExpect: more\r\nContent-Length: 2\r\n\r\n{}';
    const { head, trail } = await raw(sent);
    t.match(head, /^HTTP\/1\.1 403 /);
    t.match(trail, [{ kind: 'decision', action: 'query', code: 'E2102' }]);
  });

  await t.test('a body that does not come', async (t) => {
    const authorization = `Bearer ${await rest.test.token('user:ann')}`;
    const head = `POST /osl/query HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
    const { problem } = await raw(`${head}Content-Length: 10\r\n\r\n{"osql"`);
    t.match(problem, { code: 'E0511', detail: /in time/ });
    const records = await rest.test.records();
    const last = records.findLast((r) => r.kind === 'decision');
    t.match(last, { subject: 'user:ann', action: 'query', code: 'E0511' }, 'recorded under who sent it');
  });

  await t.test('a client that says nothing and leaves is not worth a record', async (t) => {
    await eventually(async () => (await rest.test.verdict()).openDecisions === 0);
    const before = (await rest.test.records()).length;
    const socket = connect({ port: rest.port, host: '127.0.0.1' });
    await new Promise((resolve) => socket.once('connect', resolve));
    socket.resetAndDestroy();
    await new Promise((resolve) => setTimeout(resolve, 50));
    t.equal((await rest.test.records()).length, before);
  });
});
