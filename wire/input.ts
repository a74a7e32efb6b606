import type { Socket } from 'node:net';
import { FrameDecoder } from './frame-decoder.js';

/** Beyond this many unread bytes the socket is not read while earlier messages are worked on. */
const HIGH_WATER = 64 * 1024;

/** The receiving half of a connection: bytes into the decoder, and the socket paused while nobody wants them. */
export class SocketReader {
  readonly decoder = new FrameDecoder();
  readonly #onGone: () => void;
  #socket: Socket | null = null;
  #ended = false;
  #wake: (() => void) | null = null;
  /** True if what has come is answered without anybody being woken. */
  #isTaken: () => boolean = () => false;
  #received = 0;

  /** `onGone` is called once when the client has closed its side or the socket broke. */
  constructor(onGone: () => void) {
    this.#onGone = onGone;
  }

  /** No more bytes will come, or none is wanted. */
  get ended(): boolean {
    return this.#ended;
  }

  /** Bytes since accept; 0 is a port probe. */
  get received(): number {
    return this.#received;
  }

  attach(socket: Socket): void {
    this.#socket = socket;
    socket.on('data', this.#push);
    socket.on('end', this.#gone);
    socket.on('close', this.#gone);
  }

  /** Lets go of the socket, so that TLS can take it over. */
  detach(): void {
    const socket = this.#socket;
    if (socket === null) return;
    socket.pause();
    socket.off('data', this.#push);
    socket.off('end', this.#gone);
    socket.off('close', this.#gone);
    this.#socket = null;
  }

  /** From now on `isTaken` is asked first when bytes come that somebody waits for. Where they are, nobody is woken. */
  offer(isTaken: () => boolean): void {
    this.#isTaken = isTaken;
  }

  /** Offers what has come and was not taken when it came; wakes who waits for it where it is not taken now. */
  offerAgain(): void {
    if (this.#ended || this.#wake === null) return;
    if (this.decoder.buffered < HIGH_WATER && this.#socket?.isPaused() === true) this.#socket.resume();
    if (this.decoder.buffered > 0 && !this.#isTaken()) this.#awake();
  }

  /** Resolves when more bytes came or none will. */
  more(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    return new Promise((resolve) => {
      this.#wake = resolve;
      if (this.#socket?.isPaused() === true) this.#socket.resume();
    });
  }

  /** Reads on without keeping anything, so that what we sent last is not lost to a reset. */
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
