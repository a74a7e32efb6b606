import type { Socket } from 'node:net';
import { FrameDecoder } from './frame-decoder.js';

/** Number of unread bytes at which the socket is paused. */
const HIGH_WATER = 64 * 1024;

/** The receiving half of a connection: feeds the decoder, and pauses the socket if data is not consumed. */
export class SocketReader {
  readonly decoder = new FrameDecoder();
  readonly #onGone: () => void;
  #socket: Socket | null = null;
  #ended = false;
  #wake: (() => void) | null = null;
  /** Returns true if the fast lane accepts the received data, so that the session loop need not wake up. */
  #isTaken: () => boolean = () => false;
  #received = 0;

  /** @param onGone called once when the client closes its side or the socket fails */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
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
    socket.on('data', this.#push);
    socket.on('end', this.#gone);
    socket.on('close', this.#gone);
  }

  /** Releases the socket for TLS. */
  detach(): void {
    const socket = this.#socket;
    if (socket === null) return;
    socket.pause();
    socket.off('data', this.#push);
    socket.off('end', this.#gone);
    socket.off('close', this.#gone);
    this.#socket = null;
  }

  /**
   * Registers the fast lane, which is called when bytes arrive while the session loop waits; if it returns true, the
   * loop is not woken.
   */
  setFastLane(isTaken: () => boolean): void {
    this.#isTaken = isTaken;
  }

  /** Offers buffered bytes to the fast lane again; wakes the session loop if they are not accepted. */
  retryFastLane(): void {
    if (this.#ended || this.#wake === null) return;
    if (this.decoder.buffered < HIGH_WATER && this.#socket?.isPaused() === true) this.#socket.resume();
    if (this.decoder.buffered > 0 && !this.#isTaken()) this.#awake();
  }

  /** Resolves when more bytes have arrived or no more will. */
  more(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#socket?.isPaused() === true) this.#socket.resume();
    });
  }

  /** Reads and discards input, so that a reset does not lose the last bytes sent. */
  discard(): void {
    this.#ended = true;
    this.decoder.takeAll();
    this.#socket?.resume();
    this.#awake();
  }

  readonly #push = (chunk: Buffer): void => {
    if (this.#ended) return;
    this.#received += chunk.length;
    this.decoder.push(chunk);
    if (this.#wake !== null && !this.#isTaken()) this.#awake();
    else if (this.decoder.buffered >= HIGH_WATER) this.#socket?.pause();
  };

  readonly #gone = (): void => {
    if (this.#ended) return;
    this.#ended = true;
    this.#awake();
    this.#onGone();
  };

  #awake(): void {
    const wake = this.#wake;
    this.#wake = null;
    wake?.();
  }
}
