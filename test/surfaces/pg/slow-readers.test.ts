import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readdirSync, readlinkSync, writeFileSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { connect as connectTo, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type pg from 'pg';
import tap, { type Test, test } from 'tap';
import { mintToken } from '../../../policy/index.js';
import { generatedSql } from '../../../src/base/sql.js';
import { tenantKeys } from '../../../src/service/keys.js';
import { settingsFrom } from '../../../src/service/settings.js';
import { createHttpServer } from '../../../src/surfaces/http/server.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { type NativePostgres, NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { connectPg } from '../../support/pg-client.js';
import { onPostgres, startTestService, type TestService } from '../../support/service.js';
import { SHOP_MANIFEST, SHOP_POLICY, SHOP_SCRIPT } from '../../support/shop.js';
import { Server, temporary } from '../../tools/cli/support.js';

/** Readers that stop in the middle of a large answer: the database is free all the same, and they lose nothing. */

const ROWS = 60_000;
const SCRIPT = `${SHOP_SCRIPT}; insert into shop.products select g, repeat(md5(g::text), 10) from generate_series(1000, ${ROWS}) g`;
const LARGE = 'select id, label from product where id >= 1000';
const COUNT = ROWS - 999;
const POOL = 4;
const MIB = 1_048_576;

tap.setTimeout(240_000);

interface Gateway {
  readonly shop: TestService;
  readonly postgres: NativePostgres;
  readonly pgPort: number;
  readonly httpPort: number;
  readonly spoolDir: string;
}

async function started(t: Test, spoolMib = 256): Promise<Gateway | null> {
  const postgres = await startNativePostgres();
  if (postgres === null) {
    t.pass(NO_NATIVE, { skip: NO_NATIVE });
    return null;
  }
  const { load } = settingsFrom({ OSL_SPOOL_MIB: `${spoolMib}` }, '/');
  const shop = await startTestService({ postgres, script: SCRIPT, settings: { poolSize: POOL, load } });
  const frontend = createPgFrontend(shop.service);
  const pgPort = (await frontend.listen(0, '127.0.0.1')).port;
  const http = await createHttpServer(shop.service);
  const httpPort = (await http.listen(0, '127.0.0.1')).port;
  t.teardown(async () => {
    await http.close(0);
    await frontend.stop(0);
    await shop.close();
    await postgres.stop();
  });
  return { shop, postgres, pgPort, httpPort, spoolDir: join(shop.auditDir, '..', 'spool') };
}

async function connect(t: Test, { shop, pgPort }: Gateway, user: string): Promise<pg.Client> {
  const password = await shop.token(user);
  const client = await connectPg({ port: pgPort, user, password });
  client.on('error', () => undefined);
  t.teardown(() => client.end().catch(() => undefined));
  return client;
}

function socketOf(client: pg.Client): Socket {
  return (client as unknown as { connection: { stream: Socket } }).connection.stream; // no other way to stop reading
}

/** A client that asks for the large answer and stops after its first bytes. */
async function stopped(t: Test, gateway: Gateway, user: string) {
  const client = await connect(t, gateway, user);
  const socket = socketOf(client);
  const answer = client.query(LARGE);
  answer.catch(() => undefined);
  await new Promise<void>((resolve) => socket.once('data', () => resolve()));
  socket.pause();
  return { client, answer, socket };
}

const CANCEL_REQUEST = 80_877_102;

/** As the protocol has it: on a connection of its own. Resolves when the server has closed that. */
async function cancel({ pgPort }: Gateway, client: pg.Client): Promise<void> {
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }; // as it was told
  const bytes = Buffer.alloc(16);
  for (const [at, word] of [16, CANCEL_REQUEST, processID, secretKey].entries())
    bytes.writeInt32BE(word, 4 * at);
  const socket = connectTo(pgPort, '127.0.0.1', () => socket.write(bytes));
  await once(socket.resume(), 'close');
}

async function stoppedRest({ shop, httpPort }: Gateway, user: string): Promise<IncomingMessage> {
  const authorization = `Bearer ${await shop.token(user)}`;
  const headers = { authorization, accept: 'application/x-ndjson', 'content-type': 'application/json' };
  const sent = request({ host: '127.0.0.1', port: httpPort, method: 'POST', path: '/osl/query', headers });
  sent.end(JSON.stringify({ osql: LARGE.replace('product', 'osl.entities.product') }));
  return new Promise((resolve, reject) => {
    sent.once('error', reject);
    sent.once('response', (incoming) => resolve(incoming.pause()));
  });
}

const ACTIVE = `select count(*)::int as n from pg_stat_activity
  where usename = 'osl_reader' and datname = current_database() and state = 'active'`;

async function active({ shop }: Gateway): Promise<number> {
  const [row] = await shop.engine.system.query(generatedSql(ACTIVE));
  return Number(row?.['n']);
}

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await pause(20);
}

function spooled({ shop }: Gateway) {
  return shop.service.spool?.stats() ?? { bytes: 0, answers: 0, spooled: 0 };
}

async function outcomes({ shop }: Gateway) {
  return (await shop.records()).filter((r) => r.kind === 'outcome' && r.action === 'query');
}

/** The rows of the large answer as one word. */
function hashOf(rows: readonly Readonly<Record<string, unknown>>[]): string {
  const sorted = [...rows].sort((a, b) => Number(a['id']) - Number(b['id']));
  return createHash('md5').update(JSON.stringify(sorted)).digest('hex');
}

test('more slow readers than sessions: the database is free, others ask, and each answer comes whole', async (t) => {
  const gateway = await started(t);
  if (gateway === null) return;
  const other = await connect(t, gateway, 'user:ann');
  const whole = hashOf((await other.query(LARGE)).rows);
  const before = (await outcomes(gateway)).length;
  // One after the other: a session that one has given back is the next one's.
  const readers = [];
  for (let n = 0; n < POOL + 2; n++) readers.push(await stopped(t, gateway, 'user:ada'));
  const rest = await stoppedRest(gateway, 'user:ada');
  await until(async () => spooled(gateway).answers === POOL + 3 && (await active(gateway)) === 0);
  t.equal((await outcomes(gateway)).length, before, 'while each of them is still under way');
  t.same(readdirSync(gateway.spoolDir), [], 'files have no names');
  t.equal((await other.query('select count(*)::int as n from product where id < 0')).rows[0]?.n, 0);

  for (const { socket } of readers) socket.resume();
  for (const { answer } of readers) t.equal(hashOf((await answer).rows), whole);
  let text = '';
  for await (const part of rest.setEncoding('utf8')) text += String(part);
  const lines = text.trimEnd().split('\n');
  const trailer = JSON.parse(lines.pop() ?? '');
  t.match(trailer, { trailer: { row_count: COUNT, truncated: false } });
  t.equal(hashOf(lines.map((line) => JSON.parse(line))), whole);
  await until(() => spooled(gateway).answers === 0);
  t.equal(spooled(gateway).bytes, 0);
  await until(async () => (await outcomes(gateway)).length >= before + POOL + 4);
  t.same(
    new Set((await outcomes(gateway)).map((r) => `${r.outcome} ${r.rows === 1 ? COUNT : r.rows}`)),
    new Set([`ok ${COUNT}`]),
  );
});

test('a slow reader that cancels, and one that goes: the room is free, and what left is on record', async (t) => {
  const gateway = await started(t);
  if (gateway === null) return;
  const [cancels, goes] = [await stopped(t, gateway, 'user:ada'), await stopped(t, gateway, 'user:ada')];
  const rest = await stoppedRest(gateway, 'user:ada');
  await until(async () => spooled(gateway).answers === 3 && (await active(gateway)) === 0);
  goes.socket.destroy();
  rest.destroy();
  await until(() => spooled(gateway).answers === 1);
  await cancel(gateway, cancels.client);
  cancels.socket.resume();
  await t.rejects(cancels.answer, { code: '57014' });
  await until(() => spooled(gateway).answers === 0);
  t.equal(spooled(gateway).bytes, 0);
  await until(async () => (await outcomes(gateway)).filter((r) => r.outcome === 'cancelled').length === 3);
  for (const { outcome, rows = 0 } of await outcomes(gateway)) {
    if (outcome !== 'cancelled') continue;
    t.ok(rows !== null && rows > 0 && rows < COUNT, `${rows} rows had left`);
  }

  await t.test('one whose token is revoked gets no more than had left', async (t) => {
    const session = await stopped(t, gateway, 'user:ann');
    const stream = await stoppedRest(gateway, 'user:ann');
    await until(async () => spooled(gateway).answers === 2 && (await active(gateway)) === 0);
    await gateway.shop.service.revocations.revoke({ kind: 'subject', name: 'user:ann' });
    await until(() => spooled(gateway).answers === 0);
    session.socket.resume();
    await t.rejects(session.answer, { code: '55000' });
    let text = '';
    for await (const part of stream.setEncoding('utf8')) text += String(part);
    const lines = text.trimEnd().split('\n');
    t.match(JSON.parse(lines.pop() ?? ''), { trailer: { problem: { code: 'E2003' } } });
    t.ok(lines.length < COUNT, `${lines.length} rows had left`);
  });
});

test('beyond its part of the room a reader keeps its session, and gets everything', async (t) => {
  const gateway = await started(t, 8);
  if (gateway === null) return;
  const { answer, socket } = await stopped(t, gateway, 'user:ada');
  await until(() => spooled(gateway).bytes === 4 * MIB);
  await until(async () => (await active(gateway)) === 1); // the database may be between two portions
  const second = await stopped(t, gateway, 'user:ann');
  await until(() => spooled(gateway).bytes === 8 * MIB); // another subject has its own part
  socket.resume();
  t.equal((await answer).rows.length, COUNT);
  second.socket.resume();
  t.equal((await second.answer).rows.length, COUNT);
});

test('a server that is killed leaves nothing of what slow readers had not taken', async (t) => {
  const gateway = await started(t, 0); // for its tables alone
  if (gateway === null) return;
  const dataDir = temporary();
  const [manifest, policy] = [join(dataDir, 'manifest.yaml'), join(dataDir, 'policy.yaml')];
  writeFileSync(manifest, onPostgres(SHOP_MANIFEST, 'OSL_POSTGRES_URL'));
  writeFileSync(policy, SHOP_POLICY);
  const env = { OSL_POSTGRES_URL: gateway.postgres.readerUrl };
  const server = new Server(['serve', '--json', '--manifest', manifest, '--policy', policy], dataDir, env);
  t.teardown(() => server.signal('SIGKILL'));
  await server.said('"event":"listening"');
  const { pgPort, pid } = server.record();
  const secret = tenantKeys(dataDir).signing;
  const claims = {
    tenant: gateway.shop.service.tenant,
    chain: ['user:ada'],
    aclRoles: ['auditor', 'analyst'],
  };
  const token = async (): Promise<string> => mintToken(claims, { algorithm: 'HS256', secret });
  const there = { ...gateway, pgPort: Number(pgPort), shop: { ...gateway.shop, token } };
  await stopped(t, there, 'user:ada');
  const open = (): readonly string[] =>
    readdirSync(`/proc/${pid}/fd`)
      .map((fd) => targetOf(`/proc/${pid}/fd/${fd}`))
      .filter((path) => path.startsWith(join(dataDir, 'spool')));
  await until(() => open().length === 1);
  t.ok(open()[0]?.endsWith(' (deleted)'));
  await server.signal('SIGKILL');
  t.same(readdirSync(join(dataDir, 'spool')), []);
});

function targetOf(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    return ''; // it is closed by now
  }
}
