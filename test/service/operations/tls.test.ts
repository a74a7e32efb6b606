import { X509Certificate } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';
import t from 'tap';
import { type AuditRecord, readRecords } from '../../../audit/index.js';
import { authority, type Pair } from '../../support/authority.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { osl, type Server, temporary } from '../../tools/cli/support.js';
import { place, type Reply, replyTo, served, tokenFor } from './support.js';

/** REST, MCP and the wire of `osl serve` over TLS, asked from outside, with one process and with two. */

const corp = authority('/O=Corp/CN=Corp Root');
t.teardown(() => corp.end());
const named = (name: string): Pair =>
  corp.issue({ subject: `/CN=${name}`, names: `DNS:${name},DNS:gateway.example` });

/** A request over TLS to a server that must have a certificate of the authority. */
function ask(server: Server, path: string, token: string | null, body: unknown = null): Promise<Reply> {
  const options = {
    host: '127.0.0.1',
    port: Number(server.record().httpPort),
    path,
    method: body === null ? 'GET' : 'POST',
    ca: corp.ca,
    servername: 'gateway.example',
    agent: false,
    headers: {
      ...(token !== null && { authorization: `Bearer ${token}` }),
      ...(body !== null && {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      }),
    },
  } as const;
  return replyTo((taken) => request(options, taken), body);
}

/** The name in the certificate that a new connection is shown. */
function shownAt(port: unknown, protocol: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const options = { host: '127.0.0.1', port: Number(port), rejectUnauthorized: false };
    const socket = connectTls({ ...options, ALPNProtocols: [protocol] }, () => {
      resolve(String(socket.getPeerCertificate().subject.CN));
      socket.destroy();
    });
    socket.once('error', reject);
  });
}

/** Every worker takes its turn, so more connections than there are workers see them all. */
async function shown(server: Server): Promise<readonly string[]> {
  const { httpPort, pgPort } = server.record();
  const names: string[] = [];
  for (let i = 0; i < 6; i++) {
    names.push(`rest ${await shownAt(httpPort, 'http/1.1')}`, `wire ${await shownAt(pgPort, 'postgresql')}`);
  }
  return [...new Set(names)].sort();
}

async function recorded(dataDir: string, wanted: (record: AuditRecord) => boolean): Promise<AuditRecord> {
  for (;;) {
    for await (const record of readRecords(join(dataDir, 'audit'))) if (wanted(record)) return record;
    await sleep(50);
  }
}

function write(dir: string, { cert, key }: Pair): Readonly<Record<string, string>> {
  const files = { OSL_TLS_CERT: join(dir, 'server.crt'), OSL_TLS_KEY: join(dir, 'server.key') };
  writeFileSync(files.OSL_TLS_CERT, cert);
  writeFileSync(files.OSL_TLS_KEY, key);
  return files;
}

const QUESTION = { osql: 'select 1 as a' };

t.test('one process', async (t) => {
  const where = place();
  const dir = temporary();
  const server = await served(t, where, {
    ...write(dir, named('first.example')),
    OSL_TLS_WATCH_SECONDS: '1',
    OSL_LOG_LEVEL: 'info',
  });
  const token = await tokenFor(where.dataDir);

  await t.test('REST and MCP answer over TLS, and say https of themselves', async (t) => {
    t.match(await ask(server, '/osl/query', token, QUESTION), { status: 200, body: /"rows":\[\{"a":1\}\]/ });
    t.match(await ask(server, '/ready', null), { status: 200 });
    const initialize = {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 't', version: '1' } },
    };
    t.match(await ask(server, '/mcp', token, initialize), { status: 200, body: /"serverInfo"/ });
    const { headers } = await ask(server, '/mcp', null, initialize);
    t.match(headers, { 'www-authenticate': /resource_metadata="https:\/\/127\.0\.0\.1:\d+\// });
    t.match(server.stdout, /"rest":"https:\/\/127\.0\.0\.1:/);
  });

  await t.test('what is no TLS, or too old, gets nothing and is on record', async (t) => {
    const port = Number(server.record().httpPort);
    const plain = await new Promise<string>((resolve) => {
      let text = '';
      const socket = connectPlain(port, '127.0.0.1', () =>
        socket.write(`GET /osl/query HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${token}\r\n\r\n`),
      );
      socket.on('data', (chunk) => {
        text += chunk.toString('latin1');
      });
      socket.on('error', () => undefined).once('close', () => resolve(text));
    });
    t.notMatch(plain, /HTTP/);
    const old = new Promise((resolve, reject) => {
      const options = { host: '127.0.0.1', port, rejectUnauthorized: false, ciphers: 'ALL:@SECLEVEL=0' };
      const socket = connectTls({ ...options, minVersion: 'TLSv1', maxVersion: 'TLSv1.1' }, () =>
        resolve(socket.destroy()),
      );
      socket.once('error', reject);
    });
    await t.rejects(old, { code: /^ERR_SSL_/ });
    t.match(await recorded(where.dataDir, (r) => r.action === 'http tls'), {
      kind: 'decision',
      decision: 'error',
      subject: null,
    });
  });

  await t.test("the commands of this machine know the server by its certificate's file", async (t) => {
    const args = ['--data-dir', where.dataDir, '--subject', 'user:analyst'];
    t.match(await osl(['query', ...args, 'select 1 as a']), { code: 0 });
    t.match(await osl(['query', ...args, '--format', 'csv', 'select 1 as a']), {
      code: 0,
      stdout: /^a\s+1\s*$/,
    });
    const doctor = await osl(['doctor', '--data-dir', where.dataDir, '--manifest', where.manifest, '--json']);
    t.match(doctor.stdout, /the server of this data directory \(process \d+\) is ready/);
    const url = `https://localhost:${server.record().httpPort}`;
    const elsewhere = ['query', '--server', url, 'select 1 as a'];
    t.match(await osl(elsewhere, { env: { OSL_TOKEN: token } }), {
      code: 3,
      stderr: /not of an authority that is trusted here: name the authority in OSL_SERVER_CA/,
    });
  });

  await t.test('another server in its place is not believed', async (t) => {
    const other = temporary();
    mkdirSync(join(other, 'x'));
    // The file changes before the server has looked, as if the port had been taken by another.
    const { cert, key } = named('other.example');
    writeFileSync(join(dir, 'server.crt'), cert);
    const asked = await osl(['query', '--data-dir', where.dataDir, '--subject', 'user:analyst', 'select 1']);
    t.match(asked, { code: 3, stderr: /no answer from https/ });
    writeFileSync(join(dir, 'server.key'), key);
    while ((await shown(server)).join() !== 'rest other.example,wire other.example') await sleep(50);
    t.pass('taken up once certificate and key fit');
    t.match(await recorded(where.dataDir, (r) => r.action === 'service.reload'), {
      kind: 'event',
      detail: /"reloaded":true,"now":\["a certificate until/,
    });
  });

  await t.test('a renewal that does not fit stays out, and is told once', async (t) => {
    writeFileSync(join(dir, 'server.key'), named('wrong.example').key);
    while (!/a new certificate cannot be taken/.test(server.stderr)) await sleep(50);
    t.same(await shown(server), ['rest other.example', 'wire other.example']);
    t.match(await ask(server, '/osl/query', token, QUESTION), { status: 200 });
  });
});

t.test('REST with a certificate of its own, or plain behind a proxy', async (t) => {
  const dir = temporary();
  const { cert, key } = named('rest.example');
  writeFileSync(join(dir, 'rest.crt'), cert);
  writeFileSync(join(dir, 'rest.key'), key);
  const own = { OSL_HTTP_TLS_CERT: join(dir, 'rest.crt'), OSL_HTTP_TLS_KEY: join(dir, 'rest.key') };
  const server = await served(t, place(), { ...write(dir, named('wire.example')), ...own });
  t.same(await shown(server), ['rest rest.example', 'wire wire.example']);
  for (const [env, said] of [
    [{ OSL_TLS_CERT: 'a' }, /OSL_TLS_CERT and OSL_TLS_KEY go together/],
    [{ OSL_HTTP_TLS_KEY: 'a' }, /OSL_HTTP_TLS_CERT and OSL_HTTP_TLS_KEY go together/],
    [{ ...own, OSL_HTTP_TLS: 'off' }, /OSL_HTTP_TLS is off, and OSL_HTTP_TLS_CERT names a certificate/],
    [{ OSL_TLS_CERT: own.OSL_HTTP_TLS_KEY, OSL_TLS_KEY: own.OSL_HTTP_TLS_KEY }, /rest\.key/],
  ] as const) {
    const { dataDir, manifest, policy } = place();
    const args = ['serve', '--manifest', manifest, '--policy', policy, '--data-dir', dataDir];
    t.match(await osl(args, { env: { ...env, OSL_HTTP_PORT: '0', OSL_PG_PORT: '0' } }), {
      code: 2,
      stderr: said,
    });
  }
});

const postgres = await startNativePostgres();
t.test('two workers take up certificates too', { skip: postgres === null ? NO_NATIVE : false }, async (t) => {
  if (postgres === null) return;
  t.teardown(() => postgres.stop());
  const where = place();
  const manifest = `version: 1
connectors: { db: { kind: postgres, url_env: STORE_URL, tables: {} } }
entities: {}
`;
  writeFileSync(where.manifest, manifest);
  writeFileSync(
    where.policy,
    'version: 1\ntenant: demo\nsubjects: { user:analyst: { ceiling: [] } }\nroles: {}\nmasks: {}\n',
  );
  const dir = temporary();
  const first = named('first.example');
  const server = await served(t, where, {
    ...write(dir, first),
    STORE_URL: postgres.readerUrl,
    OSL_WORKERS: '2',
    OSL_TLS_WATCH_SECONDS: '0',
  });
  t.same(await shown(server), ['rest first.example', 'wire first.example']);
  write(dir, named('second.example'));
  server.hangUp();
  while ((await shown(server)).join() !== 'rest second.example,wire second.example') await sleep(50);
  t.ok(new X509Certificate(first.cert).validTo, 'both workers show the second one');
});
