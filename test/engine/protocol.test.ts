import t from 'tap';
import { unboundedMemory } from '../../src/engine/answer-memory.js';
import { DataRowReader, textValuesOf } from '../../src/engine/protocol/backend-messages.js';
import { FrontendEncoder } from '../../src/engine/protocol/encoder.js';
import { BackendSplitter } from '../../src/engine/protocol/splitter.js';
import { UpstreamSession } from '../../src/engine/upstream-session.js';
import { dataRow } from './fixture.js';

const READY = Buffer.from([0x5a, 0, 0, 0, 5, 0x49]);
const COMPLETE = Buffer.concat([Buffer.from([0x43, 0, 0, 0, 13]), Buffer.from('SELECT 3\0')]);
const STREAM = Buffer.concat([dataRow(['a', null]), dataRow(['bb']), dataRow([]), COMPLETE, READY]);

/** Everything that `splitter` has, one entry a message or run. */
function drain(splitter: BackendSplitter): { type: number; rows: number; bytes: Buffer }[] {
  const out = [];
  while (splitter.next()) {
    const { type, rows, buffer, start, end } = splitter;
    out.push({ type, rows, bytes: Buffer.from(buffer.subarray(start, end)) });
  }
  return out;
}

t.test('a stream cut at any two places splits into the same messages', async (t) => {
  let wrong = 0;
  for (let i = 0; i <= STREAM.length; i++) {
    for (let j = i; j <= STREAM.length; j++) {
      const splitter = new BackendSplitter();
      const got = [STREAM.subarray(0, i), STREAM.subarray(i, j), STREAM.subarray(j)].flatMap((chunk) => {
        splitter.push(chunk);
        return drain(splitter);
      });
      const whole = Buffer.concat(got.map((message) => message.bytes)).equals(STREAM);
      const rows = got.reduce((sum, message) => sum + message.rows, 0);
      const others = got.filter((message) => message.rows === 0).map((message) => message.type);
      if (!whole || rows !== 3 || others.join() !== '67,90') wrong += 1;
    }
  }
  t.equal(wrong, 0);
});

t.test('neighbouring rows of one chunk are one view of it', async (t) => {
  const splitter = new BackendSplitter();
  splitter.push(STREAM);
  t.ok(splitter.next());
  t.equal(splitter.rows, 3);
  t.equal(splitter.buffer.buffer, STREAM.buffer);
});

t.test('a length that no message can have is refused', async (t) => {
  for (const length of [3, 0, -1, 0x7fff_ffff]) {
    const header = Buffer.from([0x44, 0, 0, 0, 0, 0, 0]);
    header.writeInt32BE(length, 1);
    const splitter = new BackendSplitter();
    splitter.push(header);
    t.throws(() => splitter.next(), { name: 'InternalError' }, `${length}`);
  }
});

t.test('rows of other columns than are read, and what is not a row, are refused', async (t) => {
  const rows = Buffer.concat([dataRow(['a', null]), dataRow(['bb', ''])]);
  const read = (columns: number) => () => {
    const reader = new DataRowReader(rows);
    while (reader.next()) for (let column = 0; column < columns; column++) reader.text();
  };
  t.doesNotThrow(read(2));
  for (const columns of [0, 1, 3]) t.throws(read(columns), Error, `${columns} columns of two`);
  t.throws(() => new DataRowReader(COMPLETE).next(), { name: 'InternalError' });
  t.same(textValuesOf(rows.subarray(dataRow(['a', null]).length)), ['bb', '']);
});

t.test('messages are encoded as the protocol says', async (t) => {
  const out = new FrontendEncoder();
  out.parse('n', 'é', [23]);
  out.bind(
    'n',
    [
      { format: 1, bytes: Buffer.from([9]) },
      { format: 0, bytes: null },
    ],
    [1],
  );
  out.execute(7);
  out.sync();
  const hex = Buffer.from(out.view()).toString('hex');
  const parse = `50${'0000000f'}${'6e00'}${'c3a900'}${'0001'}${'00000017'}`;
  const formats = `${'0002'}${'0001'}${'0000'}`;
  const values = `${'0002'}${'00000001'}09${'ffffffff'}`;
  const bind = `42${'0000001c'}00${'6e00'}${formats}${values}${'0001'}${'0001'}`;
  const execute = `45${'00000009'}00${'00000007'}`;
  t.equal(hex, `${parse}${bind}${execute}5300000004`);
});

t.test('the buffer grows and what was detached stays as it was', async (t) => {
  const out = new FrontendEncoder();
  const big = 'x'.repeat(100_000);
  out.query(big);
  const kept = out.view();
  out.detach();
  out.query('y'.repeat(200_000));
  t.equal(Buffer.from(kept).toString('latin1', 5, 100_005), big);
  t.equal(out.length, 200_006);
});

t.test('a message that cannot be written leaves nothing behind', async (t) => {
  const long = Array.from({ length: 65_536 }, () => 25);
  const { allocUnsafe } = Buffer;
  t.teardown(() => {
    Buffer.allocUnsafe = allocUnsafe;
  });
  Buffer.allocUnsafe = (size) => Buffer.alloc(size, 0xa5);
  const out = new FrontendEncoder();
  out.sync();
  const values = long.map(() => ({ format: 0 as const, bytes: null }));
  t.throws(() => out.parse('n', 'x'.repeat(50_000), long), { name: 'InternalError' }, 'too many parameters');
  t.throws(() => out.parse('n', 'x', [25, 2 ** 32]), RangeError, 'an OID of 33 bits');
  t.throws(() => out.parse('n', "select '\0'", []), { name: 'InternalError' }, 'a NUL would end the text');
  t.throws(() => out.bind('n', values, []), { name: 'InternalError' }, 'too many values');
  t.throws(() => out.execute(2 ** 31), RangeError, 'too large a limit');
  out.sync();
  t.equal(Buffer.from(out.view()).toString('hex'), '5300000004'.repeat(2));
  out.parse('', 'x', long.slice(1));
  t.equal(Buffer.from(out.view()).readUInt16BE(10 + 8), 65_535, 'as many as the protocol counts');
});

t.test('a job that cannot be sent ends alone, and nothing of it is sent', async (t) => {
  const sent: string[] = [];
  const session = new UpstreamSession(
    {
      graceMs: 0,
      attach: () => undefined,
      write: (bytes) => sent.push(Buffer.from(bytes).toString('latin1')) > 0,
      pause: () => undefined,
      resume: () => undefined,
      cancel: async () => undefined,
      destroy: () => undefined,
    },
    unboundedMemory(),
  );
  const lost: unknown[] = [];
  const job = (send: (out: FrontendEncoder) => void) => ({
    send,
    subject: null,
    largeRow: () => 'pass' as const,
    onMemoryShortage: () => undefined,
    rows: () => undefined,
    message: () => undefined,
    ready: () => undefined,
    lost: (cause?: unknown) => lost.push(cause),
  });
  session.submit(
    job((out) => {
      out.parse('', 'select 1', []);
      out.parse('', 'select \0', []);
    }),
  );
  t.match(lost, [{ name: 'InternalError' }], 'its job hears why');
  session.submit(job((out) => out.sync()));
  t.same(sent, [], 'the session, of which it is not known what it has prepared, is used no more');
  t.ok(session.closed);
});
