import { execFile } from 'node:child_process';
import { createHash, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { createSecureContext, TLSSocket, connect as tlsConnect } from 'node:tls';
import pg from 'pg';
import tap, { type Test, test } from 'tap';
import { makeScramVerifier } from '../../../wire/index.js';
import { authority, type Pair } from '../../support/authority.js';
import { startTestService } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { int32, message, sslRequest, startup, text } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { servePg } from './support.js';

/** SCRAM-SHA-256-PLUS of service accounts: a proof of the password that is good on one TLS channel alone. */

const PASSWORD = 'correct horse';
const shop = await startTestService({
  policy: `${SHOP_POLICY}
service_accounts:
  tableau: { subject: user:eu, scram: "${await makeScramVerifier(PASSWORD)}" }
`,
});
const corp = authority('/CN=Corp Root');
tap.teardown(() => corp.end());
const localhost = { subject: '/CN=localhost', names: 'DNS:localhost,IP:127.0.0.1' };
const own = corp.issue(localhost);
const { frontend, port } = await servePg(tap, shop, { tls: own });

interface Printed {
  readonly stdout: string;
  readonly stderr: string;
}

/** psql on a port, as the service account, with what libpq is told beside. */
function psql(to: number, more: Readonly<Record<string, string>>): Promise<Printed> {
  const PG = { PGHOST: '127.0.0.1', PGPORT: String(to), PGUSER: 'tableau', PGPASSWORD: PASSWORD };
  const env = { ...process.env, ...PG, PGDATABASE: 'osl', ...more };
  const args = ['-X', '-A', '-t', '-c', 'select count(*) from customer'];
  return new Promise((resolve) => {
    execFile('psql', args, { env }, (_failure, stdout, stderr) => resolve({ stdout, stderr }));
  });
}

const REQUIRED = { PGSSLMODE: 'require', PGCHANNELBINDING: 'require' };

test('psql and node-postgres bind the proof to the certificate, whatever digest that is signed by', async (t) => {
  const rsa = authority('/CN=RSA Root', 'rsa');
  t.teardown(() => rsa.end());
  for (const pair of [
    own,
    corp.issue({ ...localhost, digest: 'sha384' }),
    rsa.issue({ ...localhost, digest: 'sha512', algorithm: 'rsa' }),
  ]) {
    frontend.secure(pair);
    t.same(await psql(port, REQUIRED), { stdout: '2\n', stderr: '' });
    const ssl = { rejectUnauthorized: false };
    const at = { host: '127.0.0.1', port, database: 'osl', ssl };
    const login = { ...at, user: 'tableau', password: PASSWORD, enableChannelBinding: true };
    const client = new pg.Client(login);
    await client.connect();
    t.same((await client.query('select count(*)::int4 as n from customer')).rows, [{ n: 2 }]);
    await client.end();
    t.match(await psql(port, { ...REQUIRED, PGPASSWORD: 'wrong' }), {
      stderr: /password authentication failed/,
    });
  }
  frontend.secure(own);
});

test('without TLS, and with a certificate that nothing can be bound to, it is not offered', async (t) => {
  t.match(await psql(port, { PGSSLMODE: 'disable', PGCHANNELBINDING: 'require' }), {
    stderr: /channel binding required/,
  });
  for (const kind of ['ed25519', 'rsa-pss'] as const) {
    const signer = authority('/CN=Root', kind);
    t.teardown(() => signer.end());
    frontend.secure(signer.issue(localhost));
    t.match(await psql(port, REQUIRED), { stderr: /channel binding is required/ }, kind);
    t.same(await psql(port, { PGSSLMODE: 'require' }), { stdout: '2\n', stderr: '' });
  }
  frontend.secure(own);
  t.same(await psql(port, { PGSSLMODE: 'require', PGCHANNELBINDING: 'disable' }), {
    stdout: '2\n',
    stderr: '',
  });
});

test('somebody between who decrypts and encrypts again gets no session', async (t) => {
  const passing = await between(t, (bytes) => bytes);
  for (const binding of ['require', 'prefer']) {
    const said = await psql(passing, { PGSSLMODE: 'require', PGCHANNELBINDING: binding });
    t.match(said, { stdout: '', stderr: /FATAL: {2}SCRAM channel binding check failed/ }, binding);
  }
  const stripping = await between(t, withoutPlus);
  t.match(await psql(stripping, REQUIRED), { stdout: '', stderr: /channel binding/ });
  t.match(
    await psql(stripping, { PGSSLMODE: 'require' }),
    { stdout: '', stderr: /FATAL: {2}SCRAM channel binding negotiation error/ },
    'a client that heard of no channel binding says that it could have',
  );
  const records = (await shop.records()).filter(({ action }) => action === 'wire password');
  t.ok(records.length >= 3, 'on record');
});

test('what is not a choice that was offered is refused', async (t) => {
  const hash = createHash('sha256').update(new X509Certificate(own.cert).raw).digest();
  const bound = (prefix: string): string => Buffer.concat([Buffer.from(prefix), hash]).toString('base64');
  for (const [name, mechanism, first, code] of [
    ['no binding under PLUS', 'SCRAM-SHA-256-PLUS', 'n,,n=,r=abc', '08P01'],
    ['a binding without PLUS', 'SCRAM-SHA-256', 'p=tls-server-end-point,,n=,r=abc', '08P01'],
    ['another binding', 'SCRAM-SHA-256-PLUS', 'p=tls-unique,,n=,r=abc', '08P01'],
    ['a client that was told of no PLUS', 'SCRAM-SHA-256', 'y,,n=,r=abc', '28000'],
  ] as const) {
    const client = await opened();
    client.send(message('p', text(mechanism), int32(first.length), first));
    t.match((await client.rest())[0] ?? '', new RegExp(`^E FATAL ${code} `), name);
  }
  for (const [name, binding, code] of [
    ['nothing', 'biws', '28000'],
    ['y', 'eSws', '28000'],
    ['the hash alone', bound(''), '28000'],
    ['another name of the binding', bound('p=tls-unique,,'), '28000'],
    ['a hash of something else', Buffer.from('p=tls-server-end-point,,else').toString('base64'), '28000'],
    ['no base64', '!!!', '08P01'],
  ] as const) {
    const client = await opened();
    const first = 'p=tls-server-end-point,,n=,r=abc';
    client.send(message('p', text('SCRAM-SHA-256-PLUS'), int32(first.length), first));
    await client.until('R 11');
    client.send(message('p', `c=${binding},r=abc,p=${'A'.repeat(43)}=`));
    t.match((await client.rest())[0] ?? '', new RegExp(`^E FATAL ${code} `), name);
  }
});

/** A raw client, encrypted, that has been offered the mechanisms. */
async function opened(): Promise<Client> {
  const plain = await Client.open(port);
  await plain.send(sslRequest).byte();
  plain.socket.removeAllListeners('data');
  const socket = tlsConnect({ socket: plain.socket, ca: corp.ca, servername: 'localhost' });
  await once(socket, 'secureConnect');
  const client = new Client(socket);
  client.send(startup({ user: 'tableau', database: 'osl' }));
  await client.until('R 10');
  return client;
}

/** Takes clients with a certificate of its own, and passes on to the gateway what they say; gives its port. */
async function between(t: Test, change: (bytes: Buffer) => Buffer): Promise<number> {
  const pair = corp.issue(localhost);
  const server = createServer((raw) => void pass(raw, pair, change));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function pass(raw: Socket, pair: Pair, change: (bytes: Buffer) => Buffer): Promise<void> {
  raw.on('error', () => undefined);
  await once(raw, 'data'); // its SSLRequest
  raw.write('S');
  const client = new TLSSocket(raw, { isServer: true, secureContext: createSecureContext(pair) });
  const plain = await Client.open(port);
  await plain.send(sslRequest).byte();
  plain.socket.removeAllListeners('data');
  const gateway = tlsConnect({ socket: plain.socket, rejectUnauthorized: false });
  for (const socket of [client, gateway]) socket.on('error', () => undefined);
  client.on('data', (bytes: Buffer) => gateway.write(bytes)).on('close', () => gateway.end());
  gateway.on('data', (bytes: Buffer) => client.write(change(bytes))).on('close', () => client.end());
}

/** AuthenticationSASL as of a server that knows no channel binding. */
function withoutPlus(bytes: Buffer): Buffer {
  const mechanism = Buffer.from('SCRAM-SHA-256-PLUS\0');
  const at = bytes.indexOf(mechanism);
  if (at < 0) return bytes;
  const changed = Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + mechanism.length)]);
  changed.writeInt32BE(changed.readInt32BE(1) - mechanism.length, 1);
  return changed;
}
