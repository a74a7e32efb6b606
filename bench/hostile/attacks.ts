import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { cancelRequest, packet, password, query, startup, version } from '../../test/wire/support/bytes.js';

/** One attack. It runs in its own thread, so that it does not delay the event loop of the honest client. */
export type Attack =
  | {
      readonly kind: 'slowloris';
      readonly port: number;
      readonly connections: number;
      readonly seconds: number;
    }
  | { readonly kind: 'connect flood'; readonly port: number; readonly seconds: number }
  | {
      readonly kind: 'cancel keys';
      readonly port: number;
      readonly count: number;
      readonly seconds: number;
      readonly processId: number;
    }
  | {
      readonly kind: 'slow readers';
      readonly port: number;
      readonly token: string;
      readonly subject: string;
      readonly connections: number;
      readonly seconds: number;
    };

export interface AttackResult {
  /** Number of connections made or keys tried. */
  readonly done: number;
  readonly seconds: number;
  /** Duration of the longest-lived connection in seconds. */
  readonly longest: number;
  /** Number of connections that the gateway had closed by the end. */
  readonly cut: number;
}

const AT_ONCE = 64;
const started = performance.now();
const elapsed = (): number => (performance.now() - started) / 1_000;

async function run(attack: Attack): Promise<AttackResult> {
  switch (attack.kind) {
    case 'slowloris':
      return slowloris(attack.port, attack.connections, attack.seconds);
    case 'connect flood':
      return flood(attack.port, attack.seconds);
    case 'cancel keys':
      return guess(attack);
    case 'slow readers':
      return readSlowly(attack);
    default: {
      const unknown: never = attack;
      return unknown;
    }
  }
}

/** Opens many connections that each send a startup packet, one byte per second. */
async function slowloris(port: number, connections: number, seconds: number): Promise<AttackResult> {
  const whole = packet(version(3, 0), Buffer.alloc(400, 'x'));
  const held: Held[] = [];
  while (held.length < connections) {
    held.push(new Held(port));
    if (held.length % AT_ONCE === 0) await setTimeout(10);
  }
  for (let i = 0; elapsed() < seconds && held.some((h) => !h.closed); i++) {
    for (const h of held) h.send(whole.subarray(i, i + 1));
    await setTimeout(1_000);
  }
  return resultOf(held);
}

/** Requests one result per connection and reads one KiB of it per second. */
async function readSlowly(attack: Extract<Attack, { kind: 'slow readers' }>): Promise<AttackResult> {
  const opening = Buffer.concat([
    startup({ user: attack.subject, database: 'osl' }),
    password(attack.token),
    query('select id, region, owner, balance, opened from osl.entities.account'),
  ]);
  const held: Held[] = [];
  for (let i = 0; i < attack.connections; i++) {
    const h = new Held(attack.port, false);
    h.send(opening);
    held.push(h);
  }
  while (elapsed() < attack.seconds) {
    for (const h of held) h.socket.read(1_024);
    await setTimeout(1_000);
  }
  return resultOf(held);
}

/** Connects repeatedly, and disconnects when asked for a password. */
async function flood(port: number, seconds: number): Promise<AttackResult> {
  const hello = startup({ user: 'nobody', database: 'osl' });
  let done = 0;
  await atOnce(async () => {
    while (elapsed() < seconds) {
      await visit(port, hello);
      done++;
    }
  });
  return { done, seconds: elapsed(), longest: 0, cut: 0 };
}

/** Sends cancel requests with random keys for an existing session. */
async function guess(attack: Extract<Attack, { kind: 'cancel keys' }>): Promise<AttackResult> {
  let done = 0;
  await atOnce(async () => {
    while (done < attack.count && elapsed() < attack.seconds) {
      done++;
      await visit(attack.port, cancelRequest(attack.processId, randomBytes(4)));
    }
  });
  return { done, seconds: elapsed(), longest: 0, cut: 0 };
}

function atOnce(work: () => Promise<void>): Promise<unknown> {
  return Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** Opens a connection, sends `bytes`, waits for a reply or the end, and resets it so that no port stays occupied. */
function visit(port: number, bytes: Buffer): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    const end = (): void => {
      socket.resetAndDestroy();
      resolve();
    };
    socket.once('data', end);
    socket.once('end', end);
    socket.once('error', end);
    socket.write(bytes);
  });
}

/** A connection kept open until the gateway closes it. */
class Held {
  readonly socket: Socket;
  readonly #began = performance.now();
  #ended: number | null = null;

  constructor(port: number, reads = true) {
    this.socket = connect({ port, host: '127.0.0.1' });
    this.socket.on('error', () => undefined);
    this.socket.once('close', () => {
      this.#ended = performance.now();
    });
    if (reads) this.socket.resume();
  }

  get closed(): boolean {
    return this.#ended !== null;
  }

  get seconds(): number {
    return ((this.#ended ?? performance.now()) - this.#began) / 1_000;
  }

  send(bytes: Buffer): void {
    if (!this.closed) this.socket.write(bytes);
  }
}

function resultOf(held: readonly Held[]): AttackResult {
  const result = {
    done: held.length,
    seconds: elapsed(),
    longest: Math.max(...held.map((h) => h.seconds)),
    cut: held.filter((h) => h.closed).length,
  };
  for (const { socket } of held) socket.destroy();
  return result;
}

const attack: Attack = workerData; // passed by `attacked`
parentPort?.postMessage(await run(attack));
