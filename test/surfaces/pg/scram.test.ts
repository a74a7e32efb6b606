import tap, { test } from 'tap';
import { makeScramVerifier } from '../../../wire/index.js';
import { startTestService } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { int32, join, message, startup, text } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { servePg } from './support.js';

const PASSWORD = 'correct horse, battery: staple';

async function policyWith(accounts: string): Promise<string> {
  return `${SHOP_POLICY}\nservice_accounts:\n${accounts}\n`;
}

const scram = await makeScramVerifier(PASSWORD);
const shop = await startTestService({
  policy: await policyWith(
    `  tableau: { subject: user:eu, scram: "${scram}" }
  grafana: { subject: user:ada, scram: "${scram}", acl_roles: [analyst] }`,
  ),
});
const { connect, port } = await servePg(tap, shop);

test('a service account logs in with its password and sees what its subject may', async (t) => {
  const client = await connect('tableau', PASSWORD);
  t.teardown(() => client.end());
  t.same((await client.query('select id, email from customer order by id')).rows, [
    { id: 1, email: '[redacted]' },
    { id: 2, email: '[redacted]' },
  ]);
});

test('an account may claim fewer roles than its subject has', async (t) => {
  const client = await connect('grafana', PASSWORD);
  t.teardown(() => client.end());
  t.same((await client.query('select email from customer where id = 1')).rows, [{ email: '[redacted]' }]);
});

test('the audit log names the subject, and a wrong password too is in it', async (t) => {
  const before = (await shop.records()).length;
  const client = await connect('tableau', PASSWORD);
  await client.end();
  await t.rejects(connect('tableau', 'wrong'), { code: '28P01' });
  const fresh = (await shop.records()).slice(before).filter((r) => r.kind === 'decision');
  t.same(
    fresh.map((r) => [r.action, r.decision]),
    [
      ['login', 'allow'],
      ['wire password', 'deny'],
    ],
  );
  t.equal(fresh[0]?.subject, 'user:eu');
});

test('its name is no way round: a token is not its password, nor its password a token', async (t) => {
  await t.rejects(connect('tableau', await shop.token('user:eu')), { code: '28P01' });
  await t.rejects(connect('user:eu', PASSWORD), { code: '28000' });
  await t.rejects(connect('user:eu', scram), { code: '28000' });
  await t.rejects(connect('tableau', scram), { code: '28P01' }, 'the verifier itself opens nothing');
});

/** What a client might say instead of SCRAM's first message. */
const FIRST: Readonly<Record<string, readonly [Buffer, string]>> = {
  'another mechanism': [sasl('SCRAM-SHA-1', 'n,,n=,r=abc'), '28000'],
  'channel binding that is not offered': [sasl('SCRAM-SHA-256', 'p=tls-unique,,n=,r=abc'), '08P01'],
  'somebody to act for': [sasl('SCRAM-SHA-256', 'n,a=root,n=,r=abc'), '08P01'],
  'no nonce': [sasl('SCRAM-SHA-256', 'n,,n=,r='), '08P01'],
  'a length that lies': [message('p', text('SCRAM-SHA-256'), int32(5_000), 'n,,n=,r=abc'), '08P01'],
  'a negative length': [message('p', text('SCRAM-SHA-256'), int32(-1)), '08P01'],
  'a plain password': [message('p', text(PASSWORD)), '08P01'],
  nothing: [message('p'), '08P01'],
  'a question': [message('Q', text('select 1')), '08P01'],
};

function sasl(mechanism: string, first: string): Buffer {
  return message('p', text(mechanism), int32(first.length), first);
}

test('what is not SCRAM is refused, whatever it is', async (t) => {
  for (const [name, [bytes, sqlstate]] of Object.entries(FIRST)) {
    const client = await Client.open(port);
    client.send(startup({ user: 'tableau', database: 'osl' }));
    t.same(await client.until('R'), ['R 10']);
    client.send(bytes);
    const said = await client.rest();
    t.match(said[0] ?? '', new RegExp(`^E FATAL ${sqlstate} `), name);
    t.equal(said.at(-1), 'closed', name);
  }
});

test('the final message must fit the first', async (t) => {
  for (const final of [
    'c=eSws,r=NONCE,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    'c=biws,r=other,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    'c=biws,r=NONCE,p=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=',
    'c=biws,r=NONCE',
    'c=biws,r=NONCE,p=',
    `c=biws,r=NONCE,p=${'A'.repeat(5_000)}`,
  ]) {
    const client = await Client.open(port);
    client.send(startup({ user: 'tableau', database: 'osl' }));
    await client.until('R');
    client.send(sasl('SCRAM-SHA-256', 'n,,n=,r=abc'));
    await client.until('R 11');
    client.send(join(message('p', final)));
    t.match((await client.rest())[0] ?? '', /^E FATAL (28P01|08P01) /, final.slice(0, 40));
  }
});

test('a session ends when its account changes its password or goes, and follows its rights', async (t) => {
  const { writeFileSync } = await import('node:fs');
  const write = async (accounts: string): Promise<void> => {
    writeFileSync(shop.policyFile, await policyWith(accounts));
    await shop.open.reload();
  };
  const both = `  tableau: { subject: user:eu, scram: "${scram}" }\n  grafana: { subject: user:ada, scram: "${scram}" }`;
  const tableau = await connect('tableau', PASSWORD);
  const grafana = await connect('grafana', PASSWORD);
  await write(both);
  t.same((await grafana.query('select email from customer where id = 1')).rows, [
    { email: 'ada@eu.example' },
  ]);
  await write(both.replace(scram, await makeScramVerifier('another password')));
  await t.rejects(tableau.query('select 1'), { code: '28000' });
  await write(`  other: { subject: user:eu, scram: "${scram}" }`);
  await t.rejects(grafana.query('select 1'), { code: '28000' });
});

test('a policy takes a verifier, and no password in any form', async (t) => {
  const { writeFileSync } = await import('node:fs');
  for (const account of [
    `{ subject: user:eu, scram: "${PASSWORD}" }`,
    '{ subject: user:eu, scram: "md5d41d8cd98f00b204e9800998ecf8427e" }',
    `{ subject: user:eu, scram: "${scram.replace('4096', '4095')}" }`,
    `{ subject: user:eu, scram: "${scram}", password: "${PASSWORD}" }`,
    `{ subject: user:eu, password: "${PASSWORD}" }`,
  ]) {
    writeFileSync(shop.policyFile, await policyWith(`  tableau: ${account}`));
    const refused: unknown = await shop.open.reload().catch((error: unknown) => error);
    t.ok(refused instanceof Error, account);
    t.notMatch(String(refused), PASSWORD, 'what stood there is not repeated');
  }
});
