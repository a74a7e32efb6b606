import tap, { test } from 'tap';
import { createPasswordGuesses } from '../../../policy/index.js';
import { createPgFrontend } from '../../../src/surfaces/pg/index.js';
import { makeScramVerifier } from '../../../wire/index.js';
import { sealedParts, sealing } from '../../support/sealed-parts.js';
import { startTestService } from '../../support/service.js';
import { SHOP_POLICY } from '../../support/shop.js';
import { startup } from '../../wire/support/bytes.js';
import { Client } from '../../wire/support/client.js';
import { ScramClient } from '../../wire/support/scram.js';
import { decisionsAfter } from './support.js';

const PASSWORD = 'correct horse, battery: staple';
const BUDGET = 10;

const scram = await makeScramVerifier(PASSWORD);
const shop = await startTestService({
  policy: `${SHOP_POLICY}\nservice_accounts:
  tableau: { subject: user:eu, scram: "${scram}" }
  grafana: { subject: user:ada, scram: "${scram}" }
`,
});

/** A frontend whose guesses begin at nothing. What one address may write into the log is another test's matter. */
async function fresh(): Promise<{ readonly port: number; stop(): Promise<void> }> {
  const takeAddress = () => ({ ok: true as const });
  const limiter = { ...sealedParts(shop.service).limiter, takeAddress, guesses: createPasswordGuesses() };
  const frontend = createPgFrontend(sealing(shop.service, { limiter }), {});
  const { port } = await frontend.listen(0, '127.0.0.1');
  return { port, stop: () => frontend.stop() };
}
tap.teardown(() => shop.close());

/** What is said to a login with this password, from the exchange's end on. `leave`: how the client goes after its proof. */
async function tryPassword(
  port: number,
  user: string,
  password: string,
  leave: 'stays' | 'half-closes' | 'resets' = 'stays',
): Promise<readonly string[]> {
  const client = await Client.open(port);
  const scramClient = new ScramClient(password, 'rOprNGfwEbeRWgbNEkqO');
  let challenge = Buffer.alloc(0);
  client.socket.on('data', (chunk: Buffer) => {
    const at = chunk.indexOf('r=rOpr');
    if (at >= 4) challenge = Buffer.from(chunk.subarray(at - 4));
  });
  client.send(startup({ user, database: 'osl' }));
  await client.until('R 10');
  client.send(scramClient.first());
  await client.until('R 11');
  client.send(scramClient.final(challenge));
  if (leave === 'half-closes') client.socket.end();
  if (leave === 'resets') setImmediate(() => client.socket.resetAndDestroy());
  const said = await client.until(leave === 'stays' ? 'Z' : 'closed');
  client.end();
  return said;
}

const REFUSED = [
  `E FATAL 28P01 password authentication failed for user "tableau" [H After several wrong passwords the right one is refused too, for some minutes.]`,
  'closed',
];

test('after ten wrong passwords the right one is refused, in the very same words', async (t) => {
  const { port, stop } = await fresh();
  t.teardown(stop);
  t.match((await tryPassword(port, 'tableau', PASSWORD)).at(-1) ?? '', 'Z I', 'before');
  for (let i = 0; i < BUDGET; i++) t.same(await tryPassword(port, 'tableau', `guess ${i}`), REFUSED);
  t.same(await tryPassword(port, 'tableau', PASSWORD), REFUSED);
  t.equal((await tryPassword(port, 'grafana', PASSWORD)).at(-1), 'Z I', 'another account is not touched');
});

test('guesses are counted however the client leaves, and each is on record', async (t) => {
  for (const leave of ['half-closes', 'resets'] as const) {
    const { port, stop } = await fresh();
    const known = (await shop.records()).length;
    for (let i = 0; i < BUDGET; i++) await tryPassword(port, 'tableau', `guess ${i}`, leave);
    await stop();
    const refused = (await decisionsAfter(shop, known, BUDGET)).map((r) =>
      `${r.action} ${r.code ?? ''}`.trim(),
    );
    // A reset may overtake the proof, which is then not looked at.
    const wanted = leave === 'resets' ? /^wire (password|abandoned)$/ : /^wire password$/;
    t.equal(refused.filter((said) => wanted.test(said.replace(/ 28P01| E3001/, ''))).length, BUDGET, leave);
  }
  const { port, stop } = await fresh();
  t.teardown(stop);
  for (let i = 0; i < BUDGET; i++) await tryPassword(port, 'tableau', `guess ${i}`, 'half-closes');
  t.same(await tryPassword(port, 'tableau', PASSWORD), REFUSED);
});

test('the log says which refusal had the right password', async (t) => {
  const { port, stop } = await fresh();
  t.teardown(stop);
  const before = (await shop.records()).length;
  for (let i = 0; i < BUDGET; i++) await tryPassword(port, 'tableau', 'guess');
  await decisionsAfter(shop, before, BUDGET);
  const known = (await shop.records()).length;
  await tryPassword(port, 'tableau', PASSWORD);
  await tryPassword(port, 'tableau', 'guess');
  while ((await shop.records()).length < known + 2) await new Promise((resolve) => setTimeout(resolve, 5));
  const fresh2 = (await shop.records())
    .slice(known)
    .map((r) => (r.kind === 'decision' ? [r.action, r.code] : []));
  t.same(fresh2, [
    ['login', 'E4290'],
    ['wire password', '28P01'],
  ]);
});

test('an account that does not exist is counted nowhere, and refused as any bad token', async (t) => {
  const { port, stop } = await fresh();
  t.teardown(stop);
  const said = new Set<string>();
  for (let i = 0; i < BUDGET + 3; i++) {
    const client = await Client.open(port);
    client.send(startup({ user: 'nobody', database: 'osl' }));
    t.same(await client.until('R'), ['R 3']);
    client.send(Buffer.from('p\0\0\0\x0aguess\0', 'latin1'));
    said.add((await client.rest()).join('\n').replace(/request [0-9a-f-]+/, 'request R'));
  }
  t.equal(said.size, 1, [...said].join('\n'));
});
