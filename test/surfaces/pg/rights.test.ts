import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import tap, { test } from 'tap';
import { Catalogs } from '../../../src/surfaces/catalog/index.js';
import { startTestService } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { bind, describe, execute, flush, parse, query, sync } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { servePg } from './support.js';

const shop = await startTestService();
const catalogs = new Catalogs({ dir: join(tmpdir(), 'osl-test-catalog') });
await catalogs.warm();
tap.teardown(() => catalogs.close());
const { port } = await servePg(tap, shop, { catalogs });

/** The auditor loses the role that shows addresses. */
const TIGHTER = SHOP_POLICY.replace('ceiling: [auditor, analyst]', 'ceiling: [analyst]');

async function serve(policy: string): Promise<void> {
  writeFileSync(shop.policyFile, policy);
  await shop.open.reload();
}

/** Each takes a first portion, then the policy is tightened, then it asks for the next. */
const WAYS = {
  'a cursor': {
    begin: [
      query('begin'),
      query('declare c cursor for select email from customer order by id'),
      query('fetch 1 from c'),
    ],
    again: query('fetch 1 from c'),
  },
  'a cursor WITH HOLD': {
    begin: [
      query('declare c cursor with hold for select email from customer order by id'),
      query('fetch 1 from c'),
    ],
    again: query('fetch all from c'),
  },
  'a cursor over the catalog': {
    begin: [
      query('begin'),
      query("declare c cursor for select 'ada@' || relname from pg_class"),
      query('fetch 1 from c'),
    ],
    again: query('fetch all from c'),
  },
} as const;

for (const [name, { begin, again }] of Object.entries(WAYS)) {
  test(`${name} gives no more once the policy is tighter`, async (t) => {
    await serve(SHOP_POLICY);
    const client = await Client.login(port, 'user:ada', await shop.token('user:ada'));
    t.teardown(() => client.end());
    let said: string[] = [];
    for (const message of begin) said = await client.ask(message);
    t.match(said.join('\n'), /D ada@/, 'the first portion comes');
    await serve(TIGHTER);
    const after = (await client.ask(again)).join('\n');
    t.match(after, /E ERROR 55000 your access changed .*\[D E2003, request/);
    t.notMatch(after, /\nD |^D /);
  });
}

test('a portal of the extended protocol gives no more either', async (t) => {
  await serve(SHOP_POLICY);
  const client = await Client.login(port, 'user:ada', await shop.token('user:ada'));
  t.teardown(() => client.end());
  await client.ask(query('begin'));
  const first = [parse('', 'select email from customer order by id'), bind('p', ''), execute('p', 1), sync];
  t.match((await client.ask(...first)).join('\n'), /D ada@/);
  await serve(TIGHTER);
  const after = (await client.ask(execute('p', 1), sync)).join('\n');
  t.match(after, /E ERROR 55000/);
  t.notMatch(after, /@/);
});

test('a question that was prepared runs under the policy of its run, also in one series of messages', async (t) => {
  await serve(SHOP_POLICY);
  const client = await Client.login(port, 'user:ada', await shop.token('user:ada'));
  t.teardown(() => client.end());
  const prepared = async (): Promise<void> => {
    client.send(parse('', 'select email from customer where id = 1'), describe('S'), flush);
    await client.until('T');
  };
  const run = async (): Promise<string> => (await client.ask(bind('', ''), execute(), sync)).join('\n');
  await prepared();
  t.match(await run(), /D ada@/, 'where nothing has changed it goes on');
  await prepared();
  await serve(TIGHTER);
  const after = await run();
  t.match(after, /D \[redacted\]/);
  t.notMatch(after, /@/);
});

test('fewer roles in a newer token end it too; the same rights do not', async (t) => {
  await serve(SHOP_POLICY);
  const client = await Client.login(port, 'user:ada', await shop.token('user:ada'));
  t.teardown(() => client.end());
  await client.ask(query('begin'));
  await client.ask(query('declare c cursor for select email from customer order by id'));
  await client.ask(query('fetch 1 from c'));
  await client.ask(query(`set osl.token = '${await shop.token('user:ada')}'`));
  t.match((await client.ask(query('fetch 1 from c'))).join('\n'), /D bo@/);
  await client.ask(query(`set osl.token = '${await shop.token('user:ada', { aclRoles: ['analyst'] })}'`));
  t.match((await client.ask(query('fetch 1 from c'))).join('\n'), /E ERROR 55000/);
});

/** Everybody loses the columns of customers but two. */
const NARROWER = SHOP_POLICY.replaceAll(/on: customer, columns: "\*"/g, 'on: customer, columns: [id, name]');
const CHANGED = /E ERROR 0A000 cached plan must not change result type .*\[R RevalidateCachedQuery\]/;

test('a statement whose columns have changed since it was prepared says so as Postgres does', async (t) => {
  await serve(SHOP_POLICY);
  const client = await Client.login(port, 'user:ada', await shop.token('user:ada'));
  t.teardown(() => client.end());
  const listed =
    "select attname from pg_attribute where attrelid = 'entities.customer'::regclass and attname = 'born'";
  const run = (name: string) => [bind('', name), execute(), sync];
  await client.ask(parse('all', 'select * from customer where id = 1'), ...run('all'));
  await client.ask(parse('some', 'select name from customer where id = 1'), ...run('some'));
  t.match(await client.ask(parse('listed', listed), ...run('listed')), ['1', '2', 'D born']);
  await serve(NARROWER);
  t.match((await client.ask(...run('all'))).join('\n'), CHANGED);
  t.match(
    await client.ask(...run('some')),
    ['2', 'D Ada', 'C SELECT 1', 'Z I'],
    'what stays the same goes on',
  );
  const names = ['1', '2', 'D 1|Ada', 'C SELECT 1', 'Z I'];
  t.same(
    await client.ask(parse('', 'select * from customer where id = 1'), ...run('')),
    names,
    'prepared again',
  );
  t.match(await client.ask(...run('listed')), ['2', 'C SELECT 0', 'Z I'], 'the catalog follows');
});

test('EXECUTE is decided anew, under the policy of its run', async (t) => {
  await serve(SHOP_POLICY);
  const client = await Client.login(port, 'user:ada', await shop.token('user:ada'));
  t.teardown(() => client.end());
  await client.ask(query('prepare q (int) as select email from customer where id = $1'));
  t.match(await client.ask(query('execute q(1)')), [/^T/, /^D ada@/]);
  await serve(TIGHTER);
  t.match(await client.ask(query('execute q(1)')), [/^T/, /^D \[redacted\]/]);
  await serve(SHOP_POLICY.replace('ceiling: [auditor, analyst]', 'ceiling: []'));
  t.match((await client.ask(query('execute q(1)'))).join(), /E2102/);
  await serve(SHOP_POLICY);
});
