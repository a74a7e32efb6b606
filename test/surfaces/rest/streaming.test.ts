import { once } from 'node:events';
import { connect } from 'node:net';
import { queryError } from 'osl-compiler';
import { type Test, test } from 'tap';
import type { GovernedEngine } from '../../../src/engine/index.js';
import type { Service } from '../../../src/service/service.js';
import { replacing } from '../../support/replacing.js';
import { sealedParts, sealing } from '../../support/sealed-parts.js';
import { call, connected } from '../mcp/support.js';
import { eventually, startRest } from './fixture.js';
import { ALL, answerOf, BREAKS, begin, LARGE, outcomeOf, ROWS } from './large.js';

const NDJSON = { headers: { accept: 'application/x-ndjson' } };

const rest = await startRest(LARGE);

test('large answers', async (t) => {
  t.teardown(() => rest.close());

  await t.test('stream as one object', async (t) => {
    const reply = await rest.ask('user:ann', { osql: ALL });
    t.equal(reply.headers['transfer-encoding'], 'chunked');
    const body = reply.json();
    t.match(body, { row_count: ROWS, truncated: false });
    const rows = body['rows'];
    t.equal(Array.isArray(rows) && rows.length, ROWS);
  });

  await t.test('stream as lines with a trailer', async (t) => {
    const reply = await rest.ask('user:ann', { osql: ALL }, NDJSON);
    t.equal(reply.headers['content-type'], 'application/x-ndjson');
    const lines = reply.text.trimEnd().split('\n');
    t.equal(lines.length, ROWS + 1);
    t.match(JSON.parse(lines[0] ?? ''), { id: Number, filler: /^x+$/ });
    t.match(JSON.parse(lines.at(-1) ?? ''), {
      trailer: {
        request_id: reply.requestId,
        form: 'structured',
        columns: [{ name: 'id' }, { name: 'filler' }],
        row_count: ROWS,
        truncated: false,
        versions: {},
      },
    });
  });

  await t.test('a small one in lines, and who asks for lines', async (t) => {
    const small = `${ALL} WHERE id = 7`;
    const ask = async (accept: string) =>
      (await rest.ask('user:ann', { osql: small }, { headers: { accept } })).headers['content-type'];
    t.equal(await ask('application/x-ndjson'), 'application/x-ndjson');
    t.equal(await ask('text/html, Application/X-NDJSON;q=0.5'), 'application/x-ndjson');
    for (const accept of ['application/json', '*/*', 'application/x-ndjson;q=0', 'application/x-ndjsonx']) {
      t.equal(await ask(accept), 'application/json', accept);
    }
    const empty = await rest.ask('user:ann', { osql: `${ALL} WHERE id < 0` }, NDJSON);
    t.match(empty.json(), { trailer: { row_count: 0 } });
  });

  await t.test('what fails before much is read is a problem', async (t) => {
    const osql = `SELECT id, 1 / (id - id) AS q FROM osl.entities.event`;
    for (const claims of [{}, NDJSON]) {
      const reply = await rest.ask('user:ann', { osql }, claims);
      t.match(reply.json(), { status: 400, code: 'E0529', sqlstate: '22012' });
      t.equal(reply.headers['content-type'], 'application/problem+json');
    }
  });

  await t.test('what fails later breaks the connection: half an answer is never whole', async (t) => {
    const incoming = await answerOf(await begin(rest, BREAKS));
    t.equal(incoming.statusCode, 200);
    let bytes = 0;
    incoming.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
    });
    const [error] = await once(incoming, 'error');
    t.match(error, { code: 'ECONNRESET' });
    t.notOk(incoming.complete);
    t.ok(bytes > 1_000_000);
    t.match(await outcomeOf(rest, String(incoming.headers['x-request-id'])), {
      outcome: 'error',
      code: 'E0529',
    });
  });

  await t.test('in lines it is told in the trailer', async (t) => {
    const reply = await rest.ask('user:ann', { osql: BREAKS }, NDJSON);
    t.equal(reply.status, 200);
    const last = JSON.parse(reply.text.trimEnd().split('\n').at(-1) ?? '');
    t.match(last, {
      trailer: {
        request_id: reply.requestId,
        problem: {
          code: 'E0529',
          sqlstate: '22012',
          detail: 'division by zero',
          request_id: reply.requestId,
        },
      },
    });
  });

  await t.test('a reader that leaves ends the execution', async (t) => {
    const incoming = await answerOf(await begin(rest, ALL));
    await once(incoming, 'data');
    incoming.pause();
    incoming.destroy();
    t.match(await outcomeOf(rest, String(incoming.headers['x-request-id'])), { outcome: 'cancelled' });
    t.equal((await rest.ask('user:ann', { osql: `${ALL} WHERE id = 1` })).status, 200, 'the next is served');
  });

  await t.test('a reader that stalls is cut off with the time of its statement', async (t) => {
    const caps = { rows: 1_000_000, bytes: 1_000_000_000, evidence: 1_000, timeoutMs: 4_000 };
    const short = await startRest({ ...LARGE, settings: { caps } });
    t.teardown(() => short.close());
    const incoming = await answerOf(await begin(short, ALL));
    t.match(await outcomeOf(short, String(incoming.headers['x-request-id'])), {
      outcome: 'error',
      code: 'E0517',
    });
    incoming.on('data', () => undefined);
    await once(incoming, 'error');
    t.notOk(incoming.complete);
  });
});

/** An engine whose statements run until they are cancelled, or for `ms`. */
function slow(service: Service, ms: number, seen: { running: number }): Service {
  const execute: GovernedEngine['execute'] = (_plan, _values, { signal }) =>
    new Promise((resolve, reject) => {
      seen.running += 1;
      const timer = setTimeout(() => resolve({ rows: 0, truncated: false }), ms);
      signal?.addEventListener('abort', () => {
        clearTimeout(timer);
        reject(queryError('cancelled', {}));
      });
    });
  const engines = new Map(
    [...sealedParts(service).engines].map(([name, engine]) => [name, replacing(engine, { execute })]),
  );
  return sealing(service, { engines });
}

async function startSlow(t: Test, ms: number) {
  const seen = { running: 0 };
  const fixture = await startRest({ serve: (s) => slow(s, ms, seen) });
  t.teardown(() => fixture.test.close());
  return { fixture, seen };
}

test('a client that leaves before its answer begins', async (t) => {
  const { fixture, seen } = await startSlow(t, 60_000);
  const outgoing = await begin(fixture, 'SELECT 1 AS a');
  await eventually(() => seen.running === 1);
  outgoing.destroy();
  await eventually(async () => (await fixture.test.records()).some((r) => r.outcome === 'cancelled'));
  await fixture.server.close(0);
  t.match(await fixture.test.verdict(), { integrity: 'intact', openDecisions: 0 });
});

test('a tool of MCP ends when its client leaves, and when the server closes', async (t) => {
  const { fixture, seen } = await startSlow(t, 60_000);
  const client = await connected(fixture, 'user:ann', 'auto');
  t.teardown(() => client.close());
  const question = { name: 'semantic_query', arguments: { osql: 'SELECT 1 AS a' } };
  const leaving = new AbortController();
  const left = t.rejects(client.callTool(question, { signal: leaving.signal }));
  await eventually(() => seen.running === 1);
  leaving.abort();
  await left;
  const cancelled = async () => (await fixture.test.records()).filter((r) => r.outcome === 'cancelled');
  await eventually(async () => (await cancelled()).length === 1);

  const stopped = call(client, question.name, question.arguments);
  await eventually(() => seen.running === 2);
  const closed = fixture.server.close(200);
  t.match(await stopped, { isError: true, content: { status: 503, problem: { code: 'E5032' } } });
  await closed;
  t.match(await cancelled(), [{ surface: 'mcp' }, { surface: 'mcp' }]);
  t.match(await fixture.test.verdict(), { integrity: 'intact', openDecisions: 0 });
});

test('close lets what runs end, and takes nothing new', async (t) => {
  const { fixture, seen } = await startSlow(t, 400);
  const running = fixture.ask('user:ann', { osql: 'SELECT 1 AS a' });
  await eventually(() => seen.running === 1);
  const closed = fixture.server.close(5_000);
  await t.rejects(fixture.send('/health'), /ECONNREFUSED/);
  t.equal((await running).status, 200);
  await closed;
});

test('close stops what runs over its deadline, and says why', async (t) => {
  const { fixture, seen } = await startSlow(t, 60_000);
  const running = fixture.ask('user:ann', { osql: 'SELECT 1 AS a' });
  await eventually(() => seen.running === 1);
  const closed = fixture.server.close(200);
  const reply = await running;
  t.match(reply.json(), { status: 503, code: 'E5032' });
  t.ok(reply.headers['retry-after']);
  await closed;
  t.match(await fixture.trail(reply.requestId), [{ decision: 'allow' }, { outcome: 'cancelled' }]);
});

test('a connection that stays open is told that the server closes', async (t) => {
  const { fixture, seen } = await startSlow(t, 500);
  const authorization = `Bearer ${await fixture.test.token('user:ann')}`;
  const body = '{"osql":"SELECT 1 AS a"}';
  const head = `POST /osl/query HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nContent-Type: application/json\r\n`;
  const one = `${head}Content-Length: ${body.length}\r\n\r\n${body}`;
  const socket = connect({ port: fixture.port, host: '127.0.0.1' });
  let text = '';
  socket.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  socket.write(one);
  await eventually(() => seen.running === 1);
  const closed = fixture.server.close(5_000);
  socket.write(one);
  await closed;
  await eventually(() => text.includes('E5032'));
  t.match(text, /^HTTP\/1\.1 200 OK/);
  t.match(text, /HTTP\/1\.1 503 (?:.|\r|\n)*connection: close/i);
  t.equal(seen.running, 1, 'the second never ran');
  const refused = (await fixture.test.records()).filter((r) => r.code === 'E5032');
  t.match(refused, [{ kind: 'decision', action: 'http', subject: 'user:ann', decision: 'error' }]);
});
