import { test } from 'tap';
import { FrameDecoder } from '../../wire/input.js';
import { MessageWriter } from '../../wire/message-fields.js';
import {
  bind,
  close,
  describe,
  execute,
  flush,
  int32,
  join,
  message,
  parse,
  password,
  query,
  readable,
  startup,
  sync,
  terminate,
  text,
} from './support/bytes.js';
import { Client } from './support/client.js';
import { Scripted } from './support/scripted.js';

test('a decoder gives the same messages however the bytes are cut', (t) => {
  const messages = [query('one'), sync, query('x'.repeat(5000)), message('X')];
  const bytes = Buffer.concat(messages);
  for (const size of [1, 2, 3, 5, 7, 64, 1000, 5000, bytes.length]) {
    const decoder = new FrameDecoder();
    const found: string[] = [];
    for (let at = 0; at < bytes.length; at += size) {
      decoder.push(Buffer.from(bytes.subarray(at, at + size)));
      for (let f = decoder.next(() => 1e6); f !== null; f = decoder.next(() => 1e6)) {
        found.push(`${String.fromCharCode(f.type)}${f.body.toString()}`);
      }
    }
    t.same(found, ['Qone\0', 'S', `Q${'x'.repeat(5000)}\0`, 'X'], `chunks of ${size}`);
    t.equal(decoder.buffered, 0);
  }
  t.end();
});

test('a body stays as it was while more bytes come', (t) => {
  const decoder = new FrameDecoder();
  const first = query('first');
  decoder.push(first.subarray(0, 3));
  decoder.push(join(first.subarray(3), query('second').subarray(0, 4)));
  const frame = decoder.next(() => 100);
  decoder.push(Buffer.alloc(1000, 0x7a));
  t.equal(frame?.body.toString(), 'first\0');
  t.end();
});

test('memory follows the bytes that came, not the length that was claimed', (t) => {
  const before = process.memoryUsage().arrayBuffers;
  const decoders: FrameDecoder[] = [];
  for (let i = 0; i < 100; i++) {
    const decoder = new FrameDecoder();
    decoder.push(join('Q', int32(16 * 1024 * 1024 - 1)));
    decoder.push(Buffer.from('x'));
    t.equal(
      decoder.next(() => 16 * 1024 * 1024),
      null,
    );
    decoders.push(decoder);
  }
  t.ok(
    process.memoryUsage().arrayBuffers - before < 1024 * 1024,
    '100 claims of 16 MiB cost less than 1 MiB',
  );
  t.end();
});

test('a message writer keeps order across small, large and growing messages', (t) => {
  const out = new MessageWriter();
  const long = 'y'.repeat(40_000);
  const row = message('D', Buffer.alloc(9_000, 0x61));
  for (let i = 0; i < 300; i++) out.message(67, (fields) => fields.cstring(`tag ${i}`));
  out.append(row);
  out.message(67, (fields) => {
    fields.cstring('head');
    fields.cstring(long);
  });
  out.append(message('Z', 'I'));
  const size = out.size;
  const bytes = Buffer.concat(out.take());
  const small = [...Array(300).keys()].map((i) => message('C', text(`tag ${i}`)));
  t.same(bytes, Buffer.concat([...small, row, message('C', text('head'), text(long)), message('Z', 'I')]));
  t.equal(size, bytes.length);
  t.equal(out.size, 0);
  out.message(67, (fields) => fields.cstring('a\0b'));
  t.equal(readable('C', Buffer.concat(out.take()).subarray(5)), 'C a\uFFFDb', 'a NUL cannot forge a field');
  t.end();
});

/** Bytes → answers, in a session with a message cap of 1 MiB. */
const BROKEN: readonly (readonly [name: string, sent: Buffer, expected: readonly string[]])[] = [
  ['length 3', join('Q', int32(3)), ['E FATAL 08P01 invalid message length', 'closed']],
  ['length 0', join('S', int32(0)), ['E FATAL 08P01 invalid message length', 'closed']],
  [
    'length beyond the cap',
    join('Q', int32(1024 * 1024 + 1)),
    ['E FATAL 08P01 invalid message length', 'closed'],
  ],
  ['length 2³²−1', join('Q', int32(-1), 'rows 1\0'), ['E FATAL 08P01 invalid message length', 'closed']],
  ['a Sync of 10,001 bytes', join('S', int32(10_001)), ['E FATAL 08P01 invalid message length', 'closed']],
  ['unknown type', join('y'), ['E FATAL 08P01 invalid frontend message type 121', 'closed']],
  ['a password now', join('p', int32(10)), ['E FATAL 08P01 invalid frontend message type 112', 'closed']],
  ['Query without NUL', message('Q', 'rows 1'), ['E ERROR 08P01 invalid string in message', 'Z I']],
  ['Query without anything', message('Q'), ['E ERROR 08P01 invalid string in message', 'Z I']],
  [
    'Query with an embedded NUL',
    message('Q', text('rows 1'), text('drop')),
    ['E ERROR 08P01 invalid message format', 'Z I'],
  ],
  [
    'Query that is not UTF-8',
    message('Q', Buffer.from([0x61, 0xff, 0])),
    ['E ERROR 22021 invalid byte sequence for encoding "UTF8"', 'Z I'],
  ],
  [
    'an overlong encoding',
    message('Q', Buffer.from([0xc0, 0xa7, 0])),
    ['E ERROR 22021 invalid byte sequence for encoding "UTF8"', 'Z I'],
  ],
  ['Sync with a body', message('S', 'x'), ['E ERROR 08P01 invalid message format', 'Z I']],
  [
    'FunctionCall',
    message('F', int32(1), Buffer.alloc(6)),
    ['E ERROR 0A000 function calls of the protocol are not supported', 'Z I'],
  ],
];

test('broken messages', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve({ maxMessageBytes: 1024 * 1024 });
  t.teardown(stop);
  for (const [name, sent, expected] of BROKEN) {
    const client = await Client.ready(port);
    client.send(sent);
    t.same(await client.until(expected.at(-1) ?? ''), expected, name);
    if (expected.includes('Z I')) {
      t.same(
        await client.ask(query('rows 1')),
        ['T n:23:text', 'D 1', 'C SELECT 1', 'Z I'],
        `${name}: the session goes on`,
      );
    }
    client.end();
  }
  t.notMatch(handler.log.join(), /drop/);
});

test('a message of the largest size passes', async (t) => {
  const { port, stop } = await new Scripted().serve({ maxMessageBytes: 1024 * 1024 });
  t.teardown(stop);
  const client = await Client.ready(port);
  t.same(await client.ask(query(`none ${'x'.repeat(1024 * 1024 - 10)}`)), ['C NONE', 'Z I']);
});

test('a client that sends on after its message was refused still reads why', async (t) => {
  const { port, stop } = await new Scripted().serve({ maxMessageBytes: 1024 * 1024 });
  t.teardown(stop);
  const client = await Client.ready(port);
  client.send(join('Q', int32(4 * 1024 * 1024), Buffer.alloc(3 * 1024 * 1024)));
  t.same(await client.rest(), ['E FATAL 08P01 invalid message length', 'closed']);
});

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
