import { test } from 'tap';
import { bind, describe, execute, join, message, parse, query, sync } from './support/bytes.js';
import { Client } from './support/client.js';
import { Scripted } from './support/scripted.js';

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
