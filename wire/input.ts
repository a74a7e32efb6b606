import type { Socket } from 'node:net';
import { fatal } from './errors.js';

/** Message type and body, without the header. The body is a view that stays valid. */
export interface MessageFrame {
  readonly type: number;
  readonly body: Buffer;
}

/** Returns the largest length field for a message type; throws for a type that is not allowed now. */
export type LengthLimit = (type: number) => number;

const EMPTY = Buffer.alloc(0);
const HEADER = 5;
/** MAX_STARTUP_PACKET_LENGTH in Postgres. */
const MAX_STARTUP_PACKET = 10_000;

/**
 * Splits a byte stream into messages. Memory grows with the bytes received (by doubling), never with the length in a
 * header. A message within one chunk is not copied.
 */
export class FrameDecoder {
  #bytes: Buffer = EMPTY;
  #start = 0;
  #end = 0;

  get buffered(): number {
    return this.#end - this.#start;
  }

  /** Returns the next byte without consuming it; null if nothing is buffered. */
  peek(): number | null {
    return this.buffered === 0 ? null : this.#bytes.readUInt8(this.#start);
  }

  /** The buffer with the received bytes from `start` to `end`; valid until the next `push`. */
  get bytes(): Buffer {
    return this.#bytes;
  }

  get start(): number {
    return this.#start;
  }

  get end(): number {
    return this.#end;
  }

  skip(length: number): void {
    this.#take(Math.min(length, this.buffered));
  }

  push(chunk: Buffer): void {
    if (this.buffered === 0) {
      this.#bytes = chunk;
      this.#start = 0;
      this.#end = chunk.length;
      return;
    }
    if (this.#bytes.length - this.#end < chunk.length) this.#grow(chunk.length);
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
  }

  takeAll(): Buffer {
    return this.#take(this.buffered);
  }

  /**
   * Returns the next untyped packet (before authentication), including its length; null until it is complete. Throws
   * FATAL 08P01.
   */
  packet(): Buffer | null {
    if (this.buffered < 4) return null;
    const length = this.#bytes.readUInt32BE(this.#start);
    if (length < 8 || length > MAX_STARTUP_PACKET) throw fatal('08P01', 'invalid length of startup packet');
    return this.buffered < length ? null : this.#take(length);
  }

  startup(): Buffer | null {
    return this.packet()?.subarray(4) ?? null;
  }

  /**
   * Returns the next typed message including its header; null until it is complete. Throws FATAL 08P01 once a header is
   * invalid.
   */
  message(limit: LengthLimit): Buffer | null {
    if (this.buffered === 0) return null;
    const type = this.#bytes.readUInt8(this.#start);
    const largest = limit(type);
    if (this.buffered < HEADER) return null;
    // INVARIANT: unsigned, so that no length wraps around and splits one message in two (CVE-2024-27304).
    const length = this.#bytes.readUInt32BE(this.#start + 1);
    if (length < 4 || length > largest) throw fatal('08P01', 'invalid message length');
    if (this.buffered < length + 1) return null;
    return this.#take(length + 1);
  }

  /** Returns the next typed message as type and body; null until it is complete. Throws FATAL 08P01. */
  next(limit: LengthLimit): MessageFrame | null {
    const message = this.message(limit);
    return message === null ? null : { type: message.readUInt8(0), body: message.subarray(HEADER) };
  }

  #take(length: number): Buffer {
    const bytes = this.#bytes.subarray(this.#start, this.#start + length);
    this.#start += length;
    // An idle connection holds no buffer.
    if (this.buffered === 0) {
      this.#bytes = EMPTY;
      this.#start = 0;
      this.#end = 0;
    }
    return bytes;
  }

  /** Moves unread bytes to a larger buffer; the old one stays valid for bodies already returned. */
  #grow(additionalBytes: number): void {
    const unread = this.#bytes.subarray(this.#start, this.#end);
    const larger = Buffer.allocUnsafe(Math.max(2 * unread.length, unread.length + additionalBytes));
    unread.copy(larger);
    this.#bytes = larger;
    this.#start = 0;
    this.#end = unread.length;
  }
}

/** Number of unread bytes at which the socket is paused. */
const HIGH_WATER = 64 * 1024;

/** The receiving half of a connection: feeds the decoder, and pauses the socket if data is not consumed. */
export class SocketReader {
  readonly decoder = new FrameDecoder();
  readonly #onDisconnect: () => void;
  #socket: Socket | null = null;
  #ended = false;
  #wake: (() => void) | null = null;
  /** Returns true if the fast lane accepts the received data, so that the session loop need not wake up. */
  #offerToFastLane: () => boolean = () => false;
  #received = 0;

  /** @param onDisconnect called once when the client closes its side or the socket fails */
  constructor(onDisconnect: () => void) {
    this.#onDisconnect = onDisconnect;
  }

  /** True if no more bytes will be received or accepted. */
  get ended(): boolean {
    return this.#ended;
  }

  /** The number of bytes received since accept; 0 for a port probe. */
  get received(): number {
    return this.#received;
  }

  attach(socket: Socket): void {
    this.#socket = socket;
    socket.on('data', this.#handleData);
    socket.on('end', this.#handleEnd);
    socket.on('close', this.#handleEnd);
  }

  /** Releases the socket for TLS. */
  detach(): void {
    const socket = this.#socket;
    if (socket === null) return;
    socket.pause();
    socket.off('data', this.#handleData);
    socket.off('end', this.#handleEnd);
    socket.off('close', this.#handleEnd);
    this.#socket = null;
  }

  /**
   * Registers the fast lane, which is called when bytes arrive while the session loop waits; if it returns true, the
   * loop is not woken.
   */
  setFastLane(accepts: () => boolean): void {
    this.#offerToFastLane = accepts;
  }

  /** Offers buffered bytes to the fast lane again; wakes the session loop if they are not accepted. */
  retryFastLane(): void {
    if (this.#ended || this.#wake === null) return;
    if (this.decoder.buffered < HIGH_WATER && this.#socket?.isPaused() === true) this.#socket.resume();
    if (this.decoder.buffered > 0 && !this.#offerToFastLane()) this.#wakeUp();
  }

  /** Resolves when more bytes have arrived or the input has ended. */
  waitForMore(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#socket?.isPaused() === true) this.#socket.resume();
    });
  }

  /**
   * Discards buffered and further input. Unread input would turn the close into a reset, which could lose the last
   * bytes sent.
   */
  discard(): void {
    this.#ended = true;
    this.decoder.takeAll();
    this.#socket?.resume();
    this.#wakeUp();
  }

  readonly #handleData = (chunk: Buffer): void => {
    if (this.#ended) return;
    this.#received += chunk.length;
    this.decoder.push(chunk);
    if (this.#wake !== null && !this.#offerToFastLane()) this.#wakeUp();
    else if (this.decoder.buffered >= HIGH_WATER) this.#socket?.pause();
  };

  readonly #handleEnd = (): void => {
    if (this.#ended) return;
    this.#ended = true;
    this.#wakeUp();
    this.#onDisconnect();
  };

  #wakeUp(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}
