import { createServer, type Server, type Socket } from 'node:net';
import t from 'tap';
import { openSession, postgresPool } from '../../src/base/postgres/index.js';
import { diceFrom } from '../proof/oracle/dice.js';
import { SEED } from '../support/fast-check.js';

/** Answers of a server, broken in every way: all who wait get an error, and the process goes on. */

const SILENCE_MS = 60;
/** The same for a server that answers at once, on a busy machine. */
const PATIENCE_MS = 30_000;
const TERMINATE = 0x58;

const LOGIN = Buffer.concat([
  message('R', int32(0)),
  message('S', text('server_version', '15.1')),
  message('S', text('client_encoding', 'UTF8')),
  message('K', int32(42), int32(43)),
  message('Z', Buffer.from('I')),
]);
const ANSWER = Buffer.concat([
  message('1'),
  message('2'),
  message('N', Buffer.from('SNOTICE\0C00000\0Mheard\0\0')),
  message('T', int16(1), text('n'), int32(0), int16(0), int32(23), int16(4), int32(-1), int16(0)),
  message('D', int16(1), int32(1), Buffer.from('7')),
  message('A', int32(9), text('channel', 'payload')),
  message('C', text('SELECT 1')),
  message('Z', Buffer.from('I')),
]);
const ERROR = Buffer.concat([
  message('E', Buffer.from('SERROR\0C42P01\0Mnone\0\0')),
  message('Z', Buffer.from('I')),
]);
const SASL = message('R', int32(10), text('SCRAM-SHA-256', ''));

interface Said {
  readonly login: Buffer;
  readonly answer: Buffer;
  /** Messages that follow the answer. */
  readonly end?: (socket: Socket) => void;
}

/** A server that sends `said.login` to whoever begins, and `said.answer` to whatever comes next. */
async function server(said: () => Said): Promise<{ readonly port: number; readonly close: () => void }> {
  const sockets = new Set<Socket>();
  const listening: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined);
    const { login, answer, end } = said();
    socket.once('data', () => {
      socket.write(login);
      socket.on('data', (asked) => {
        if (asked[0] === TERMINATE) socket.end();
        else socket.write(answer, () => end?.(socket));
      });
    });
  });
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  const address = listening.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const close = (): void => {
    for (const socket of sockets) socket.destroy();
    listening.close();
  };
  return { port: address.port, close };
}

/** One session and one statement; gives how it went. */
async function spoken(port: number, silenceMs = SILENCE_MS): Promise<string> {
  try {
    const session = await openSession({
      host: '127.0.0.1',
      port,
      user: 'x',
      database: 'x',
      silenceMs,
    });
    const rows = await session.query('select 7 as n').catch((error: unknown) => String(error));
    await session.end();
    await session.lost;
    return JSON.stringify(rows);
  } catch (error) {
    return String(error);
  }
}

t.test('what is whole is read', async (t) => {
  const { port, close } = await server(() => ({ login: LOGIN, answer: ANSWER }));
  t.equal(await spoken(port, PATIENCE_MS), '[{"n":7}]');
  close();
  const failing = await server(() => ({ login: LOGIN, answer: ERROR }));
  t.equal(await spoken(failing.port, PATIENCE_MS), '"error: none"');
  failing.close();
});

const BROKEN: Readonly<Record<string, readonly [Said, RegExp]>> = {
  'a report that does not end': [{ login: LOGIN, answer: message('E', Buffer.from('Mnone')) }, /no Postgres/],
  'a report whose last field is missing': [
    { login: LOGIN, answer: message('E', Buffer.from('Mnone\0')) },
    /no Postgres/,
  ],
  'a column without a name': [
    { login: LOGIN, answer: message('T', int16(1), Buffer.from('n')) },
    /no Postgres/,
  ],
  'mechanisms without an end': [
    { login: message('R', int32(10), Buffer.from('SCRAM')), answer: ANSWER },
    /no Postgres/,
  ],
  'an unknown way to log in': [{ login: message('R', int32(99)), answer: ANSWER }, /99/],
  'a row of fewer bytes than it says': [
    { login: LOGIN, answer: message('D', int16(3), int32(1)) },
    /out of range|outside/,
  ],
  'a length of 0': [{ login: LOGIN, answer: Buffer.from([0x5a, 0, 0, 0, 0]) }, /length 0/],
  'the greeting of another server': [
    { login: Buffer.from('J\0\0\0\n8.0.36\0\b\0\0\0', 'latin1'), answer: ANSWER },
    /Error|error/,
  ],
  'a reset while a statement waits': [
    { login: LOGIN, answer: ANSWER.subarray(0, 20), end: (socket) => socket.resetAndDestroy() },
    /ECONNRESET|terminated|closed|lost/,
  ],
  'an end while a statement waits': [
    { login: LOGIN, answer: ANSWER.subarray(0, 20), end: (socket) => socket.end() },
    /terminated|closed|lost/,
  ],
  'silence while a statement waits': [{ login: LOGIN, answer: ANSWER.subarray(0, 20) }, /no answer in 60 ms/],
  'silence while it logs in': [{ login: LOGIN.subarray(0, 20), answer: ANSWER }, /timeout/],
};

for (const [name, [said, words]] of Object.entries(BROKEN))
  t.test(`${name} is told to whoever waits`, async (t) => {
    const { port, close } = await server(() => said);
    t.match(await spoken(port, name.startsWith('silence') ? SILENCE_MS : PATIENCE_MS), words);
    close();
  });

t.test('bytes that were changed by chance', async (t) => {
  const dice = diceFrom(SEED);
  const runs = 150;
  const change = (bytes: Buffer): Buffer => {
    const changed = Buffer.from(bytes.subarray(0, dice.chance(0.2) ? dice.upTo(bytes.length) : bytes.length));
    for (let i = 0; i <= dice.upTo(2); i += 1)
      if (changed.length > 0) changed[dice.upTo(changed.length - 1)] = dice.of([0, 1, 5, 255]);
    return changed;
  };
  const { port, close } = await server(() => {
    const login = dice.chance(0.2) ? SASL : LOGIN;
    return dice.chance(0.5)
      ? { login: change(login), answer: ANSWER }
      : { login, answer: change(dice.chance(0.3) ? ERROR : ANSWER) };
  });
  for (let i = 0; i < runs; i += 10) await Promise.all(Array.from({ length: 10 }, () => spoken(port)));
  t.pass(`${runs} sessions, each answered or told why not`);
  close();
});

t.test('a connection that is lent, and reset while nobody asks it anything', async (t) => {
  const sockets: Socket[] = [];
  const listening = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(LOGIN));
    sockets.push(socket);
  });
  await new Promise<void>((resolve) => listening.listen(0, '127.0.0.1', resolve));
  const { port } = listening.address() as { port: number }; // it listens on a port
  const pool = postgresPool({ host: '127.0.0.1', port, user: 'x', database: 'x', max: 1 });
  const lent = await pool.connect();
  const ended = new Promise((resolve) => lent.once('end', resolve));
  for (const socket of sockets) socket.resetAndDestroy();
  await ended;
  await t.rejects(lent.query('select 1'));
  lent.release(true);
  await pool.end();
  await new Promise((resolve) => listening.close(resolve));
});

t.test('a connection that the server does not end is cut', async (t) => {
  const listening = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.write(LOGIN));
    socket.on('end', () => undefined);
  });
  listening.listen({ port: 0, host: '127.0.0.1' });
  await new Promise((resolve) => listening.once('listening', resolve));
  const { port } = listening.address() as { port: number }; // it listens on a port
  const session = await openSession({ host: '127.0.0.1', port, user: 'x', database: 'x', silenceMs: 5_000 });
  await session.end();
  t.match(await session.lost, /closed/);
  listening.close();
});

function message(type: string, ...parts: readonly Buffer[]): Buffer {
  const body = Buffer.concat(parts);
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function int32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(value);
  return bytes;
}

function int16(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(value);
  return bytes;
}

function text(...values: readonly string[]): Buffer {
  return Buffer.from(values.map((value) => `${value}\0`).join(''));
}
