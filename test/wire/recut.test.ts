import { test } from 'tap';
import {
  bind,
  close,
  describe,
  execute,
  flush,
  join,
  message,
  parse,
  password,
  query,
  startup,
  sync,
  terminate,
  text,
} from './support/bytes.js';
import { Client } from './support/client.js';
import { Scripted } from './support/scripted.js';

/** One session from its first byte to its last, errors included. */
const TRACE = join(
  startup({ user: 'ada', application_name: 'récut' }),
  password('right'),
  query('rows 2; notice'),
  parse('s', 'echo', [25]),
  describe('S', 's'),
  bind('', 's', { values: ['hé'], results: [1] }),
  describe('P'),
  flush,
  execute(),
  sync,
  bind('', 'unknown'),
  execute(),
  query('discarded'),
  sync,
  message('Q', text('a'), 'b'),
  query('begin'),
  parse('', 'rows 3'),
  bind('c', ''),
  execute('c', 2),
  sync,
  execute('c', 2),
  close('P', 'c'),
  sync,
  query('commit'),
  terminate,
);

/** The answers to TRACE, sent in two pieces, the second when the first has surely been read. */
async function answers(port: number, cut: number): Promise<string[]> {
  const client = await Client.open(port);
  client.send(TRACE.subarray(0, cut));
  if (cut > 0) await new Promise((resolve) => setTimeout(resolve, 4));
  client.send(TRACE.subarray(cut));
  return client.rest();
}

test('a session is answered the same wherever its bytes are cut', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const whole = await answers(port, 0);
  t.equal(whole.length, 39, 'the trace says something');
  t.equal(whole.at(-2), 'Z I');
  t.match(whole.join('\n'), /26000.*08P01.*\ns\nZ T/s);
  const expected = whole.join('\n');
  const different: number[] = [];
  for (let at = 1; at < TRACE.length; at += 16) {
    const cuts = [...Array(Math.min(16, TRACE.length - at)).keys()].map((i) => at + i);
    const results = await Promise.all(cuts.map((cut) => answers(port, cut)));
    results.forEach((lines, i) => {
      if (lines.join('\n') !== expected) different.push(at + i);
    });
  }
  t.same(different, [], `${TRACE.length - 1} cuts`);
});

test('and when every byte comes alone', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const expected = await answers(port, 0);
  const client = await Client.open(port);
  for (const byte of TRACE) {
    client.send(Buffer.from([byte]));
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.same(await client.rest(), expected);
});
