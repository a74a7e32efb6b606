import type { Socket } from 'node:net';
import { fatal, type WireError } from './errors.js';
import type { RowWriter } from './handler.js';
import { MessageWriter } from './message-fields.js';
import { errorResponse } from './messages/results.js';

/** The number of buffered bytes at which rows are written to the socket. */
const FLUSH_BYTES = 32 * 1024;
/** Time in ms that a client has to read the last message and close the connection. */
const GOODBYE_MS = 1_000;

/**
 * The sending half of a connection. Messages are collected in `messages` and sent in one write. Producers of many
 * messages await the promises of `write` and `flushIfFull`, so they pause while the client does not read.
 */
export class SocketWriter implements RowWriter {
  readonly messages = new MessageWriter();
  readonly #stallMs: number;
  #socket: Socket;
  #closed = false;
  #scheduledFlush: NodeJS.Immediate | null = null;
  #drain: { promise: Promise<void>; done: () => void } | null = null;

  /** @param stallMs time in ms without reading after which the client is disconnected */
  constructor(socket: Socket, stallMs: number) {
    this.#socket = socket;
    this.#stallMs = stallMs;
    this.attach(socket);
  }

  get closed(): boolean {
    return this.#closed;
  }

  get stalled(): boolean {
    return !this.#closed && this.#socket.writableNeedDrain;
  }

  /** Switches to this socket, such as the TLS socket over the plain one. */
  attach(socket: Socket): void {
    this.#socket = socket;
    socket.on('drain', () => this.#drain?.done());
    socket.on('close', () => this.#close());
  }

  write(messages: Uint8Array): void | Promise<void> {
    if (this.#closed) throw connectionLost();
    this.messages.append(messages);
    return this.flushIfFull();
  }

  /**
   * Flushes if `FLUSH_BYTES` are buffered. If the client reads too slowly, returns a promise that resolves once it has
   * read.
   */
  flushIfFull(): void | Promise<void> {
    if (this.messages.size >= FLUSH_BYTES) this.flush();
    if (this.stalled) return this.waitUntilRead();
  }

  flush(): void {
    if (this.#scheduledFlush !== null) {
      clearImmediate(this.#scheduledFlush);
      this.#scheduledFlush = null;
    }
    const pieces = this.messages.take();
    if (this.#closed || pieces.length === 0) return;
    const [onlyPiece] = pieces;
    if (pieces.length === 1 && onlyPiece !== undefined) {
      this.#socket.write(onlyPiece);
      return;
    }
    this.#socket.cork();
    for (const piece of pieces) this.#socket.write(piece);
    this.#socket.uncork();
  }

  /** Flushes at the end of this turn of the event loop, together with later messages of the turn. */
  flushSoon(): void {
    this.#scheduledFlush ??= setImmediate(() => this.flush());
  }

  /** Resolves once the client has read; throws 08006 if the connection ends first. */
  async waitUntilRead(): Promise<void> {
    this.#drain ??= this.#awaitDrain();
    await this.#drain.promise;
    if (this.#closed) throw connectionLost();
  }

  /** Sends buffered messages, then `error` if any, and closes. Further writes throw. */
  end(error: WireError | null): void {
    if (this.#closed) return;
    try {
      if (error !== null) errorResponse(this.messages, error.withSeverity('FATAL'));
      this.flush();
    } finally {
      this.#close();
      closeGently(this.#socket, this.#stallMs);
    }
  }

  #awaitDrain() {
    let done = () => {};
    const promise = new Promise<void>((resolve) => {
      const timer = setTimeout(() => this.#socket.destroy(), this.#stallMs);
      done = () => {
        clearTimeout(timer);
        this.#drain = null;
        resolve();
      };
    });
    return { promise, done };
  }

  #close(): void {
    this.#closed = true;
    this.messages.take();
    this.#drain?.done();
  }
}

/** Allows `stallMs` for sending buffered bytes, then `GOODBYE_MS` for the client to close. */
function closeGently(socket: Socket, stallMs: number): void {
  if (socket.destroyed) return;
  if (socket.readableEnded) {
    socket.destroySoon();
    return;
  }
  let timer = setTimeout(() => socket.destroy(), stallMs);
  socket.once('finish', () => {
    clearTimeout(timer);
    timer = setTimeout(() => socket.destroy(), GOODBYE_MS);
  });
  socket.once('end', () => socket.destroySoon());
  socket.once('close', () => clearTimeout(timer));
  socket.end();
  // Unread input would turn the close into a reset, which could lose the last message.
  socket.resume();
}

function connectionLost(): WireError {
  return fatal('08006', 'connection to client lost');
}
