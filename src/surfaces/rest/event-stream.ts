import type { FastifyReply } from 'fastify';
import { privateHeaders } from './problem.js';

/** Interval of comments that keep the connection open, in ms. */
const HEARTBEAT_MS = 15_000;

/** Server-sent events of one response. A client that does not read is disconnected, so nothing is buffered for it. */
export class EventStream {
  readonly #reply: FastifyReply;
  readonly #heartbeat: NodeJS.Timeout;

  constructor(reply: FastifyReply, requestId: string) {
    this.#reply = reply;
    reply.hijack();
    reply.raw.writeHead(200, {
      ...privateHeaders(requestId),
      'content-type': 'text/event-stream',
      'x-accel-buffering': 'no',
    });
    this.#heartbeat = setInterval(() => this.#write(':\n\n'), HEARTBEAT_MS);
  }

  /** @param data written as JSON on one line */
  send(event: string, id: string | null, data: object): void {
    const lines = [`event: ${event}`, ...(id === null ? [] : [`id: ${id}`]), `data: ${JSON.stringify(data)}`];
    this.#write(`${lines.join('\n')}\n\n`);
  }

  end(): void {
    clearInterval(this.#heartbeat);
    this.#reply.raw.end();
  }

  #write(text: string): void {
    const { raw } = this.#reply;
    if (!raw.destroyed && !raw.write(text)) raw.destroy();
  }
}
