import tap, { test } from 'tap';
import { CLOCK_SKEW_SECONDS, MAX_LIFETIME_SECONDS } from '../../../policy/index.js';
import { startTestService } from '../../support/service.js';
import { bind, execute, join, message, parse, password, query, sync } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { decisionsAfter, servePg } from './support.js';

const shop = await startTestService();
const { port, frontend } = await servePg(tap, shop);

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
