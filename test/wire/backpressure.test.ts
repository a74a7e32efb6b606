import { type Test, test } from 'tap';
import { describe, parse, query } from './support/bytes.js';
import { Client } from './support/client.js';
import { eventually, Scripted } from './support/scripted.js';

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** The value once it has not changed for 300 ms. */
async function settled(value: () => number): Promise<number> {
  for (let last = -1; ; ) {
    if (value() === last) return last;
    last = value();
    await pause(300);
  }
}

/** A client that has asked for 50 MB and does not read. */
async function stalledReader(t: Test) {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  client.socket.pause();
  client.send(query('blob 10000 5000'));
  await eventually(() => (handler.sessions[0]?.written ?? 0) > 0);
  return { handler, client };
}

test('a reader that stops pauses what feeds it, and gets everything in the end', async (t) => {
  const { handler, client } = await stalledReader(t);
  const stalled = await settled(() => handler.sessions[0]?.written ?? 0);
  t.ok(stalled < 2500, `${stalled} of 5,000 rows are in flight`);
  client.socket.resume();
  const lines = await client.until('Z');
  t.equal(lines.length, 5003);
  t.ok(lines.slice(1, 5001).every((line) => line.length === 10_002));
  t.same(lines.slice(-2), ['C SELECT 5000', 'Z I']);
});

test('a client whose answers are stalled is not read', async (t) => {
  const { client } = await stalledReader(t);
  const burst = query(`none ${'x'.repeat(100_000)}`);
  for (let i = 0; i < 400; i++) client.send(burst);
  await pause(300);
  t.ok(
    client.socket.writableLength > 20_000_000,
    `${client.socket.writableLength} of 40 MB wait on the client's side`,
  );
  client.socket.resume();
  for (let i = 0; i < 401; i++) await client.until('Z');
  t.pass('and are all served when it reads again');
});

test('answers to messages without Sync do not pile up either', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve({ maxStatements: 10 });
  t.teardown(stop);
  const client = await Client.ready(port);
  client.socket.pause();
  const burst = Buffer.concat(Array(2000).fill(Buffer.concat([parse('', 'pair'), describe('S')])));
  for (let i = 0; i < 200; i++) client.send(burst);
  await eventually(() => handler.log.length > 0);
  const served = await settled(() => handler.log.length);
  t.ok(served < 400_000, `${served} of 400,000 statements are served before it reads`);
  client.end();
});

test('a client that reads nothing for too long is disconnected', async (t) => {
  const handler = new Scripted();
  const { server, port, stop } = await handler.serve({ writeStallTimeoutMs: 100 });
  t.teardown(stop);
  const client = await Client.ready(port);
  client.socket.pause();
  client.send(query('blob 10000 5000'));
  await eventually(() => server.connections === 0);
  const session = handler.sessions[0];
  await eventually(() => session?.closed === 1);
  t.ok((session?.written ?? 0) < 5000);
  t.equal(session?.openPortals, 0);
  t.same(handler.bugs, []);
  client.end();
});

test('large rows pass through byte for byte', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  for (const size of [0, 1, 4000, 4096, 40_000, 1_000_000]) {
    const lines = await client.ask(query(`blob ${size} 3`));
    t.same(
      lines.map((line) => line.length),
      ['T t:25:text'.length, size + 2, size + 2, size + 2, 10, 3],
      `${size} bytes`,
    );
  }
  t.equal((await client.ask(parse('', ''), query(''))).join(), '1,I,Z I');
});
