import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import pg from 'pg';
import t from 'tap';
import { Gateway } from './gateway.js';

/**
 * What each of many clients sends at the same moment is small; together it must not hold the thread that serves
 * everybody, whose sockets all become readable in one turn.
 */
const MOST_MS = 50;
const CLIENTS = 200;
const READY_FOR_QUERY = 0x5a;

t.setTimeout(300_000);

const gateway = await Gateway.start();
const { token } = await gateway.tokens();
const user = 'user:ann';
const clients: pg.Client[] = [];
for (let i = 0; i < CLIENTS; i++) {
  const client = new pg.Client({
    host: '127.0.0.1',
    port: gateway.wirePort,
    user,
    password: token,
    database: 'osl',
  });
  await client.connect();
  clients.push(client);
}
t.teardown(async () => {
  for (const client of clients) await client.end();
  gateway.end();
});

/** A statement that takes some milliseconds to compile, and that no other resembles. */
let statements = 0;
function newStatement(): string {
  statements += 1;
  const columns = Array.from({ length: 12 }, (_, i) => `coalesce(name, 'x') as c${statements}_${i}`);
  return `select id, ${columns.join(', ')} from customer where id in (select customer_id from "order") and id < 3`;
}

t.test('statements that are new, of many sessions at once', async (t) => {
  const held = await gateway.heldBy(
    () => Promise.all(clients.map((client) => client.query(newStatement()))),
    MOST_MS,
  );
  t.ok(held <= MOST_MS, `${CLIENTS} statements held it for ${held.toFixed(0)} ms`);
});

t.test('many logins at once', async (t) => {
  const held = await gateway.heldBy(async () => {
    const sockets = await Promise.all(Array.from({ length: CLIENTS }, () => opened()));
    const login = Buffer.concat([startup(), passwordMessage()]);
    for (const socket of sockets) socket.write(login);
    await Promise.all(sockets.map(begun));
    for (const socket of sockets) socket.destroy();
  }, MOST_MS);
  t.ok(held <= MOST_MS, `${CLIENTS} logins held it for ${held.toFixed(0)} ms`);
});

async function opened(): Promise<Socket> {
  const socket = connect(gateway.wirePort, '127.0.0.1');
  await once(socket, 'connect');
  return socket;
}

/** Resolves once the session is ready: it then sends nothing more. */
async function begun(socket: Socket): Promise<void> {
  for (;;) {
    const [bytes] = (await once(socket, 'data')) as [Buffer];
    if (bytes.at(-6) === READY_FOR_QUERY) return;
  }
}

function startup(): Buffer {
  const version = Buffer.from([0, 3, 0, 0]);
  return sized(Buffer.concat([version, Buffer.from(`user\0${user}\0database\0osl\0\0`)]));
}

function passwordMessage(): Buffer {
  return Buffer.concat([Buffer.from('p'), sized(Buffer.from(`${token}\0`))]);
}

function sized(body: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length + 4);
  return Buffer.concat([length, body]);
}
