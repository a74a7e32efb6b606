import { readdirSync, readFileSync } from 'node:fs';
import { join as joinPath } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import tap, { test } from 'tap';
import { CLOCK_SKEW_SECONDS, MAX_LIFETIME_SECONDS } from '../../../policy/index.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { startTestService } from '../../support/service.js';
import { bind, execute, join, message, parse, password, query, sync } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { ENDLESS } from './fuzz/traces.js';
import { decisionsAfter, servePg } from './support.js';

const shop = await startTestService();
const { port, frontend, connect: open } = await servePg(tap, shop);

async function connect(claims: { readonly issuedAt?: number } = {}): Promise<Client> {
  return Client.login(port, 'user:ann', await shop.token('user:ann', claims));
}

/** What a session sends that ends it. */
const ENDS: Readonly<Record<string, Buffer>> = {
  'a type that no client sends': message('?', 'x'),
  'a message of the server': message('Z', 'I'),
  'a length below 4': Buffer.from('Q\0\0\0\x03', 'latin1'),
  'a length beyond 16 MiB': Buffer.from('Q\x7f\xff\xff\xff', 'latin1'),
  'a password where none is asked': password('x'),
  'a broken message within a series': join(parse('', 'select 1'), bind('', ''), Buffer.from('E\0\0\0\0')),
};

test('bytes that end a session leave a record of the refusal', async (t) => {
  for (const [name, bytes] of Object.entries(ENDS)) {
    const client = await connect();
    const known = (await shop.records()).length;
    client.send(bytes);
    const said = await client.rest();
    t.match(said.at(-2) ?? '', /^E FATAL 08P01 /, name);
    // What was prepared within the series is on record too.
    const prepared = name === 'a broken message within a series' ? 1 : 0;
    const decisions = await decisionsAfter(shop, known, 1 + prepared);
    const [record, ...more] = decisions.filter((d) => d.action !== 'prepare');
    t.equal(decisions.length, 1 + prepared, name);
    t.match(
      record,
      { action: 'session', decision: 'error', code: '08P01', surface: 'wire', subject: 'user:ann' },
      name,
    );
    t.equal(more.length, 0, `${name}: once`);
  }
  t.match(await shop.verdict(), { integrity: 'intact', completeness: 'complete' });
});

test('a statement under a token that has ended is refused on record', async (t) => {
  const ends = Math.floor(Date.now() / 1_000) + 8; // two are let in before, also on a busy machine
  const issuedAt = ends - MAX_LIFETIME_SECONDS - CLOCK_SKEW_SECONDS;
  const ways = {
    simple: query('select name from customer'),
    extended: join(parse('', 'select name from customer'), bind('', ''), execute(), sync),
  };
  const clients = [await connect({ issuedAt }), await connect({ issuedAt })];
  await new Promise((resolve) => setTimeout(resolve, ends * 1_000 - Date.now() + 20));
  for (const [name, bytes] of Object.entries(ways)) {
    const known = (await shop.records()).length;
    const client = clients.pop();
    client?.send(bytes);
    t.match((await client?.rest())?.[0] ?? '', /^E FATAL 28000 /, name);
    t.match(
      await decisionsAfter(shop, known, 1),
      [{ decision: 'deny', code: '28000', subject: 'user:ann' }],
      name,
    );
  }
});

test('a client that only leaves has refused nothing', async (t) => {
  const known = (await shop.records()).length;
  const client = await connect();
  client.send(message('X'));
  t.same(await client.rest(), ['closed']);
  while (frontend.connections > 0) await new Promise((resolve) => setTimeout(resolve, 2));
  const fresh = await decisionsAfter(shop, known, 1);
  t.same(
    fresh.map((r) => [r.action, r.decision]),
    [['login', 'allow']],
  );
});

/** Of a token that is good for eight more seconds: it is for 300 s, and 30 s of skew. */
const nearlyOver = (): number => Math.floor(Date.now() / 1000) - 322;

test('a session goes on under a newer token of the same caller', async (t) => {
  const old = await shop.token('user:eu', { issuedAt: nearlyOver() });
  const [kept, left] = [await open('user:eu', old), await open('user:eu', old)];
  t.teardown(() => kept.end());
  await kept.query(`set osl.token = '${await shop.token('user:eu')}'`);
  await sleep(9_000);
  t.same((await kept.query('select count(*)::int as n from customer')).rows, [{ n: 2 }]);
  await t.rejects(left.query('select 1'), { code: '28000' }, 'without one it ends');
});

test('the token of somebody else is refused, and the session stays who it was', async (t) => {
  const client = await open('user:eu', await shop.token('user:eu'));
  t.teardown(() => client.end());
  const others = {
    'another subject': await shop.token('user:ada'),
    'another chain to the same subject': await shop.token('user:eu', { chain: ['agent:bot', 'user:eu'] }),
    'another tenant': await shop.token('user:eu', { tenant: 'elsewhere' }),
    'an expired token': await shop.token('user:eu', { issuedAt: nearlyOver() - 60 }),
    'no token': 'x',
    nothing: '',
  };
  for (const [name, token] of Object.entries(others)) {
    await t.rejects(client.query(`set osl.token = '${token}'`), { code: '28000' }, name);
  }
  await t.rejects(client.query('set osl.token to default'), { code: '22023' });
  await t.rejects(client.query('show osl.token'), { code: '42704' }, 'it cannot be read back');
  t.same((await client.query('select count(*)::int as n from customer')).rows, [{ n: 2 }]);
});

test('fewer roles in the newer token show less', async (t) => {
  const client = await open('user:ada', await shop.token('user:ada'));
  t.teardown(() => client.end());
  t.same((await client.query('select email from customer where id = 1')).rows, [{ email: 'ada@eu.example' }]);
  await client.query(`set osl.token = '${await shop.token('user:ada', { aclRoles: ['analyst'] })}'`);
  t.same((await client.query('select email from customer where id = 1')).rows, [{ email: '[redacted]' }]);
});

test('a renewal is audited; its token is in no log', async (t) => {
  const client = await open('user:eu', await shop.token('user:eu'));
  t.teardown(() => client.end());
  const before = (await shop.records()).length;
  const token = await shop.token('user:eu');
  await client.query(`set osl.token = '${token}'`);
  await t.rejects(client.query(`set osl.token = '${token}x'`));
  const fresh = (await shop.records()).slice(before).filter((r) => r.kind === 'decision');
  t.same(
    fresh.map((r) => [r.action, r.decision, r.subject]),
    [
      ['renew', 'allow', 'user:eu'],
      ['renew', 'deny', 'user:eu'],
    ],
  );
  const written = readdirSync(shop.auditDir, { recursive: true, withFileTypes: true })
    .filter((f) => f.isFile())
    .map((f) => readFileSync(joinPath(f.parentPath, f.name), 'latin1'))
    .join('');
  const secret = token.split('.')[2] ?? token;
  t.notOk(written.includes(secret) || JSON.stringify(shop.lines).includes(secret));
});

const STOPPED = ['E FATAL 57P01 terminating connection due to administrator command', 'closed'];
/** Time enough to hear of it, also on a machine that stands still for a while. */
const DEADLINE_MS = 5_000;

test('a gateway that stops lets statements end, and tells everybody why', async (t) => {
  const shop = await startTestService();
  t.teardown(() => shop.close());
  const frontend = createPgFrontend(shop.service, {});
  const { port } = await frontend.listen(0, '127.0.0.1');
  const connect = async (): Promise<Client> => Client.login(port, 'user:ann', await shop.token('user:ann'));
  const idle = await connect();
  const inBlock = await connect();
  await inBlock.ask(query('begin'));
  await inBlock.ask(query('declare c cursor for select id from customer order by id'));
  t.same(await inBlock.ask(query('fetch 1 from c')), ['T id:23:text', 'D 1', 'C FETCH 1', 'Z T']);
  const running = await connect();
  running.send(query(ENDLESS));
  while ((await shop.records()).filter((r) => r.action === 'query' && r.kind === 'decision').length < 2)
    await new Promise((resolve) => setTimeout(resolve, 5));

  let over = false;
  const last = running.rest().finally(() => {
    over = true;
  });
  const stopped = frontend.stop(DEADLINE_MS);
  t.same(await idle.rest(), STOPPED, 'an idle session at once');
  t.same(await inBlock.rest(), STOPPED, 'one in a block at once');
  t.equal(over, false, 'before the deadline');
  t.same((await last).slice(-2), STOPPED, 'a statement that goes on is ended at the deadline');
  await stopped;
  t.equal(frontend.connections, 0);
  const outcomes = (await shop.records()).filter((r) => r.kind === 'outcome' && r.action === 'query');
  t.equal(outcomes.at(-1)?.kind === 'outcome' && outcomes.at(-1)?.outcome, 'cancelled', 'which is on record');
  t.match(await shop.verdict(), { integrity: 'intact', completeness: 'complete' });
});
