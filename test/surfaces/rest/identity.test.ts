import { test } from 'tap';
import { freshAddress, sendRaw, startRest } from './fixture.js';

const rest = await startRest();
test('who asks', async (t) => {
  t.teardown(() => rest.close());
  const good = await rest.test.token('user:ann');
  const body = '{"osql":"SELECT id, email FROM osl.entities.customer WHERE id = 1"}';
  const post = (headers: Record<string, string | string[]>) =>
    rest.send('/osl/query', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body,
      from: freshAddress(),
    });

  await t.test('no token is refused, and told how to send one', async (t) => {
    const reply = await post({});
    t.match(reply.json(), { status: 403, code: 'E2102' });
    t.equal(reply.headers['www-authenticate'], 'Bearer');
    t.strictSame(await rest.trail(reply.requestId), [
      { kind: 'decision', action: 'query', subject: null, decision: 'deny', code: 'E2102' },
    ]);
  });

  const forged = `${good.slice(0, -4)}AAAA`;
  const now = Math.floor(Date.now() / 1_000);
  const broken: readonly (readonly [string, string | string[]])[] = [
    ['an empty header', ''],
    ['the scheme alone', 'Bearer'],
    ['another scheme', `Basic ${good}`],
    ['no scheme', good],
    ['a tab', `Bearer\t${good}`],
    ['two tokens', `Bearer ${good} ${good}`],
    ['a list', `Bearer ${good}, Bearer ${good}`],
    ['two headers', [`Bearer ${good}`, `Bearer ${good}`]],
    ['a forged signature', `Bearer ${forged}`],
    ['no token at all', 'Bearer not-a-token'],
    ['an expired token', `Bearer ${await rest.test.token('user:ann', { issuedAt: now - 1_000 })}`],
    ['a token of the future', `Bearer ${await rest.test.token('user:ann', { issuedAt: now + 1_000 })}`],
    ["another tenant's token", `Bearer ${await rest.test.token('user:ann', { tenant: 'other' })}`],
  ];
  for (const [name, authorization] of broken) {
    await t.test(`${name}: 401, never anonymous`, async (t) => {
      const reply = await post({ authorization });
      t.match(reply.json(), { status: 401, code: 'E3001' });
      t.equal(reply.headers['www-authenticate'], 'Bearer error="invalid_token"');
      t.notMatch(reply.text, good.slice(0, 20), 'nothing of the token comes back');
      t.match(await rest.trail(reply.requestId), [{ subject: null, decision: 'deny', code: 'E3001' }]);
    });
  }

  await t.test('a second header in another case counts too', async (t) => {
    const answer = await sendRaw(
      rest.port,
      `POST /osl/query HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${good}\r\n` +
        `AUTHORIZATION: Bearer ${good}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
      freshAddress(),
    );
    t.match(answer, /^HTTP\/1\.1 401 /);
  });

  await t.test('the scheme has no case, and spaces after it', async (t) => {
    // RFC 6750 and 9110: one space or more.
    for (const scheme of ['Bearer', 'bearer', 'BEARER', 'Bearer  ']) {
      t.equal((await post({ authorization: `${scheme} ${good}` })).status, 200, scheme);
    }
  });

  await t.test('no other header says who asks, or what they may', async (t) => {
    const claims = {
      'x-actor-roles': 'auditor,TENANT_ADMIN',
      'x-osl-subject': 'user:ada',
      'x-forwarded-user': 'user:ada',
      cookie: `token=${await rest.test.token('user:ada')}`,
    };
    const reply = await post({ authorization: `Bearer ${good}`, ...claims });
    t.strictSame(reply.json()['rows'], [{ id: 1, email: '[redacted]' }]);
    t.match(await rest.trail(reply.requestId), [{ subject: 'user:ann' }, { subject: 'user:ann' }]);
    t.equal((await post(claims)).status, 403, 'nor do they replace a token');
    const query = await rest.send(`/osl/query?access_token=${good}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
      from: freshAddress(),
    });
    t.equal(query.status, 403, 'a token in the URL is not a token');
  });

  await t.test('request ids are ours alone; a trace of the caller is passed on', async (t) => {
    const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const reply = await post({
      authorization: `Bearer ${good}`,
      'x-request-id': 'chosen-by-client',
      traceparent,
    });
    t.not(reply.requestId, 'chosen-by-client');
    t.equal(reply.json()['request_id'], reply.requestId);
    t.equal(reply.headers['traceparent'], traceparent);
    t.match(rest.test.lines.at(-1)?.fields, { request_id: reply.requestId, traceparent });
    for (const wrong of ['00-xyz', `00-${'0'.repeat(32)}-00f067aa0ba902b7-01`, `${traceparent}-more`]) {
      t.notOk((await post({ authorization: `Bearer ${good}`, traceparent: wrong })).headers['traceparent']);
    }
  });

  await t.test('without a policy everything is refused', async (t) => {
    const model = rest.test.service.model().underPolicy(null);
    const closed = await startRest({ serve: (s) => ({ ...s, model: () => model }) });
    t.teardown(() => closed.close());
    const reply = await closed.ask('user:ann', { osql: 'SELECT 1' });
    t.match(reply.json(), { status: 503, code: 'E2001' });
    t.ok(reply.headers['retry-after']);
    const ready = await closed.send('/ready');
    t.match(ready.json(), { status: 'not_ready', checks: { policy: false, engines: true } });
    t.equal(ready.status, 503);
  });
});
