import { connect, createServer, type Socket } from 'node:net';
import { setTimeout } from 'node:timers/promises';

/** Towards the server, or back to the client. */
export type Direction = 'up' | 'down';

/**
 * - `reset`: both sides get RST.
 * - `cut`: both sides get FIN, and nothing more passes.
 * - `half-close`: the receiving side gets FIN; the other direction goes on.
 * - `delay`: this direction stands still for `DELAY_MS`.
 * - `stall`: this direction stands still for ever, and nobody is told.
 * - a function: this direction stands still until it settles.
 */
export type Deed = 'reset' | 'cut' | 'half-close' | 'delay' | 'stall' | (() => Promise<void>);

/** One thing that goes wrong, once: on the first connection that has passed so many bytes since it was armed. */
export interface Fault {
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
  /** Whether the armed fault has come. */
  readonly fired: boolean;
  /** Resets every connection, and takes no more. */
  close(): Promise<void>;
}

const DELAY_MS = 30;
/** So that the other side reads what passed before a reset throws it away. */
const SETTLE_MS = 1;

interface Armed {
  readonly fault: Fault | null;
  fired: boolean;
  readonly counts: Map<Link, Record<Direction, number>>;
}

/** A TCP proxy on loopback that breaks a connection at a chosen byte. */
export async function startFaultProxy(targetPort: number): Promise<FaultProxy> {
  const links = new Set<Link>();
  let armed: Armed = { fault: null, fired: false, counts: new Map() };
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (client) => {
    const link = new Link(client, targetPort, () => armed);
    links.add(link);
    link.closed.then(() => links.delete(link));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the proxy has no port');
  return {
    port: address.port,
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
    async close() {
      for (const link of links) link.reset();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

/** One client's connection, and the server's beside it. */
class Link {
  readonly closed: Promise<void>;
  readonly #ends: Readonly<Record<Direction, readonly [from: Socket, to: Socket]>>;
  readonly #armed: () => Armed;
  /** Directions in which nothing passes any more. */
  readonly #dead = new Set<Direction>();

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

  reset(): void {
    this.#dead.add('up').add('down');
    for (const [socket] of Object.values(this.#ends)) socket.resetAndDestroy();
  }

  #pump(direction: Direction): void {
    const [from, to] = this.#ends[direction];
    from.on('data', (chunk: Buffer) => this.#pass(direction, chunk));
    from.on('end', () => {
      if (!this.#dead.has(direction)) to.end();
    });
    from.on('error', () => to.resetAndDestroy());
    from.on('close', () => to.destroySoon());
    to.on('drain', () => {
      if (!this.#dead.has(direction)) from.resume();
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
    void this.#strike(direction, fault.deed, chunk.subarray(passing.length));
  }

  /** `rest`: what came with the last byte that passed. */
  async #strike(direction: Direction, deed: Deed, rest: Buffer): Promise<void> {
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
      default:
        from.pause();
        await (deed === 'delay' ? setTimeout(DELAY_MS) : deed());
        this.#pass(direction, rest);
        from.resume();
    }
  }
}
