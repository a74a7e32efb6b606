import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type LookupFunction, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import type { LineageEndpoint } from '../../../src/service/lineage/config/load.js';
import { AddressRule } from '../../../src/service/lineage/delivery/address.js';
import {
  ATTEMPTS,
  type EventSendOptions,
  parseRetryAfter,
  pauseAfter,
  type SendAttempt,
  send,
} from '../../../src/service/lineage/delivery/send.js';
import { endpointAt, SECRET } from './endpoint.js';
import { answering, startReceiver, verifiedWith } from './receiver.js';

/** One attempt at a time, to receivers that fail in every way. */

const LETTER = { id: 'run_1', body: '{"a":"ä€"}' };
const OPTIONS: EventSendOptions = { now: Date.now, agent: 'osl-gateway/test' };

function endpoint(url: string, more: Partial<LineageEndpoint> = {}): LineageEndpoint {
  return { ...endpointAt(url), timeoutMs: 5_000, ...more };
}

const dir = mkdtempSync(join(tmpdir(), 'osl-delivery-'));
const receiver = await startReceiver();
t.teardown(async () => {
  await receiver.close();
  rmSync(dir, { recursive: true, force: true });
});

/** The reason why it failed. */
function failed(attempt: SendAttempt): string {
  return attempt.kind === 'failed' ? attempt.reason : attempt.kind;
}

t.test('an accepted letter is signed, whole, and on its own connection', async (t) => {
  receiver.behave(answering(204));
  process.env['OSL_TEST_BEARER'] = 'Bearer of-a-catalog';
  const attempt = await send(
    endpoint(receiver.url, { authorization: 'env:OSL_TEST_BEARER' }),
    LETTER,
    OPTIONS,
  );
  t.strictSame(attempt, { kind: 'delivered', status: 204 });
  const [request] = receiver.received;
  t.equal(request?.body, LETTER.body);
  t.equal(request?.headers['webhook-id'], LETTER.id);
  t.equal(request?.headers['content-type'], 'application/json');
  t.equal(request?.headers['user-agent'], 'osl-gateway/test');
  t.equal(request?.headers.authorization, 'Bearer of-a-catalog');
  t.ok(request !== undefined && verifiedWith(request, [SECRET]));
});

t.test('statuses', async (t) => {
  for (const status of [400, 401, 404, 413, 500, 502, 503]) {
    receiver.behave(answering(status));
    t.strictSame(await send(endpoint(receiver.url), LETTER, OPTIONS), {
      kind: 'failed',
      reason: `status ${status}`,
      retryAfterMs: null,
    });
  }
  receiver.behave(answering(429, { 'retry-after': '120' }));
  t.match(await send(endpoint(receiver.url), LETTER, OPTIONS), { kind: 'failed', retryAfterMs: 120_000 });
  receiver.behave(answering(410));
  t.strictSame(await send(endpoint(receiver.url), LETTER, OPTIONS), { kind: 'gone' });
});

t.test('a redirect is not followed', async (t) => {
  const other = await startReceiver();
  for (const status of [301, 302, 303, 307, 308]) {
    receiver.behave(answering(status, { location: other.url }));
    t.match(failed(await send(endpoint(receiver.url), LETTER, OPTIONS)), /redirect/);
  }
  t.equal(other.received.length, 0);
  await other.close();
});

t.test('a receiver that hangs costs its time-out and no more', async (t) => {
  receiver.behave(() => undefined);
  const hurried = endpoint(receiver.url, { timeoutMs: 300 });
  t.equal(failed(await send(hurried, LETTER, OPTIONS)), 'no answer in time');
});

t.test('an answer without end, and one that breaks off, count by their status', async (t) => {
  const open = new Set<NodeJS.Timeout>();
  receiver.behave((_, response) => {
    response.writeHead(200);
    const flood = setInterval(() => response.write(Buffer.alloc(65_536)), 1);
    open.add(flood);
    response.on('close', () => {
      clearInterval(flood);
      open.delete(flood);
    });
  });
  // Its status counts, or it would be a time-out: the answer has no end.
  t.strictSame(await send(endpoint(receiver.url), LETTER, OPTIONS), { kind: 'delivered', status: 200 });
  receiver.behave((_, response) => {
    response.writeHead(500, { 'content-length': '100' });
    response.write('half');
    setTimeout(() => response.destroy(), 50);
  });
  t.equal(failed(await send(endpoint(receiver.url), LETTER, OPTIONS)), 'status 500');
  while (open.size > 0) await new Promise((resolve) => setTimeout(resolve, 5)); // the connection is closed
});

t.test('connections that are reset, closed without a word, or speak something else', async (t) => {
  const kinds: readonly ((socket: Socket) => void)[] = [
    (s) => s.resetAndDestroy(),
    (s) => s.end(),
    (s) => s.end('SSH-2.0-OpenSSH_9.2\r\n'),
    (s) => s.end('HTTP/1.1 200 OK\r\nx: '),
    (s) => void s.write(`HTTP/1.1 200 OK\r\nx: ${'y'.repeat(1_000_000)}`),
  ];
  for (const [i, kind] of kinds.entries()) {
    const server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.once('data', () => kind(socket));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const address = server.address();
    const port = typeof address === 'object' ? address?.port : 0;
    const attempt = await send(endpoint(`http://127.0.0.1:${port}/`), LETTER, OPTIONS);
    t.equal(attempt.kind, 'failed', `${i}: ${failed(attempt)}`);
    server.close();
  }
  t.equal(failed(await send(endpoint('http://127.0.0.1:1/'), LETTER, OPTIONS)), 'ECONNREFUSED');
});

t.test('TLS: the right certificate is taken, any other is not', async (t) => {
  const key = join(dir, 'key.pem');
  const cert = join(dir, 'cert.pem');
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-keyout', key, '-out', cert, '-days', '2'];
  execFileSync('openssl', [...made, '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost'], {
    stdio: 'ignore',
  });
  const pem = { key: readFileSync(key, 'utf8'), cert: readFileSync(cert, 'utf8') };
  const secure = await startReceiver(pem);
  const named = `https://localhost:${secure.port}/`;
  t.strictSame(await send(endpoint(named, { ca: pem.cert }), LETTER, OPTIONS), {
    kind: 'delivered',
    status: 200,
  });
  t.match(failed(await send(endpoint(named), LETTER, OPTIONS)), /SELF_SIGNED|UNABLE_TO_VERIFY/);
  t.equal(
    failed(await send(endpoint(secure.url, { ca: pem.cert }), LETTER, OPTIONS)),
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'a certificate for another name',
  );
  t.match(
    failed(await send(endpoint(named.replace('https', 'http')), LETTER, OPTIONS)),
    /HPE_|ECONNRESET|socket hang up/,
  );
  t.equal(secure.received.length, 1);
  await secure.close();
});

t.test('private addresses are not reached, however they are written', async (t) => {
  const before = receiver.received.length;
  receiver.behave(answering(200));
  const { port } = receiver;
  const hosts = [
    '127.0.0.1',
    '127.1',
    '2130706433',
    '0x7f.1',
    '[::ffff:127.0.0.1]',
    '[::ffff:7f00:1]',
    'localhost',
    '0.0.0.0',
  ];
  for (const host of hosts) {
    for (const scheme of ['http', 'https']) {
      const attempt = await send(
        endpoint(`${scheme}://${host}:${port}/`, { allowAddresses: [] }),
        LETTER,
        OPTIONS,
      );
      t.match(failed(attempt), /private or reserved/, `${scheme} ${host}`);
    }
  }
  t.equal(receiver.received.length, before);
});

t.test('a name is judged by the addresses that are connected to', async (t) => {
  const before = receiver.received.length;
  let asked = 0;
  const rebinding: LookupFunction = (_hostname, _options, done) => {
    asked++;
    // Public at first, private at a second look, as a hostile name server would have it.
    done(
      null,
      asked === 1 ? [{ address: '127.0.0.1', family: 4 }] : [{ address: '93.184.216.34', family: 4 }],
    );
  };
  const url = `https://rebinding.example:${receiver.port}/`;
  t.match(
    failed(await send(endpoint(url, { allowAddresses: [] }), LETTER, { ...OPTIONS, lookup: rebinding })),
    /private/,
  );
  t.equal(asked, 1, 'there is one look-up for one attempt');
  const mixed: LookupFunction = (_hostname, _options, done) =>
    done(null, [
      { address: '10.1.2.3', family: 4 },
      { address: '127.0.0.1', family: 4 },
      { address: 'fd00::1', family: 6 },
    ]);
  const plain = `http://mixed.example:${receiver.port}/`;
  t.strictSame(await send(endpoint(plain), LETTER, { ...OPTIONS, lookup: mixed }), {
    kind: 'delivered',
    status: 200,
  });
  t.equal(receiver.received.length, before + 1, 'of several, those that are allowed');
});

t.test('addresses', (t) => {
  const open = new AddressRule([], true);
  for (const address of ['93.184.216.34', '8.8.8.8', '2606:4700::1111', '::ffff:8.8.8.8'])
    t.ok(open.permits(address), address);
  const reserved =
    '0.0.0.0 10.0.0.1 100.64.0.1 127.0.0.1 127.255.255.255 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.168.1.1 198.18.0.1 224.0.0.1 255.255.255.255 :: ::1 ::ffff:10.0.0.1 ::ffff:7f00:1 64:ff9b::7f00:1 100::1 2001::1 2001:db8::1 2002:7f00:1:: fc00::1 fd12::1 fe80::1 fe80::1%eth0 fec0::1 ff02::1 ::7f00:1 localhost';
  for (const address of reserved.split(' ')) t.notOk(open.permits(address), address);
  const bare = new AddressRule(['10.0.0.0/8', 'fd00::/8'], false);
  t.ok(bare.permits('10.9.9.9') && bare.permits('fd12::1') && bare.permits('::ffff:10.1.1.1'));
  t.notOk(bare.permits('8.8.8.8'), 'without TLS only what is listed');
  t.end();
});

t.test('a secret that cannot be read, or is none, sends nothing', async (t) => {
  const before = receiver.received.length;
  t.match(
    failed(await send(endpoint(receiver.url, { secrets: ['env:NOT_THERE'] }), LETTER, OPTIONS)),
    /NOT_THERE is not set/,
  );
  process.env['OSL_TEST_SHORT'] = 'whsec_c2hvcnQ=';
  const attempt = await send(endpoint(receiver.url, { secrets: ['env:OSL_TEST_SHORT'] }), LETTER, OPTIONS);
  t.match(failed(attempt), /24 to 64 bytes/);
  t.notMatch(failed(attempt), /c2hvcnQ/);
  t.equal(receiver.received.length, before);
});

t.test('the schedule', (t) => {
  const pauses = Array.from({ length: ATTEMPTS }, (_, i) => pauseAfter(i + 1, null, 0));
  t.strictSame(
    pauses,
    [5, 300, 1_800, 7_200, 18_000, 36_000].map<number | null>((s) => s * 1_000).concat(null),
  );
  t.equal(pauseAfter(1, null, 1), 6_000, 'up to a fifth more by chance');
  t.equal(pauseAfter(1, 60_000, 0), 60_000, 'what the receiver asks for');
  t.equal(pauseAfter(3, 1_000, 0), 1_800_000, 'but not sooner');
  t.equal(pauseAfter(1, 1e12, 0), 86_400_000, 'and a day at most');
  const now = Date.parse('2026-01-01T00:00:00Z');
  t.equal(parseRetryAfter('Thu, 01 Jan 2026 00:01:00 GMT', now), 60_000);
  t.equal(parseRetryAfter('Wed, 31 Dec 2025 00:01:00 GMT', now), 0);
  t.equal(parseRetryAfter('soon', now), null);
  t.end();
});
