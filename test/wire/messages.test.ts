import { test } from 'tap';
import { WireError } from '../../wire/index.js';
import { MessageWriter } from '../../wire/message-fields.js';
import { parameterDescription, parseComplete } from '../../wire/messages/extended.js';
import {
  commandComplete,
  copyOutResponse,
  errorResponse,
  noticeResponse,
  readyForQuery,
  rowDescription,
} from '../../wire/messages/results.js';
import { backendKeyData, negotiateProtocolVersion, parameterStatus } from '../../wire/messages/startup.js';
import { int16, int32, join, message, text } from './support/bytes.js';

type Write = (out: MessageWriter) => void;

const INT = { name: 'n', typeOid: 23, typeLength: 4, typeModifier: -1 };
const column = (more: Partial<typeof INT>) => (out: MessageWriter) =>
  rowDescription(out, [{ ...INT, ...more }], []);
const described = (name: string, oid: number, length: number, modifier: number) =>
  message(
    'T',
    int16(1),
    text(name),
    int32(0),
    int16(0),
    int32(oid),
    int16(length),
    int32(modifier),
    int16(0),
  );
const columns = (count: number) => Array.from({ length: count }, () => INT);
const failure = (more: ConstructorParameters<typeof WireError>[3], words = 'no'): Write => {
  return (out) => errorResponse(out, new WireError('ERROR', '42601', words, more));
};
const failed = (words: string, ...more: Buffer[]) =>
  message('E', text('SERROR'), text('VERROR'), text('C42601'), text(`M${words}`), ...more, '\0');
const times = (count: number, part: Buffer) => Buffer.concat(Array(count).fill(part));
const LONG = 'x'.repeat(100_000);

/** Every field of every message at its bounds: what comes of it, written independently, or null: refused. */
const BOUNDS: readonly (readonly [name: string, write: Write, expected: Buffer | null])[] = [
  ...[0, 1, 32_767, 32_768, 65_535].map(
    (n) =>
      [
        `${n} parameters`,
        (out: MessageWriter) => parameterDescription(out, Array(n).fill(25)),
        message('t', int16(n), times(n, int32(25))),
      ] as const,
  ),
  ['65,536 parameters', (out) => parameterDescription(out, Array(65_536).fill(25)), null],
  [
    'OIDs',
    (out) => parameterDescription(out, [0, 2 ** 31, 2 ** 32 - 1]),
    message('t', int16(3), int32(0), int32(2 ** 31), int32(-1)),
  ],
  ['a negative OID', (out) => parameterDescription(out, [25, -1]), null],
  ['an OID of 33 bits', (out) => parameterDescription(out, [25, 2 ** 32]), null],
  ...[0, 32_767, 32_768, 65_535].map(
    (n) =>
      [
        `${n} columns`,
        (out: MessageWriter) => rowDescription(out, columns(n), []),
        message('T', int16(n), times(n, described('n', 23, 4, -1).subarray(7))),
      ] as const,
  ),
  ['65,536 columns', (out) => rowDescription(out, columns(65_536), []), null],
  ['65,536 columns in binary', (out) => rowDescription(out, columns(65_536), [1]), null],
  ['a long column name', column({ name: LONG }), described(LONG, 23, 4, -1)],
  ['a column name with a NUL', column({ name: 'a\0b' }), described('a\uFFFDb', 23, 4, -1)],
  ['half a character', column({ name: 'a\uD800' }), described('a\uFFFD', 23, 4, -1)],
  ['no column name', column({ name: '' }), described('', 23, 4, -1)],
  ['the largest column OID', column({ typeOid: 2 ** 32 - 1 }), described('n', -1, 4, -1)],
  ['too large a column OID', column({ typeOid: 2 ** 32 }), null],
  ['type length −2', column({ typeLength: -2 }), described('n', 23, -2, -1)],
  ['type length 32,767', column({ typeLength: 32_767 }), described('n', 23, 32_767, -1)],
  ['type length 32,768', column({ typeLength: 32_768 }), null],
  ['the largest modifier', column({ typeModifier: 2 ** 31 - 1 }), described('n', 23, 4, 2 ** 31 - 1)],
  ['the smallest modifier', column({ typeModifier: -(2 ** 31) }), described('n', 23, 4, -(2 ** 31))],
  ['too large a modifier', column({ typeModifier: 2 ** 31 }), null],
  ['a tag with a NUL', (out) => commandComplete(out, 'SELECT\0 1'), message('C', text('SELECT\uFFFD 1'))],
  ['a long error', failure({}, LONG), failed(LONG)],
  ['an error with a NUL', failure({}, 'a\0Mb'), failed('a\uFFFDMb')],
  [
    'every field of an error',
    failure({ detail: 'd\0', hint: 'h\0', position: 2 ** 53, routine: 'r\0' }),
    failed('no', ...['Dd\uFFFD', 'Hh\uFFFD', `P${2 ** 53}`, 'Rr\uFFFD'].map(text)),
  ],
  ['an empty error', failure({ detail: '', hint: '' }, ''), failed('', text('D'), text('H'))],
  [
    'a notice',
    (out) => noticeResponse(out, { severity: 'NOTICE', sqlstate: '01000', message: 'a\0', hint: LONG }),
    message('N', text('SNOTICE'), text('VNOTICE'), text('C01000'), text('Ma\uFFFD'), text(`H${LONG}`), '\0'),
  ],
  [
    'COPY of 65,535 columns',
    (out) => copyOutResponse(out, { columns: 65_535, format: 1 }),
    message('H', Buffer.from([1]), int16(65_535), times(65_535, int16(1))),
  ],
  ['COPY of 65,536 columns', (out) => copyOutResponse(out, { columns: 65_536, format: 0 }), null],
  [
    'a setting with NULs',
    (out) => parameterStatus(out, 'a\0b', 'c\0d'),
    message('S', text('a\uFFFDb'), text('c\uFFFDd')),
  ],
  [
    'the largest process id',
    (out) => backendKeyData(out, 2 ** 31 - 1, Buffer.alloc(256, 7)),
    message('K', int32(2 ** 31 - 1), Buffer.alloc(256, 7)),
  ],
  ['too large a process id', (out) => backendKeyData(out, 2 ** 31, Buffer.alloc(4)), null],
  [
    '1,000 options',
    (out) => negotiateProtocolVersion(out, Array(1_000).fill('_pq_.x')),
    message('v', int32((3 << 16) | 2), int32(1_000), times(1_000, text('_pq_.x'))),
  ],
];

/** What `work` writes while all memory that comes unwritten holds `byte`. */
function poisoned(byte: number, work: Write): Buffer {
  const { allocUnsafe } = Buffer;
  Buffer.allocUnsafe = (size) => Buffer.alloc(size, byte);
  try {
    const out = new MessageWriter();
    work(out);
    return Buffer.concat(out.take());
  } finally {
    Buffer.allocUnsafe = allocUnsafe;
  }
}

test('every field of every message at its bounds is written whole or refused', (t) => {
  for (const [name, write, expected] of BOUNDS) {
    const got = poisoned(0xa5, (out) => {
      readyForQuery(out, 'I');
      if (expected === null) t.throws(() => write(out), RangeError, `${name} is refused`);
      else write(out);
      parseComplete(out);
    });
    const wanted = join(message('Z', 'I'), expected ?? Buffer.alloc(0), message('1'));
    t.ok(got.equals(wanted), `${name}: ${got.length} bytes, and what stands around it is whole`);
  }
  t.end();
});

/** A generator of numbers below `n`, the same for the same seed. */
function dice(seed: number): (n: number) => number {
  let state = seed;
  return (n) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * n);
  };
}

/** Some messages, good and broken, small and large, as one connection would write them. */
function conversation(seed: number, out: MessageWriter): Buffer[] {
  const roll = dice(seed);
  const wanted: Buffer[] = [];
  for (let i = roll(40); i >= 0; i--) {
    const [, write, expected] = BOUNDS[roll(BOUNDS.length)] ?? BOUNDS[0] ?? [];
    if (roll(4) === 0) {
      const rows = message('D', Buffer.alloc(roll(9_000), i));
      out.append(rows);
      wanted.push(rows);
    }
    try {
      write?.(out);
      if (expected != null) wanted.push(expected);
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause;
    }
    const broken = roll(3) === 0;
    const count = roll(3_000);
    try {
      out.message(0x58, (fields) => {
        for (let n = 0; n < count; n++) fields.uint32(n);
        if (broken) fields.uint16(65_536);
      });
      wanted.push(message('X', Buffer.concat([...Array(count).keys()].map(int32))));
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause;
    }
  }
  return wanted;
}

test('no byte is ever sent that was not written', (t) => {
  const wrong: number[] = [];
  for (let seed = 1; seed <= 20; seed++) {
    let wanted: Buffer[] = [];
    const [one, other] = [0xa5, 0x5a].map((byte) =>
      poisoned(byte, (out) => {
        wanted = conversation(seed, out);
      }),
    );
    const written = one?.equals(Buffer.concat(wanted)) === true;
    if (!written || other?.equals(one) !== true) wrong.push(seed);
  }
  t.same(wrong, [], 'whatever the memory held before');
  t.end();
});

test('a message cannot be taken, or followed, before it is whole', (t) => {
  const out = new MessageWriter();
  t.throws(() => out.byte(1), 'a field without a message');
  out.message(0x58, (fields) => {
    fields.byte(1);
    t.throws(() => out.take());
    t.throws(() => out.append(Buffer.alloc(5)));
    t.throws(() => out.message(0x59));
  });
  t.same(Buffer.concat(out.take()), message('X', Buffer.from([1])));
  t.end();
});
