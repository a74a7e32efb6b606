import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/** Towards the server, or back to the client. */
export type Direction = 'up' | 'down';

/**
 * - `reset`: both sides get RST.
 * - `cut`: both sides get FIN, and nothing more passes.
 * - `half-close`: the receiving side gets FIN; the other direction goes on.
 * - `delay`: this direction stands still for `DELAY_MS`.
 * - `stall`: this direction stands still for ever, and nobody is told.
 * - `garbage`: the receiving side gets bytes of no protocol, and nothing more passes.
 * - a function: this direction stands still until it settles.
 */
export type Deed = 'reset' | 'cut' | 'half-close' | 'delay' | 'stall' | 'garbage' | (() => Promise<void>);

/** One thing that goes wrong, once: on the first connection that has passed so many bytes since it was armed. */
interface Fault {
  readonly direction: Direction;
  readonly after: number;
  readonly deed: Deed;
}

export interface FaultProxy {
  readonly port: number;
  /** Connections that are open on either side. */
  readonly links: number;
  /** The most bytes that one connection has passed since `arm`. */
  passed(direction: Direction): number;
  /** Counts begin at 0, and this goes wrong; null: nothing does. */
  arm(fault: Fault | null): void;
  /** True if the armed fault has happened. */
  readonly fired: boolean;
  /** The URL `target`, by way of the proxy. */
  by(target: string): string;
  /** Breaks every connection that is open. */
  strike(deed: 'reset' | 'cut' | 'half-close' | 'garbage'): void;
  /** Nothing passes in either direction, also of connections that come later, and nobody is told. */
  silence(): void;
  /** What stood still goes on. */
  restore(): void;
  /** Resets every connection; nothing listens until `open`. */
  shut(): Promise<void>;
  open(): Promise<void>;
  /** As `shut`, for good. */
  close(): Promise<void>;
}

/** Below those that the system gives to connections, so that nobody takes the port while the proxy is shut. */
const PORTS = { from: 10_000, count: 20_000 };
const TRIES = 50;

/** Listens on `port`, or, if it is 0, on one that is free. Returns the port. */
async function listenOn(server: Server, port: number): Promise<number> {
  for (let tries = 1; ; tries++) {
    const tried = port === 0 ? PORTS.from + randomInt(PORTS.count) : port;
    try {
      server.listen(tried, '127.0.0.1');
      await once(server, 'listening');
      return tried;
    } catch (error) {
      if (port !== 0 || tries === TRIES) throw error;
    }
  }
}

const DELAY_MS = 30;
/** So that the other side reads what passed before a reset throws it away. */
const SETTLE_MS = 1;

/** Short messages to Postgres, no RESP, no TLS and no HTTP. */
const GARBAGE = Buffer.from('E\0\0\0\x06MxT\0\0\0\x07\0\x02aR\0\0\0\x08\0\0\0c', 'latin1');

interface Armed {
  readonly fault: Fault | null;
  fired: boolean;
  readonly counts: Map<Link, Record<Direction, number>>;
}

/** A TCP proxy on loopback that breaks a connection at a chosen byte, or all of them at a chosen moment. */
export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  const links = new Set<Link>();
  let armed: Armed = { fault: null, fired: false, counts: new Map() };
  let silent = false;
  let port = 0;
  let server: Server | null = null;
  const open = async (): Promise<void> => {
    if (server !== null) return;
    const listening = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
      const link = new Link(client, targetPort, () => armed);
      links.add(link);
      if (silent) link.silence();
      link.closed.then(() => links.delete(link));
    });
    server = listening.unref();
    port = await listenOn(listening, port);
  };
  const shut = async (): Promise<void> => {
    const listening = server;
    server = null;
    for (const link of links) link.reset();
    if (listening !== null) await new Promise<void>((resolve) => listening.close(() => resolve()));
  };
  await open();
  return {
    get port() {
      return port;
    },
    get links() {
      return links.size;
    },
    get fired() {
      return armed.fired;
    },
    passed: (direction) => Math.max(0, ...[...armed.counts.values()].map((c) => c[direction])),
    arm(fault) {
      armed = { fault, fired: false, counts: new Map() };
    },
    by(target) {
      const url = new URL(target);
      url.hostname = '127.0.0.1';
      url.port = String(port);
      return url.href;
    },
    strike(deed) {
      for (const link of links) void link.strike('down', deed, Buffer.alloc(0));
    },
    silence() {
      silent = true;
      for (const link of links) link.silence();
    },
    restore() {
      silent = false;
      for (const link of links) link.restore();
    },
    shut,
    open,
    close: shut,
  };
}

/** Node never closes a socket that is reset while it ends, and waits for what a reader that stands still does not take. */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
  setImmediate(() => socket.destroy());
}

/** One client's connection, and the server's beside it. */
class Link {
  readonly closed: Promise<void>;
  readonly #ends: Readonly<Record<Direction, readonly [from: Socket, to: Socket]>>;
  readonly #armed: () => Armed;
  /** Directions in which nothing passes any more. */
  readonly #dead = new Set<Direction>();
  #silent = false;

  constructor(client: Socket, targetPort: number, armed: () => Armed) {
    const server = connect({ port: targetPort, host: '127.0.0.1', noDelay: true, allowHalfOpen: true });
    this.#ends = { up: [client, server], down: [server, client] };
    this.#armed = armed;
    const closings = [client, server].map(
      (socket) => new Promise<void>((resolve) => socket.once('close', () => resolve())),
    );
    this.closed = Promise.all(closings).then(() => undefined);
    this.#pump('up');
    this.#pump('down');
  }

  silence(): void {
    this.#silent = true;
    for (const [from] of Object.values(this.#ends)) from.pause();
  }

  restore(): void {
    this.#silent = false;
    for (const [from] of Object.values(this.#ends)) from.resume();
  }

  reset(): void {
    this.#dead.add('up').add('down');
    for (const [socket] of Object.values(this.#ends)) reset(socket);
  }

  #pump(direction: Direction): void {
    const [from, to] = this.#ends[direction];
    from.on('data', (chunk: Buffer) => this.#pass(direction, chunk));
    from.on('end', () => {
      if (!this.#dead.has(direction)) to.end();
    });
    from.on('error', () => reset(to));
    from.on('close', () => to.destroySoon());
    to.on('drain', () => {
      if (!this.#dead.has(direction) && !this.#silent) from.resume();
    });
  }

  #pass(direction: Direction, chunk: Buffer): void {
    if (this.#dead.has(direction)) return;
    const armed = this.#armed();
    const counts = armed.counts.get(this) ?? { up: 0, down: 0 };
    armed.counts.set(this, counts);
    const { fault } = armed;
    const room =
      fault === null || armed.fired || fault.direction !== direction ? null : fault.after - counts[direction];
    const strikes = fault !== null && room !== null && chunk.length >= room;
    const passing = strikes ? chunk.subarray(0, room) : chunk;
    counts[direction] += passing.length;
    const [from, to] = this.#ends[direction];
    if (passing.length > 0 && !to.write(passing)) from.pause();
    if (!strikes) return;
    armed.fired = true;
    void this.strike(direction, fault.deed, chunk.subarray(passing.length));
  }

  /** `rest`: what came with the last byte that passed. */
  async strike(direction: Direction, deed: Deed, rest: Buffer): Promise<void> {
    const [from, to] = this.#ends[direction];
    switch (deed) {
      case 'reset':
        this.#dead.add('up').add('down');
        await setTimeout(SETTLE_MS);
        return this.reset();
      case 'cut':
        this.#dead.add('up').add('down');
        await setTimeout(SETTLE_MS);
        from.destroySoon();
        to.destroySoon();
        return;
      case 'half-close':
        this.#dead.add(direction);
        to.end();
        return;
      case 'stall':
        this.#dead.add(direction);
        from.pause();
        return;
      case 'garbage':
        this.#dead.add(direction);
        to.write(GARBAGE);
        return;
      default:
        from.pause();
        await (deed === 'delay' ? setTimeout(DELAY_MS) : deed());
        this.#pass(direction, rest);
        from.resume();
    }
  }
}
