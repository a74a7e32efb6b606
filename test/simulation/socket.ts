import { Duplex, type DuplexOptions } from 'node:stream';
import { failure } from './disk.js';
import type { FileSystem } from './file-system.js';
import type { Network } from './network.js';
import type { Channel, Party, Scheduler } from './scheduler.js';
import type { Timers } from './timers.js';

/** Bytes under way in one direction at which a writer must wait, like the buffers of two kernels. */
const WINDOW = 96 * 1024;

/** A process with its clock and files; its sockets and listeners end with it. */
export interface Host {
  readonly party: Party;
  readonly timers: Timers;
  readonly files: FileSystem | null;
}

interface OnRead {
  readonly buffer: Uint8Array;
  callback(length: number, buffer: Uint8Array): boolean;
}

export interface SocketOptions extends DuplexOptions {
  readonly onread?: OnRead;
}

/** Observes what a listening process sends to its clients. */
export type Tap = (socket: SimulatedSocket, bytes: Buffer) => void;

/** One end of a connection; replaces `net.Socket`. */
export class SimulatedSocket extends Duplex {
  readonly host: Host;
  readonly #network: Network;
  readonly #onread: OnRead | null;
  /** Delivers to the other end; null until connected. */
  outward: Channel | null = null;
  #peer: SimulatedSocket | null = null;
  /** Bytes sent and not yet delivered. */
  #underWay = 0;
  #waitingWrite: { readonly chunk: Buffer; readonly done: (error?: Error | null) => void } | null = null;
  #timeout: ReturnType<Timers['setTimeout']> | null = null;
  #timeoutMs = 0;
  /** True once the other end has gone without reading everything. */
  isReset = false;
  connecting = false;
  bytesRead = 0;
  bytesWritten = 0;
  remoteAddress: string | undefined = '127.0.0.1';
  remotePort = 0;
  localAddress = '127.0.0.1';
  localPort = 0;
  /** Set at the end that a listener accepted. */
  tap: Tap | null = null;
  /** False while a listener has not taken it yet. */
  isAccepted = true;
  /** Name that the dialling side gave the connection. */
  label = '';

  constructor(network: Network, host: Host, { onread, ...options }: SocketOptions = {}) {
    super({ allowHalfOpen: false, ...options, emitClose: true, decodeStrings: true });
    this.#network = network;
    this.host = host;
    this.#onread = onread ?? null;
    network.sockets.add(this);
    this.once('close', () => network.sockets.delete(this));
    this.on('end', () => {
      if (!this.allowHalfOpen && !this.destroyed) this.end();
    });
  }

  get peerLabel(): string {
    return this.#peer?.label ?? '';
  }

  get pending(): boolean {
    return this.#peer === null;
  }

  /** Joins two ends. */
  static join(scheduler: Scheduler, a: SimulatedSocket, b: SimulatedSocket): void {
    a.#peer = b;
    b.#peer = a;
    // What is under way arrives, whatever becomes of its sender; but nothing arrives at a dead process.
    a.outward = scheduler.channel(b.host.party);
    b.outward = scheduler.channel(a.host.party);
  }

  connect(...args: unknown[]): this {
    const [first] = args;
    const done = args.find((arg): arg is () => void => typeof arg === 'function');
    const options =
      typeof first === 'object' && first !== null ? (first as { port?: number; path?: string }) : null;
    const target =
      options?.path ??
      options?.port ??
      (typeof first === 'string' && !/^\d+$/.test(first) ? first : Number(first));
    if (done !== undefined) this.once('connect', done);
    this.connecting = true;
    this.#network.dial(this, target);
    return this;
  }

  /** Called when the other end has accepted. */
  connected(): void {
    this.connecting = false;
    if (this.destroyed) return;
    const waiting = this.#waitingWrite;
    this.#waitingWrite = null;
    if (waiting !== null) this._write(waiting.chunk, 'utf8', waiting.done);
    this.emit('connect');
    this.emit('ready');
    if (this.#onread !== null) this.read(0);
  }

  override _write(chunk: Buffer, _encoding: string, done: (error?: Error | null) => void): void {
    if (this.connecting) {
      this.#waitingWrite = { chunk, done };
      return;
    }
    if (this.#peer === null || this.#peer.destroyed || this.isReset) {
      const code = this.isReset ? 'ECONNRESET' : 'EPIPE';
      this.#network.scheduler.after(this.host.party, 10, code, () => done(failure(code, 'write')));
      return;
    }
    this.bytesWritten += chunk.length;
    this.#touch();
    if (this.#underWay + chunk.length <= WINDOW) {
      // The kernel copies at once, and the caller may reuse its bytes.
      this.#send(Buffer.from(chunk));
      done();
    } else {
      // The bytes are read later, so nobody may change them meanwhile.
      this.#waitingWrite = { chunk, done };
    }
  }

  #send(bytes: Buffer): void {
    this.tap?.(this, bytes);
    const { random } = this.#network.scheduler;
    // A network cuts what is sent as it likes.
    const cut = bytes.length > 1 && random.chance(0.15) ? random.between(1, bytes.length - 1) : bytes.length;
    for (const piece of [bytes.subarray(0, cut), bytes.subarray(cut)]) {
      if (piece.length === 0) continue;
      this.#underWay += piece.length;
      this.outward?.add(
        random.between(30, 400),
        `${piece.length} bytes to ${this.#peer?.host.party.name}`,
        () => {
          this.#underWay -= piece.length;
          this.#peer?.receive(piece);
          this.#sendWaiting();
        },
      );
    }
  }

  #sendWaiting(): void {
    const waiting = this.#waitingWrite;
    if (
      waiting === null ||
      this.connecting ||
      this.#underWay + waiting.chunk.length > Math.max(WINDOW, waiting.chunk.length)
    )
      return;
    this.#waitingWrite = null;
    this.#send(Buffer.from(waiting.chunk));
    waiting.done();
  }

  /** Takes what arrives from the other end. */
  receive(bytes: Buffer): void {
    if (this.destroyed) return;
    this.bytesRead += bytes.length;
    this.#touch();
    if (this.#onread !== null) {
      for (let at = 0; at < bytes.length; at += this.#onread.buffer.length) {
        const part = bytes.subarray(at, at + this.#onread.buffer.length);
        this.#onread.buffer.set(part);
        if (this.#onread.callback(part.length, this.#onread.buffer) === false) this.#block();
      }
      if (this.isPaused()) this.#block();
    } else if (!this.push(bytes)) this.#block();
  }

  /** Stops what the other end sends from arriving, until more is read. */
  #block(): void {
    const channel = this.#peer?.outward ?? null;
    if (channel !== null) channel.isBlocked = true;
  }

  override _read(): void {
    const channel = this.#peer?.outward ?? null;
    if (channel !== null && !(this.#onread !== null && this.isPaused())) channel.isBlocked = false;
  }

  override pause(): this {
    if (this.#onread !== null) this.#block();
    return super.pause();
  }

  override resume(): this {
    const channel = this.#peer?.outward ?? null;
    if (this.#onread !== null && channel !== null) channel.isBlocked = false;
    return super.resume();
  }

  override _final(done: (error?: Error | null) => void): void {
    const { random } = this.#network.scheduler;
    this.outward?.add(random.between(30, 400), `end to ${this.#peer?.host.party.name}`, () =>
      this.#peer?.endByPeer(),
    );
    done();
  }

  /** The other end sends nothing more. */
  endByPeer(): void {
    if (this.destroyed || this.readableEnded) return;
    this.push(null);
    // Without a reader of `data`, the end would not be noticed.
    if (this.#onread !== null || this.readableLength === 0) this.read(0);
  }

  override destroy(error?: Error): this {
    const { collected } = this.#network;
    if (collected === null) return super.destroy(error);
    collected.add(this);
    return this;
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.setTimeout(0);
    const peer = this.#peer;
    const isAbrupt = error !== null || this.readableLength > 0 || !this.writableFinished;
    const waiting = this.#waitingWrite;
    this.#waitingWrite = null;
    if (peer !== null && !peer.destroyed) {
      const { random } = this.#network.scheduler;
      const label = `${isAbrupt ? 'reset' : 'close'} to ${peer.host.party.name}`;
      const outward = this.outward;
      if (outward !== null) outward.isBlocked = false;
      outward?.add(random.between(30, 400), label, () => (isAbrupt ? peer.resetByPeer() : peer.endByPeer()));
    }
    waiting?.done(failure('ECONNRESET', 'write'));
    this.#network.scheduler.after(this.host.party, 5, 'closed', () => done(error));
  }

  /** The other end has gone without reading everything. */
  resetByPeer(): void {
    if (this.destroyed) return;
    this.isReset = true;
    if (!this.isAccepted) return; // it is never accepted
    this.destroy(failure('ECONNRESET', 'read'));
  }

  /** Ends the connection at once, as a process that is killed does. */
  resetAndDestroy(): this {
    return this.destroy(failure('ECONNRESET', 'reset'));
  }

  /** Called when the process of this end has died. */
  cut(): void {
    const peer = this.#peer;
    if (peer === null || peer.destroyed) return;
    this.#network.scheduler.after(peer.host.party, 50, `reset of ${this.host.party.name}`, () =>
      peer.resetByPeer(),
    );
  }

  destroySoon(): void {
    if (this.writable) this.end();
    if (this.writableFinished) this.destroy();
    else this.once('finish', () => this.destroy());
  }

  setTimeout(ms: number, callback?: () => void): this {
    this.#timeoutMs = ms;
    if (callback !== undefined) {
      if (ms === 0) this.removeListener('timeout', callback);
      else this.once('timeout', callback);
    }
    this.#touch();
    return this;
  }

  get timeout(): number {
    return this.#timeoutMs;
  }

  #touch(): void {
    this.#timeout?.close();
    this.#timeout =
      this.#timeoutMs > 0 ? this.host.timers.setTimeout(() => this.emit('timeout'), this.#timeoutMs) : null;
  }

  setNoDelay(): this {
    return this;
  }

  setKeepAlive(): this {
    return this;
  }

  ref(): this {
    return this;
  }

  unref(): this {
    return this;
  }

  address(): object {
    return { address: this.localAddress, port: this.localPort, family: 'IPv4' };
  }
}
