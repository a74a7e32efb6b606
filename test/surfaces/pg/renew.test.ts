import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import tap, { test } from 'tap';
import { startTestService } from '../../support/service.js';
import { servePg } from './support.js';

const shop = await startTestService();
const { connect } = await servePg(tap, shop);

/** Of a token that is good for eight more seconds: it is for 300 s, and 30 s of skew. */
const nearlyOver = (): number => Math.floor(Date.now() / 1000) - 322;

test('a session goes on under a newer token of the same caller', async (t) => {
  const old = await shop.token('user:eu', { issuedAt: nearlyOver() });
  const [kept, left] = [await connect('user:eu', old), await connect('user:eu', old)];
  t.teardown(() => kept.end());
  await kept.query(`set osl.token = '${await shop.token('user:eu')}'`);
  await setTimeout(9_000);
  t.same((await kept.query('select count(*)::int as n from customer')).rows, [{ n: 2 }]);
  await t.rejects(left.query('select 1'), { code: '28000' }, 'without one it ends');
});

test('the token of somebody else is refused, and the session stays who it was', async (t) => {
  const client = await connect('user:eu', await shop.token('user:eu'));
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
  const client = await connect('user:ada', await shop.token('user:ada'));
  t.teardown(() => client.end());
  t.same((await client.query('select email from customer where id = 1')).rows, [{ email: 'ada@eu.example' }]);
  await client.query(`set osl.token = '${await shop.token('user:ada', { aclRoles: ['analyst'] })}'`);
  t.same((await client.query('select email from customer where id = 1')).rows, [{ email: '[redacted]' }]);
});

test('a renewal is audited; its token is in no log', async (t) => {
  const client = await connect('user:eu', await shop.token('user:eu'));
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
    .map((f) => readFileSync(join(f.parentPath, f.name), 'latin1'))
    .join('');
  const secret = token.split('.')[2] ?? token;
  t.notOk(written.includes(secret) || JSON.stringify(shop.lines).includes(secret));
});
