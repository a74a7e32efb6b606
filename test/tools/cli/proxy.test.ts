import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import pg from 'pg';
import tap, { test } from 'tap';
import { psqlThroughProxy } from '../../../cli/commands/psql.js';
import { type LocalProxy, listenProxy, subjectOf, tokensOfCommand } from '../../../cli/proxy/connection.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { connectPg } from '../../support/pg-client.js';
import { startTestService } from '../../support/service.js';
import { Server, temporary } from './support.js';

const shop = await startTestService();
const frontend = createPgFrontend(shop.service, {});
const { port } = await frontend.listen(0, '127.0.0.1');
tap.teardown(async () => {
  await frontend.stop();
  await shop.close();
});

const said: string[] = [];

function proxyOf(tokens: () => Promise<string>, renewMs = 120_000): Promise<LocalProxy> {
  return listenProxy(0, {
    target: { host: '127.0.0.1', port, tls: 'off' },
    tokens: async () => {
      const token = await tokens();
      return { token, subject: subjectOf(token) };
    },
    renewMs,
    said: (text) => said.push(text),
    notConnected: (text) => said.push(text),
  });
}

async function connect(to: number, user = 'anybody'): Promise<pg.Client> {
  const client = await connectPg({ port: to, user, password: '' });
  client.on('error', () => undefined);
  return client;
}

test('a client without a password asks as the subject of the token', async (t) => {
  const proxy = await proxyOf(() => shop.token('user:eu'));
  t.teardown(() => proxy.close());
  const client = await connect(proxy.port);
  t.teardown(() => client.end());
  t.same((await client.query('select id from customer where id > $1 order by id', [0])).rows, [
    { id: 1 },
    { id: 2 },
  ]);
  await t.rejects(client.query('select nothing from customer'), { code: '42703' });
  t.same((await client.query('select 1 as one')).rows, [{ one: 1 }]);
});

test('a session outlives its tokens, and its client notices nothing', async (t) => {
  let minted = 0;
  const nearlyOver = () => Math.floor(Date.now() / 1000) - 322; // each is good for 8 more seconds
  const proxy = await proxyOf(() => {
    minted += 1;
    return shop.token('user:eu', { issuedAt: nearlyOver() });
  }, 300);
  t.teardown(() => proxy.close());
  const client = await connect(proxy.port);
  t.teardown(() => client.end());
  const end = Date.now() + 9_500;
  let answers = 0;
  while (Date.now() < end) {
    const both = await Promise.all([
      client.query('select count(*)::int as n from customer'),
      client.query('select $1::int as n', [answers]),
    ]);
    t.same([both[0].rows, both[1].rows], [[{ n: 2 }], [{ n: answers }]]);
    answers += 1;
    await setTimeout(20);
  }
  t.ok(minted > 5, `${minted} tokens, ${answers} answers`);
  await client.query('begin');
  await t.rejects(client.query('select 1/0'));
  await setTimeout(400);
  await client.query('rollback');
  t.same((await client.query('select 1 as one')).rows, [{ one: 1 }], 'also after a block that failed');
});

test('psql works through it, and Ctrl-C reaches the server', async (t) => {
  const proxy = await proxyOf(() => shop.token('user:ada'));
  t.teardown(() => proxy.close());
  const env = {
    ...process.env,
    PGHOST: '127.0.0.1',
    PGPORT: String(proxy.port),
    PGUSER: 'me',
    PGDATABASE: 'osl',
  };
  const out = await new Promise((resolve) =>
    execFile('psql', ['-X', '-At', '-c', 'select name from customer where id = 1'], { env }, (_, printed) =>
      resolve(printed),
    ),
  );
  t.equal(out, 'Ada\n');
});

test('a proxy with a password takes nobody without it', async (t) => {
  const proxy = await listenProxy(0, {
    target: { host: '127.0.0.1', port, tls: 'off' },
    tokens: async () => ({ token: await shop.token('user:eu'), subject: 'user:eu' }),
    renewMs: 120_000,
    password: 'of this psql',
    said: (text) => said.push(text),
    notConnected: (text) => said.push(text),
  });
  t.teardown(() => proxy.close());
  const client = (password: string): pg.Client =>
    new pg.Client({ host: '127.0.0.1', port: proxy.port, user: 'me', database: 'osl', password });
  for (const password of ['', 'of this psq', 'of this psql ', 'x'.repeat(1_025)])
    await t.rejects(client(password).connect(), `${password.length} bytes`);
  const known = client('of this psql');
  await known.connect();
  t.same((await known.query('select count(*)::int as n from customer')).rows, [{ n: 2 }]);
  await known.end();
});

test('a session of osl psql outlives its tokens, and its proxy ends with it', async (t) => {
  let minted = 0;
  const out = join(mkdtempSync(join(tmpdir(), 'osl-psql-')), 'out');
  t.teardown(() => rmSync(dirname(out), { recursive: true }));
  const count = 'select count(*) from customer';
  const args = [
    '-X',
    '-At',
    '-o',
    out,
    '-c',
    count,
    '-c',
    '\\! sleep 6.5',
    '-c',
    count,
    '-c',
    '\\qecho :PORT',
  ];
  const status = await psqlThroughProxy(args, {
    subject: 'user:eu',
    target: { host: '127.0.0.1', port, tls: 'prefer' },
    tokens: async () => {
      minted += 1;
      const issuedAt = Math.floor(Date.now() / 1000) - 325; // good for 5 more seconds
      return { token: await shop.token('user:eu', { issuedAt }), subject: 'user:eu' };
    },
    renewMs: 1_000,
  });
  t.equal(status, 0);
  const [before, after, proxyPort] = readFileSync(out, 'utf8').split('\n');
  t.same([before, after], ['2', '2']);
  t.ok(minted > 3, `${minted} tokens`);
  await t.rejects(connect(Number(proxyPort)), { code: 'ECONNREFUSED' });
});

test('what goes wrong is said to the client and to the person at the proxy', async (t) => {
  const broken = await listenProxy(0, {
    target: { host: '127.0.0.1', port, tls: 'off' },
    tokens: tokensOfCommand('echo no luck >&2; exit 3'),
    renewMs: 120_000,
    said: (text) => said.push(text),
    notConnected: (text) => said.push(text),
  });
  t.teardown(() => broken.close());
  await t.rejects(connect(broken.port), { code: '08006', message: /the token command failed: no luck/ });
  t.ok(said.some((text) => text.includes('no luck')));
  const refused = await proxyOf(() => shop.token('user:eu', { tenant: 'elsewhere' }));
  t.teardown(() => refused.close());
  await t.rejects(connect(refused.port), { code: '28000' }, "the server's own words pass");
  const nowhere = await listenProxy(0, {
    target: { host: '127.0.0.1', port: 1, tls: 'off' },
    tokens: async () => ({ token: '', subject: '' }),
    renewMs: 120_000,
    said: () => undefined,
  });
  t.teardown(() => nowhere.close());
  await t.rejects(connect(nowhere.port), { code: '08006', message: /cannot be reached/ });
});

test('the gateway of --server is the target without --to', async (t) => {
  const dataDir = temporary();
  const named = [
    '--server',
    'https://127.0.0.1:8642',
    '--token-command',
    `echo ${await shop.token('user:eu')}`,
  ];
  const proxy = new Server(['proxy', '--json', '--port', '0', ...named], dataDir);
  t.teardown(() => proxy.signal('SIGKILL'));
  await proxy.said('"event":"listening"');
  t.match(JSON.parse(proxy.stdout), { to: '127.0.0.1:15432', subject: 'user:eu' });
});

test('a token command prints a token', async (t) => {
  const token = await shop.token('user:eu');
  t.same(await tokensOfCommand(`echo ${token}`)(), { token, subject: 'user:eu' });
  await t.rejects(tokensOfCommand('echo hello')(), /printed no actor token/);
});

/** What a server sends a client that logs in, and how it ends then. */
const BAD_SERVERS: Readonly<Record<string, (socket: Socket) => void>> = {
  'it resets': (socket) => socket.resetAndDestroy(),
  'it closes': (socket) => socket.end(),
  'it says that a message has no length': (socket) => void socket.write(Buffer.from('R\0\0\0\0')),
  'it asks for a way to log in without saying which': (socket) =>
    void socket.write(Buffer.from('R\0\0\0\x04')),
};

test('a server that is none, and a client that is none, cost their own connection', async (t) => {
  let end: (socket: Socket) => void = () => undefined;
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => end(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => void server.close());
  const { port: badPort } = server.address() as { port: number }; // it listens on a port
  for (const tls of ['off', 'verify'] as const) {
    const proxy = await listenProxy(0, {
      target: { host: '127.0.0.1', port: badPort, tls },
      tokens: async () => ({ subject: 'user:eu', token: 'x' }),
      renewMs: 120_000,
      said: (text) => said.push(text),
      notConnected: (text) => said.push(text),
    });
    for (const [how, bad] of Object.entries(BAD_SERVERS)) {
      end = bad;
      await t.rejects(connect(proxy.port), `${tls}: ${how}`);
    }
    if (tls === 'verify') {
      end = () => undefined;
      await t.rejects(connect(proxy.port), /does not answer the request for TLS/, 'it says nothing');
    }
    await proxy.close();
  }
  const proxy = await proxyOf(() => shop.token('user:eu'));
  t.teardown(() => proxy.close());
  const good = await connect(proxy.port);
  const bad = await connect(proxy.port);
  const ended = new Promise((resolve) => bad.once('end', resolve));
  streamOf(bad).write(Buffer.from('Q\0\0\0\0'));
  await ended;
  t.same((await good.query('select 1 as one')).rows, [{ one: 1 }], 'others go on');
  await good.end();
});

function streamOf(client: pg.Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream; // its types leave it out
}
