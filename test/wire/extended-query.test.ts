import { test } from 'tap';
import {
  bind,
  close,
  describe,
  execute,
  flush,
  int16,
  int32,
  join,
  message,
  parse,
  query,
  sync,
  text,
} from './support/bytes.js';
import { Client } from './support/client.js';
import { Scripted } from './support/scripted.js';

const NO_STATEMENT = (name: string) => `E ERROR 26000 prepared statement "${name}" does not exist`;
const NO_PORTAL = (name: string) => `E ERROR 34000 portal "${name}" does not exist`;
const ROWS = ['T n:23:text', 'D 1', 'C SELECT 1', 'Z I'];

/** Messages (each case in a session of its own) → everything up to the last expected line. */
const SERIES: readonly (readonly [name: string, sent: readonly Buffer[], expected: readonly string[]])[] = [
  [
    'parse, bind, describe, execute',
    [parse('', 'rows 2'), bind('', ''), describe('P'), execute(), sync],
    ['1', '2', 'T n:23:text', 'D 1', 'D 2', 'C SELECT 2', 'Z I'],
  ],
  [
    'describe statement',
    [parse('s', 'echo', [1043]), describe('S', 's'), sync],
    ['1', 't 1043', 'T t:25:text', 'Z I'],
  ],
  ['type left open', [parse('s', 'echo'), describe('S', 's'), sync], ['1', 't 25', 'T t:25:text', 'Z I']],
  [
    'no columns',
    [parse('', 'none'), describe('S'), bind('', ''), describe('P'), execute(), sync],
    ['1', 't ', 'n', '2', 'n', 'C NONE', 'Z I'],
  ],
  [
    'empty query',
    [parse('', ''), bind('', ''), describe('P'), describe('S'), execute(), sync],
    ['1', '2', 'n', 't ', 'n', 'I', 'Z I'],
  ],
  [
    'result formats: one for all',
    [parse('', 'pair'), bind('', '', { results: [1] }), describe('P'), sync],
    ['1', '2', 'T n:23:binary t:25:binary', 'Z I'],
  ],
  [
    'result formats: one each',
    [parse('', 'pair'), bind('', '', { results: [0, 1] }), describe('P'), sync],
    ['1', '2', 'T n:23:text t:25:binary', 'Z I'],
  ],
  [
    'parameter and NULL',
    [
      parse('', 'echo'),
      bind('', '', { values: ['hé'] }),
      execute(),
      bind('', '', { values: [null] }),
      execute(),
      sync,
    ],
    ['1', '2', 'D hé', 'C SELECT 1', '2', 'D NULL', 'C SELECT 1', 'Z I'],
  ],
  [
    'row limit',
    [parse('', 'rows 5'), bind('', ''), execute('', 2), execute('', 2), execute('', 2), execute('', 2), sync],
    ['1', '2', 'D 1', 'D 2', 's', 'D 3', 'D 4', 's', 'D 5', 'C SELECT 1', 'C SELECT 0', 'Z I'],
  ],
  [
    'a command runs once',
    [parse('', 'none'), bind('p', ''), execute('p'), execute('p'), sync],
    ['1', '2', 'C NONE', 'E ERROR 55000 portal "p" cannot be run', 'Z I'],
  ],
  [
    'negative row limit is none',
    [parse('', 'rows 2'), bind('', ''), execute('', -1), sync],
    ['1', '2', 'D 1', 'D 2', 'C SELECT 2', 'Z I'],
  ],
  [
    'copy',
    [parse('', 'copy'), bind('', ''), describe('P'), execute('', 1), sync],
    ['1', '2', 'n', 'H 0:2', 'd a\tb\n', 'd c\td\n', 'c', 'C COPY 2', 'Z I'],
  ],
  [
    'an error discards up to Sync',
    [
      parse('', 'refuse'),
      bind('', ''),
      describe('P'),
      execute(),
      close('P'),
      flush,
      query('rows 1'),
      message('F'),
      sync,
    ],
    ['E ERROR 42501 not for you [H ask] [P 1]', 'Z I'],
  ],
  [
    'what follows Sync is served',
    [parse('', 'refuse'), sync, parse('', 'none'), sync],
    ['E ERROR 42501 not for you [H ask] [P 1]', 'Z I'],
  ],
  ['unknown statement', [bind('', 'x'), sync], [NO_STATEMENT('x'), 'Z I']],
  [
    'no unnamed statement',
    [bind('', ''), sync],
    ['E ERROR 26000 unnamed prepared statement does not exist', 'Z I'],
  ],
  ['describe unknown statement', [describe('S', 'x'), sync], [NO_STATEMENT('x'), 'Z I']],
  ['describe unknown portal', [describe('P', 'x'), sync], [NO_PORTAL('x'), 'Z I']],
  ['execute unknown portal', [execute('x'), sync], [NO_PORTAL('x'), 'Z I']],
  ['close what is not there', [close('S', 'x'), close('P', 'x'), sync], ['3', '3', 'Z I']],
  [
    'describe nonsense',
    [message('D', 'X', text('')), sync],
    ['E ERROR 08P01 invalid DESCRIBE message subtype 88', 'Z I'],
  ],
  [
    'close nonsense',
    [message('C', 'X', text('')), sync],
    ['E ERROR 08P01 invalid CLOSE message subtype 88', 'Z I'],
  ],
  [
    'duplicate statement',
    [parse('s', 'none'), parse('s', 'none'), sync],
    ['1', 'E ERROR 42P05 prepared statement "s" already exists', 'Z I'],
  ],
  [
    'closed name is free',
    [parse('s', 'none'), close('S', 's'), parse('s', 'rows 1'), sync],
    ['1', '3', '1', 'Z I'],
  ],
  [
    'unnamed statement is replaced',
    [parse('', 'none'), parse('', 'rows 1'), bind('', ''), execute(), sync],
    ['1', '1', '2', 'D 1', 'C SELECT 1', 'Z I'],
  ],
  [
    'a failed Parse leaves no unnamed statement',
    [parse('', 'none'), parse('', 'refuse'), sync, bind('', ''), sync],
    [
      '1',
      'E ERROR 42501 not for you [H ask] [P 1]',
      'Z I',
      'E ERROR 26000 unnamed prepared statement does not exist',
      'Z I',
    ],
  ],
  [
    'duplicate portal',
    [parse('', 'none'), bind('p', ''), bind('p', ''), sync],
    ['1', '2', 'E ERROR 42P03 cursor "p" already exists', 'Z I'],
  ],
  [
    'unnamed portal is replaced',
    [parse('', 'rows 1'), bind('', ''), bind('', ''), execute(), sync],
    ['1', '2', '2', 'D 1', 'C SELECT 1', 'Z I'],
  ],
  [
    'closed portal',
    [parse('', 'none'), bind('p', ''), close('P', 'p'), execute('p'), sync],
    ['1', '2', '3', NO_PORTAL('p'), 'Z I'],
  ],
  [
    'portal outlives its statement',
    [parse('s', 'rows 1'), bind('', 's'), close('S', 's'), execute(), sync],
    ['1', '2', '3', 'D 1', 'C SELECT 1', 'Z I'],
  ],
  [
    'portals die at Sync',
    [parse('', 'rows 1'), bind('p', ''), sync, execute('p'), sync],
    ['1', '2', 'Z I', NO_PORTAL('p'), 'Z I'],
  ],
  [
    'statements do not',
    [parse('s', 'rows 1'), sync, bind('', 's'), execute(), sync],
    ['1', 'Z I', '2', 'D 1', 'C SELECT 1', 'Z I'],
  ],
  [
    'in a transaction block portals live on',
    [query('begin'), parse('', 'rows 3'), bind('p', ''), execute('p', 1), sync, execute('p', 1), sync],
    ['C BEGIN', 'Z T', '1', '2', 'D 1', 's', 'Z T', 'D 2', 's', 'Z T'],
  ],
  [
    'and end with it',
    [query('begin'), parse('', 'rows 3'), bind('p', ''), sync, query('commit'), execute('p'), sync],
    ['C BEGIN', 'Z T', '1', '2', 'Z T', 'C COMMIT', 'Z I', NO_PORTAL('p'), 'Z I'],
  ],
  [
    'the handler can end them',
    [query('begin'), parse('', 'rows 3'), bind('p', ''), sync, query('chain'), execute('p'), sync],
    ['C BEGIN', 'Z T', '1', '2', 'Z T', 'C COMMIT', 'Z T', NO_PORTAL('p'), 'Z E'],
  ],
  [
    'a portal that failed is gone',
    [query('begin'), parse('', 'fail'), bind('p', ''), execute('p'), sync, execute('p'), sync],
    ['C BEGIN', 'Z T', '1', '2', 'D 1', 'E ERROR 22012 division by zero [P 3]', 'Z E', NO_PORTAL('p'), 'Z E'],
  ],
  [
    'Query drops the unnamed ones',
    [parse('', 'rows 1'), query('none'), bind('', ''), sync],
    ['1', 'C NONE', 'Z I', 'E ERROR 26000 unnamed prepared statement does not exist', 'Z I'],
  ],
  [
    'DEALLOCATE',
    [parse('s', 'none'), sync, query('deallocate s'), bind('', 's'), sync],
    ['1', 'Z I', 'C DEALLOCATE', 'Z I', NO_STATEMENT('s'), 'Z I'],
  ],
  ['DEALLOCATE what is not there', [query('deallocate s')], ['E ERROR 26000 no such statement', 'Z I']],
  [
    'DEALLOCATE ALL',
    [parse('s', 'none'), parse('t', 'none'), sync, query('deallocate all'), bind('', 't'), sync],
    ['1', '1', 'Z I', 'C DEALLOCATE', 'Z I', NO_STATEMENT('t'), 'Z I'],
  ],
  [
    'a bug',
    [parse('', 'bug'), bind('', ''), execute(), execute(), sync],
    ['1', '2', 'E ERROR XX000 internal error', 'Z I'],
  ],
  ['Sync alone', [sync, sync], ['Z I', 'Z I']],
  [
    'unknown type while discarding',
    [parse('', 'refuse'), Buffer.from('y')],
    ['E ERROR 42501 not for you [H ask] [P 1]', 'E FATAL 08P01 invalid frontend message type 121', 'closed'],
  ],
  [
    'Terminate while discarding',
    [parse('', 'refuse'), message('X')],
    ['E ERROR 42501 not for you [H ask] [P 1]', 'closed'],
  ],
];

test('series of extended messages', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  for (const [name, sent, expected] of SERIES) {
    const client = await Client.ready(port);
    client.send(join(...sent));
    const lines: string[] = [];
    while (lines.length < expected.length && lines.at(-1) !== 'closed')
      lines.push(...(await client.until('')));
    t.same(lines, expected, name);
    if (!lines.includes('closed')) {
      const status = handler.sessions.at(-1);
      if (status !== undefined) status.transactionStatus = 'I';
      const goesOn = await client.ask(query('rows 1'));
      while (goesOn[0] !== ROWS[0] && goesOn[0] !== 'closed')
        goesOn.splice(0, goesOn.length, ...(await client.until('Z')));
      t.same(goesOn, ROWS, `${name}: the session goes on`);
      t.equal(handler.sessions.at(-1)?.openPortals, 0, 'every portal was closed once');
    }
    client.end();
  }
});

const value = (length: number, bytes = '') => join(int32(length), bytes);
const B = (...parts: Buffer[]) => message('B', text(''), text(''), ...parts);
const SHORT = 'E ERROR 08P01 insufficient data left in message';

/** Malformed Bind for `echo` (one parameter, one column) → its error. */
const BINDS: readonly (readonly [name: string, sent: Buffer, expected: string])[] = [
  [
    'parameter length −2',
    B(int16(0), int16(1), value(-2), int16(0)),
    'E ERROR 08P01 invalid parameter length -2',
  ],
  [
    'parameter length −2³¹',
    B(int16(0), int16(1), value(-(2 ** 31)), int16(0)),
    'E ERROR 08P01 invalid parameter length -2147483648',
  ],
  ['parameter length beyond the message', B(int16(0), int16(1), value(100, 'abc'), int16(0)), SHORT],
  ['parameter length 2³¹−1', B(int16(0), int16(1), value(2 ** 31 - 1, 'abc'), int16(0)), SHORT],
  ['count 0xFFFF of parameters', B(int16(0), int16(0xffff), value(1, 'a'), int16(0)), SHORT],
  ['count 0xFFFF of formats', B(int16(0xffff), int16(0)), SHORT],
  ['a count beyond the message, before a format of none', B(int16(2), int16(7)), SHORT],
  ['count 0xFFFF of result formats', B(int16(0), int16(1), value(1, 'a'), int16(0xffff), int16(0)), SHORT],
  [
    'no parameter',
    B(int16(0), int16(0), int16(0)),
    'E ERROR 08P01 bind message supplies 0 parameters, but prepared statement "" requires 1',
  ],
  [
    'two parameters',
    bind('', '', { values: ['a', 'b'] }),
    'E ERROR 08P01 bind message supplies 2 parameters, but prepared statement "" requires 1',
  ],
  [
    'two formats',
    bind('', '', { values: ['a'], formats: [0, 0] }),
    'E ERROR 08P01 bind message has 2 parameter formats but 1 parameters',
  ],
  [
    'two result formats',
    bind('', '', { values: ['a'], results: [0, 0] }),
    'E ERROR 08P01 bind message has 2 result formats but query has 1 columns',
  ],
  ['format 2', bind('', '', { values: ['a'], formats: [2] }), 'E ERROR 22023 unsupported format code: 2'],
  [
    'result format −1',
    bind('', '', { values: ['a'], results: [0xffff] }),
    'E ERROR 22023 unsupported format code: -1',
  ],
  [
    'text that is not UTF-8',
    bind('', '', { values: [Buffer.from([0xff])] }),
    'E ERROR 22021 invalid byte sequence for encoding "UTF8"',
  ],
  [
    'text with a NUL',
    bind('', '', { values: ['a\0b'] }),
    'E ERROR 22021 invalid byte sequence for encoding "UTF8"',
  ],
  [
    'bytes behind the end',
    message('B', text(''), text(''), int16(0), int16(1), value(1, 'a'), int16(0), 'x'),
    'E ERROR 08P01 invalid message format',
  ],
  ['no names', message('B', 'x'), 'E ERROR 08P01 invalid string in message'],
  ['nothing', message('B'), 'E ERROR 08P01 invalid string in message'],
];

test('malformed Bind messages', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  for (const [name, sent, expected] of BINDS) {
    t.same(await client.ask(parse('', 'echo'), sent, execute(), sync), ['1', expected, 'Z I'], name);
  }
  const anyBytes = bind('', '', { values: [Buffer.from([0xff, 0])], formats: [1] });
  t.equal(
    (await client.ask(parse('', 'echo'), anyBytes, sync)).join(),
    '1,2,Z I',
    'binary values may be any bytes',
  );
});

test('a Parse with a count it does not bear out', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  t.same(await client.ask(message('P', text(''), text('none'), int16(0xffff), int32(23)), sync), [
    SHORT,
    'Z I',
  ]);
});

test('Flush sends what there is', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  client.send(parse('', 'rows 1'), bind('', ''), flush);
  t.same(await client.until('2'), ['1', '2']);
  t.same(await client.ask(execute(), sync), ['D 1', 'C SELECT 1', 'Z I']);
});

test('limits on what a session keeps', async (t) => {
  const limits = { maxStatements: 2, maxPortals: 2, maxStatementBytes: 200, maxPortalBytes: 200 };
  const { port, stop } = await new Scripted().serve(limits);
  t.teardown(stop);
  const client = await Client.ready(port);
  const few = [parse('a', 'echo'), parse('b', 'echo')];
  t.same(await client.ask(...few, parse('c', 'echo'), sync), [
    '1',
    '1',
    'E ERROR 53400 too many prepared statements: at most 2',
    'Z I',
  ]);
  t.same(await client.ask(close('S', 'b'), parse('c', `none ${'x'.repeat(200)}`), sync), [
    '3',
    'E ERROR 53400 prepared statements are too large: at most 200 bytes together',
    'Z I',
  ]);
  t.same(await client.ask(parse('c', 'none'), sync), ['1', 'Z I'], 'a closed one makes room');
  const one = { values: ['x'] };
  t.same(await client.ask(bind('p', 'a', one), bind('q', 'a', one), bind('r', 'a', one), sync), [
    '2',
    '2',
    'E ERROR 53400 too many portals: at most 2',
    'Z I',
  ]);
  t.same(await client.ask(bind('p', 'a', { values: ['x'.repeat(200)] }), sync), [
    'E ERROR 53400 portals are too large: at most 200 bytes together',
    'Z I',
  ]);
  for (let i = 0; i < 20; i++)
    t.same(await client.ask(bind('p', 'a', one), bind('q', 'a', one), sync), ['2', '2', 'Z I']);
});

test('as many parameters and columns as a message can count', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  for (const count of [32_767, 32_768, 65_535]) {
    const values = Array<string>(count).fill('x');
    const [, described, ...rest] = await client.ask(
      parse('', `takes ${count}`, Array(count).fill(25)),
      describe('S'),
      bind('', '', { values }),
      execute(),
      sync,
    );
    t.equal(described?.split(',').length, count, `${count} parameters are described`);
    t.same(rest, ['n', '2', 'C TAKES', 'Z I']);
    const [, , columns] = await client.ask(parse('', `gives ${count}`), describe('S'), sync);
    t.equal(columns?.split(' ').length, count + 1, `${count} columns are described`);
  }
  t.same(handler.bugs, []);
  const failed = ['E ERROR XX000 internal error', 'Z I'];
  t.same(await client.ask(parse('', 'takes 65536'), describe('S'), sync), ['1', ...failed]);
  t.same(await client.ask(parse('', 'gives 65536'), describe('S'), sync), ['1', 't ', ...failed]);
  t.same(
    await client.ask(query('rows 1')),
    ROWS,
    'what cannot be said is not begun, and the session goes on',
  );
});

/** Query → answers, each in a session of its own. */
const QUERIES: readonly (readonly [sql: string, ...expected: string[]])[] = [
  ['', 'I', 'Z I'],
  [' ; ;', 'I', 'Z I'],
  ['rows 2', 'T n:23:text', 'D 1', 'D 2', 'C SELECT 2', 'Z I'],
  ['none', 'C NONE', 'Z I'],
  ['none; rows 1; none', 'C NONE', 'T n:23:text', 'D 1', 'C SELECT 1', 'C NONE', 'Z I'],
  ['none; refuse; rows 1', 'C NONE', 'E ERROR 42501 not for you [H ask] [P 6]', 'Z I'],
  ['😀; refuse', 'C 😀', 'E ERROR 42501 not for you [H ask] [P 3]', 'Z I'],
  ['fail; none', 'T n:23:text', 'D 1', 'E ERROR 22012 division by zero [P 3]', 'Z I'],
  ['begin; fail', 'C BEGIN', 'T n:23:text', 'D 1', 'E ERROR 22012 division by zero [P 9]', 'Z E'],
  ['begin', 'C BEGIN', 'Z T'],
  ['syntax', 'E ERROR 42601 syntax error', 'Z I'],
  ['badopen', 'E ERROR 22000 cannot open', 'Z I'],
  ['echo', 'E ERROR 42P02 there is no parameter $1', 'Z I'],
  ['bug', 'E ERROR XX000 internal error', 'Z I'],
  ['notice', 'N NOTICE 00000 hear hear', 'C NOTICE', 'Z I'],
  ['set application_name x', 'S application_name=x', 'C SET', 'Z I'],
  ['copy', 'H 0:2', 'd a\tb\n', 'd c\td\n', 'c', 'C COPY 2', 'Z I'],
  ['expire; none', 'C EXPIRE', 'E FATAL 28000 the token has expired', 'closed'],
];

test('simple queries', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  for (const [sql, ...expected] of QUERIES) {
    const client = await Client.ready(port);
    client.send(query(sql));
    t.same(await client.until(expected.at(-1) ?? ''), expected, sql === '' ? '(empty)' : sql);
    t.equal(handler.sessions.at(-1)?.openPortals, 0, 'no portal is left open');
    client.end();
  }
  t.equal(handler.bugs.length, 1);
  t.match(String(handler.bugs[0]), /secret detail/, 'the bug is reported, and only to us');
});

test('a token that expired ends the session before the next statement', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  for (const next of [query('none'), parse('', 'none'), describe('S'), bind('', ''), execute()]) {
    const client = await Client.ready(port);
    const session = handler.sessions.at(-1);
    if (session !== undefined) session.expired = true;
    client.send(next, sync);
    t.same(await client.rest(), ['E FATAL 28000 the token has expired', 'closed']);
  }
  t.same(handler.log, Array(5).fill('failed'), 'nothing was prepared, and the handler knows of each end');
});

test('CopyData, CopyDone and CopyFail outside of COPY are ignored', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  client.send(message('d', 'x'), message('c'), message('f', 'no\0'));
  t.same(await client.ask(query('none')), ['C NONE', 'Z I']);
});

test('pipelined queries are answered in order', async (t) => {
  const { port, stop } = await new Scripted().serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  client.send(join(...[...Array(200).keys()].map((i) => query(`rows ${i % 3}`))));
  for (let i = 0; i < 200; i++) {
    const lines = await client.until('Z');
    t.equal(lines.at(-2), `C SELECT ${i % 3}`);
  }
});

test('an answer does not wait for the slow statement behind it', async (t) => {
  const handler = new Scripted();
  const { port, stop } = await handler.serve();
  t.teardown(stop);
  const client = await Client.ready(port);
  client.send(query('rows 1'), query('hold'));
  t.same(await client.until('Z'), ['T n:23:text', 'D 1', 'C SELECT 1', 'Z I']);
  t.equal(handler.sessions[0]?.waiting, true);
  handler.sessions[0]?.release();
  t.same(await client.until('Z'), ['C HOLD', 'Z I']);
});
