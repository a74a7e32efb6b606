import { EventEmitter } from 'node:events';
import * as realHttp from 'node:http';
import * as realNet from 'node:net';
import { failure } from './disk.js';
import type { Party, Scheduler } from './scheduler.js';
import { type Host, SimulatedSocket, type SocketOptions, type Tap } from './socket.js';

/** Replaces `net.Server`. */
export class SimulatedServer extends EventEmitter {
  readonly host: Host;
  readonly options: SocketOptions;
  readonly #network: Network;
  #place: number | string | null = null;
  #socketPath: string | null = null;
  readonly #open = new Set<SimulatedSocket>();
  #closed: (() => void) | null = null;
  tap: Tap | null = null;

  constructor(
    network: Network,
    host: Host,
    options: SocketOptions,
    accept?: (socket: SimulatedSocket) => void,
  ) {
    super();
    this.#network = network;
    this.host = host;
    this.options = options;
    if (accept !== undefined) this.on('connection', accept);
  }

  get listening(): boolean {
    return this.#place !== null;
  }

  listen(...args: unknown[]): this {
    const [first] = args;
    const options =
      typeof first === 'object' && first !== null ? (first as { port?: number; path?: string }) : null;
    const done = args.find((arg): arg is () => void => typeof arg === 'function');
    const path = options?.path ?? null;
    try {
      if (path === null) this.#place = this.#network.open(Number(options?.port ?? first), this);
      else {
        this.#socketPath = this.host.files?.addSocket(path) ?? path;
        this.#place = this.#network.open(this.#socketPath, this);
      }
    } catch (error) {
      this.#network.scheduler.after(this.host.party, 10, 'listen', () => this.emit('error', error));
      return this;
    }
    this.#network.scheduler.after(this.host.party, 10, 'listening', () => {
      done?.();
      this.emit('listening');
    });
    return this;
  }

  accept(socket: SimulatedSocket): void {
    socket.isAccepted = true;
    if (socket.isReset) {
      socket.destroy();
      return;
    }
    this.#open.add(socket);
    socket.tap = this.tap;
    socket.once('close', () => {
      this.#open.delete(socket);
      this.#finish();
    });
    this.emit('connection', socket);
  }

  address(): object | string | null {
    return typeof this.#place === 'number'
      ? { address: '127.0.0.1', port: this.#place, family: 'IPv4' }
      : this.#place;
  }

  close(done?: (error?: Error) => void): this {
    if (this.#place !== null) this.#network.shut(this.#place);
    this.#place = null;
    this.#closed = () => {
      done?.();
      this.emit('close');
    };
    this.#finish();
    return this;
  }

  #finish(): void {
    const closed = this.#closed;
    if (closed === null || this.#open.size > 0) return;
    this.#closed = null;
    this.#network.scheduler.after(this.host.party, 5, 'server closed', closed);
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }
}

/** Stops the timer by which Node looks for slow requests: it has the real clock, and would hold the server for ever. */
function stopRealTimer(server: realHttp.Server): void {
  const timer = Object.getOwnPropertySymbols(server).find(
    ({ description }) => description === 'http.server.connectionsCheckingInterval',
  );
  if (timer === undefined) throw new Error("Node's HTTP server has no timer of this name");
  clearInterval(Reflect.get(server, timer) as NodeJS.Timeout); // a private member
}

/** Frees Node's HTTP parser of a connection that will never be closed: it would hold the connection for ever. */
function freeParser(socket: SimulatedSocket & { parser?: { remove(): void; close(): void } | null }): void {
  socket.parser?.remove();
  socket.parser?.close();
  socket.parser = null;
}

/** All connections between the processes of a run. */
export class Network {
  readonly scheduler: Scheduler;
  readonly sockets = new Set<SimulatedSocket>();
  readonly #listening = new Map<number | string, SimulatedServer>();
  /** Ports whose machine does not answer: connections to them are refused. */
  readonly down = new Set<number>();
  /** Sockets to destroy when `destroyInOrder` has collected them; null: each is destroyed at once. */
  collected: Set<SimulatedSocket> | null = null;

  constructor(scheduler: Scheduler) {
    this.scheduler = scheduler;
  }

  open(place: number | string, server: SimulatedServer): number | string {
    const free = place === 0 ? 20_000 + this.#listening.size : place;
    if (this.#listening.has(free)) throw failure('EADDRINUSE', 'listen', String(free));
    this.#listening.set(free, server);
    return free;
  }

  shut(place: number | string): void {
    this.#listening.delete(place);
  }

  dial(socket: SimulatedSocket, target: number | string): void {
    const place = typeof target === 'number' ? target : (socket.host.files?.locate(target) ?? target);
    const { random } = this.scheduler;
    this.scheduler.after(socket.host.party, random.between(50, 500), `connect ${place}`, () => {
      if (socket.destroyed) return;
      const server = this.#listening.get(place);
      if (server === undefined || !server.host.party.alive || this.down.has(Number(place))) {
        const known = typeof place === 'number' || (socket.host.files?.isSocket(place) ?? false);
        socket.connecting = false;
        socket.destroy(failure(known ? 'ECONNREFUSED' : 'ENOENT', 'connect', String(place)));
        return;
      }
      const other = new SimulatedSocket(this, server.host, server.options);
      other.isAccepted = false;
      SimulatedSocket.join(this.scheduler, socket, other);
      socket.remotePort = Number(place) || 0;
      this.scheduler.after(server.host.party, random.between(10, 200), `accept ${place}`, () =>
        server.accept(other),
      );
      socket.connected();
    });
  }

  /** Ends everything of a process. */
  bury(party: Party): void {
    for (const [place, server] of this.#listening)
      if (server.host.party === party) this.#listening.delete(place);
    for (const socket of [...this.sockets]) {
      if (socket.host.party !== party) continue;
      this.sockets.delete(socket);
      socket.cut();
      freeParser(socket);
    }
  }

  /** Frees what Node holds for connections that are still open when a run ends. */
  close(): void {
    for (const socket of this.sockets) freeParser(socket);
  }

  /**
   * Destroys the sockets that `destroyAll` would destroy, oldest first. Node's HTTP server goes by the addresses of its
   * connections in memory, so the order would differ from run to run.
   */
  destroyInOrder(destroyAll: () => void): void {
    const collected = new Set<SimulatedSocket>();
    this.collected = collected;
    destroyAll();
    this.collected = null;
    for (const socket of this.sockets) if (collected.has(socket)) socket.destroy();
  }

  socketsOf(party: Party): readonly SimulatedSocket[] {
    return [...this.sockets].filter((socket) => socket.host.party === party);
  }

  /** Replaces `node:net`. */
  module(host: Host, tap: Tap | null): object {
    const network = this;
    class Socket extends SimulatedSocket {
      constructor(options: SocketOptions = {}) {
        super(network, host, options);
      }
    }
    const connect = (...args: unknown[]): Socket => new Socket().connect(...args);
    return {
      ...realNet,
      Socket,
      Server: SimulatedServer,
      connect,
      createConnection: connect,
      createServer: (...args: unknown[]) => {
        const options = args.find((arg) => typeof arg === 'object') ?? {};
        const accept = args.find((arg): arg is () => void => typeof arg === 'function');
        const server = new SimulatedServer(network, host, options as SocketOptions, accept);
        server.tap = tap;
        return server;
      },
    };
  }

  /** Replaces `node:http`: its own parser and server, over simulated connections. */
  httpModule(host: Host): object {
    return {
      ...realHttp,
      createServer: (options: realHttp.ServerOptions, handler: realHttp.RequestListener) => {
        const server = realHttp.createServer(options, handler);
        const listener = new SimulatedServer(this, host, { allowHalfOpen: true }, (socket) => {
          server.emit('connection', socket);
        });
        listener.on('listening', () => {
          server.emit('listening');
          stopRealTimer(server);
        });
        listener.on('error', (error) => server.emit('error', error));
        const closeIdle = server.closeIdleConnections.bind(server);
        const closeAll = server.closeAllConnections.bind(server);
        return Object.assign(server, {
          closeIdleConnections: () => this.destroyInOrder(closeIdle),
          closeAllConnections: () => this.destroyInOrder(closeAll),
          listen: (...args: unknown[]) => {
            listener.listen(...args);
            return server;
          },
          close: (done?: (error?: Error) => void) => {
            server.closeIdleConnections();
            listener.close(() => {
              done?.();
              server.emit('close');
            });
            return server;
          },
          address: () => listener.address(),
        });
      },
    };
  }
}
