import { randomBytes } from 'node:crypto';
import { test } from 'tap';
import { CancelKeys } from '../../wire/cancel-keys.js';
import { cancelRequest, query, version } from './support/bytes.js';
import { Client } from './support/client.js';
import { eventually, Scripted } from './support/scripted.js';

const CANCELLED = ['E ERROR 57014 canceling statement due to user request', 'Z I'];

test('the right key cancels the statement that runs; a wrong one nothing', async (t) => {
  for (const code of [version(3, 0), version(3, 2)]) {
    const handler = new Scripted();
    const { port, stop } = await handler.serve();
    t.teardown(stop);
    const client = await Client.ready(port, {}, code);
    const { pid, key } = client.cancelKey ?? { pid: 0, key: Buffer.alloc(0) };
    client.send(query('wait'));
    await eventually(() => handler.sessions[0]?.waiting === true);

    const wrong = Buffer.from(key);
    wrong.writeUInt8(wrong.readUInt8(0) ^ 1, 0);
    const guesses = [
      cancelRequest(pid, wrong),
      cancelRequest(pid + 1, key),
      cancelRequest(pid, Buffer.concat([key, Buffer.alloc(1)])),
      cancelRequest(pid, Buffer.alloc(256)),
    ];
    for (const guess of guesses) {
      const attacker = await Client.open(port);
      t.same(await attacker.send(guess).rest(), ['closed'], 'a wrong key is told nothing');
    }
    t.equal(handler.sessions[0]?.cancelled, 0);
    t.same(
      handler.refusals.map((r) => r.kind),
      ['cancel', 'cancel', 'cancel', 'cancel'],
    );
    t.notMatch(JSON.stringify(handler.refusals), key.toString('hex'));

    const canceller = await Client.open(port);
    t.same(await canceller.send(cancelRequest(pid, key)).rest(), ['closed'], 'nor is a right one');
    t.same(await client.until('Z'), CANCELLED);
    t.equal(handler.refusals.length, 4);
  }
});

test('a cancel that comes when nothing runs hits nothing later', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  const { pid, key } = client.cancelKey ?? { pid: 0, key: Buffer.alloc(0) };
  await (await Client.open(port)).send(cancelRequest(pid, key)).rest();
  t.equal(handler.sessions[0]?.cancelled, 0);
  client.send(query('hold'));
  await eventually(() => handler.sessions[0]?.waiting === true);
  handler.sessions[0]?.release();
  t.same(await client.until('Z'), ['C HOLD', 'Z I']);
});

test('the key of a session that ended is worth nothing', async (t) => {
  const handler = new Scripted();
  const { server, port, stop } = await handler.serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  const { pid, key } = client.cancelKey ?? { pid: 0, key: Buffer.alloc(0) };
  client.end();
  await eventually(() => server.connections === 0);
  await (await Client.open(port)).send(cancelRequest(pid, key)).rest();
  t.same(
    handler.refusals.map((r) => r.kind),
    ['cancel'],
  );
});

test('a million wrong keys cancel nothing', (t) => {
  const keys = new CancelKeys();
  let cancelled = 0;
  const { processId, key } = keys.issue(4, () => cancelled++);
  const guess = randomBytes(4);
  for (let i = 0; i < 1_000_000; i++) {
    guess.writeUInt32BE(i);
    if (!guess.equals(key)) keys.cancel(processId, guess);
  }
  t.equal(cancelled, 0);
  t.equal(keys.cancel(processId, key), true);
  t.equal(cancelled, 1);
  t.end();
});

test('a client that has gone cancels its statement, and its session is closed', async (t) => {
  const handler = new Scripted();
  const { server, port, stop } = await handler.serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  client.send(query('wait'));
  await eventually(() => handler.sessions[0]?.waiting === true);
  client.end();
  await eventually(() => handler.sessions[0]?.closed === 1 && server.connections === 0);
  t.equal(handler.sessions[0]?.cancelled, 1);
  t.equal(handler.sessions[0]?.openPortals, 0);
  t.same(handler.bugs, []);
});
