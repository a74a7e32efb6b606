import { once } from 'node:events';
import { connect as tlsConnect } from 'node:tls';
import { test } from 'tap';
import { selfSigned } from '../support/certificate.js';
import { cancelRequest, gssRequest, join, password, query, sslRequest, startup } from './support/bytes.js';
import { Client } from './support/client.js';
import { eventually, Scripted } from './support/scripted.js';

const tls = selfSigned();
const ada = startup({ user: 'ada' });
const GREETING = ['R 0', 'S server_version=15.0', 'K 4-byte key', 'Z I'];

/** Asks for TLS as libpq does. */
async function secured(port: number): Promise<Client> {
  const plain = await Client.open(port);
  if ((await plain.send(sslRequest).byte()) !== 'S') throw new Error('no TLS');
  plain.socket.removeAllListeners('data');
  const socket = tlsConnect({ socket: plain.socket, ca: tls.cert, servername: 'localhost' });
  await once(socket, 'secureConnect');
  return new Client(socket);
}

test('SSLRequest upgrades, and the session runs inside', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve({ tls });
  t.teardown(stop);
  const client = await secured(port);
  t.same(await client.send(ada).until('R 3'), ['R 3']);
  t.same(await client.send(password('right')).until('Z'), GREETING);
  t.equal(handler.logins[0]?.encrypted, true);
  t.equal((await client.ask(query('blob 100000 50'))).length, 53);
  client.send(query('wait'));
  await eventually(() => handler.sessions[0]?.waiting === true);
  const { pid, key } = client.cancelKey ?? { pid: 0, key: Buffer.alloc(0) };
  const canceller = await secured(port);
  t.same(await canceller.send(cancelRequest(pid, key)).rest(), ['closed'], 'cancel works inside TLS too');
  t.same(await client.until('Z'), ['E ERROR 57014 canceling statement due to user request', 'Z I']);
  client.end();
  await eventually(() => handler.sessions[0]?.closed === 1);
});

test('what came unencrypted behind SSLRequest is never processed', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve({ tls });
  t.teardown(stop);
  for (const injected of [join(sslRequest, ada), join(sslRequest, ada, password('right'), query('none'))]) {
    const client = await Client.open(port);
    t.same(await client.send(injected).rest(), [
      'E FATAL 08P01 received unencrypted data after encryption request',
      'closed',
    ]);
  }
  const late = await Client.open(port);
  t.equal(await late.send(sslRequest).byte(), 'S');
  late.send(ada);
  await eventually(() => handler.refusals.length === 3);
  t.equal(handler.refusals[2]?.reason, 'TLS handshake failed', 'nor is what came instead of a handshake');
  t.equal(handler.logins.length, 0);
});

test('inside TLS nothing is negotiated again', async (t) => {
  const { port, stop } = await new Scripted().serve({ tls });
  t.teardown(stop);
  for (const [request, code] of [
    [sslRequest, '1234.5679'],
    [gssRequest, '1234.5680'],
  ] as const) {
    const client = await secured(port);
    t.same(await client.send(request).rest(), [
      `E FATAL 0A000 unsupported frontend protocol ${code}: server supports 3.0 to 3.2`,
      'closed',
    ]);
  }
});

test('direct TLS wants ALPN', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve({ tls });
  t.teardown(stop);
  const direct = async (ALPNProtocols?: string[]) => {
    const options = { port, host: '127.0.0.1', ca: tls.cert, servername: 'localhost' };
    const socket = tlsConnect(ALPNProtocols === undefined ? options : { ...options, ALPNProtocols });
    await once(socket, 'secureConnect');
    return new Client(socket);
  };
  const client = await direct(['postgresql']);
  t.same(await client.send(ada).until('R 3'), ['R 3']);
  t.same(await client.send(password('right')).until('Z'), GREETING);
  const without = await direct();
  t.same(await without.rest(), ['closed']);
  t.match(handler.refusals, [{ reason: 'direct TLS requires the ALPN protocol `postgresql`' }]);
  await t.rejects(direct(['h2']), 'another protocol is refused by the handshake');
  client.end();
});

test('direct TLS can be switched off, and is off without TLS', async (t) => {
  for (const options of [{ tls: { ...tls, direct: false } }, {}]) {
    const { port, stop } = await new Scripted().serve(options);
    t.teardown(stop);
    await t.rejects(
      once(tlsConnect({ port, host: '127.0.0.1', ALPNProtocols: ['postgresql'] }), 'secureConnect'),
    );
  }
});

test('a TLS handshake that never ends is given up', async (t) => {
  const handler = new Scripted();
  const { server, port, stop } = await handler.serve({ tls, authenticationTimeoutMs: 1_500 });
  t.teardown(stop);
  const client = await Client.open(port);
  t.equal(await client.send(sslRequest).byte(), 'S');
  await eventually(() => server.connections === 0);
  t.same(
    handler.refusals.map((r) => r.kind),
    ['tls'],
  );
});

test('psql over TLS', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve({ tls });
  t.teardown(stop);
  const { execFile } = await import('node:child_process');
  const env = { ...process.env, PGPASSWORD: 'right', PGSSLMODE: 'require' };
  const printed = await new Promise<string>((resolve, reject) => {
    const args = ['-X', '-At', '-h', '127.0.0.1', '-p', String(port), '-U', 'ada', 'osl', '-c', 'rows 2'];
    execFile('psql', args, { env }, (failure, stdout) =>
      failure === null ? resolve(stdout) : reject(failure),
    );
  });
  t.equal(printed, '1\n2\n');
  t.equal(handler.logins[0]?.encrypted, true);
});
