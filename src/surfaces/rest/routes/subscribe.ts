import type { FastifyInstance, FastifyReply } from 'fastify';
import { queryError } from 'osl-compiler';
import { eventsOf, type SubscriptionEvent, type SubscriptionParts } from '../../../ask/data/subscription.js';
import { publicError } from '../../../ask/index.js';
import { eventIdText, readSubscription } from '../bodies/query.js';
import { callOf, readRequest } from '../call.js';
import type { Inflight } from '../inflight.js';
import { SUBSCRIBE_OPERATION } from '../openapi/operations.js';
import { privateHeaders, problemOf } from '../problem.js';

export function subscribeRoute(app: FastifyInstance, service: SubscriptionParts, inflight: Inflight): void {
  app.post('/osl/subscribe', { schema: SUBSCRIBE_OPERATION }, async (request, reply) => {
    const { call } = request;
    const subscription = await readRequest(service, call, 'subscribe', () =>
      readSubscription(request, service.subscriptions.limits.minIntervalMs),
    );
    const stop = new AbortController();
    const stopEvents = (): void => {
      inflight.drainSignal.removeEventListener('abort', stopEvents);
      stop.abort();
    };
    // Not `AbortSignal.any`: its signals would stay in memory as long as `drainSignal`.
    inflight.drainSignal.addEventListener('abort', stopEvents);
    reply.raw.once('close', stopEvents);
    if (inflight.drainSignal.aborted) stopEvents();
    const text = 'text' in subscription.body ? subscription.body.text : null;
    const events = eventsOf(service, {
      ...subscription,
      call,
      nextCall: () => {
        // Read again, because the certificate of the connection may have become invalid.
        const { requestId, credentials } = callOf(request.raw);
        return { ...call, requestId, credentials };
      },
      signal: stop.signal,
      run: (checkCall, check) =>
        inflight.run(reply.raw, { call: checkCall, action: 'subscribe', text }, (signal) =>
          check(signal).catch((error: unknown) => {
            throw inflight.toReportedError(error);
          }),
        ),
    });
    // Before the first event the request can still be refused with a problem response.
    const first = await events.next();
    const stream = new EventStream(reply, call.requestId);
    try {
      for (let next = first; next.done !== true; next = await events.next()) send(stream, next.value);
      if (inflight.drainSignal.aborted) throw queryError('shuttingDown', {});
    } catch (error) {
      send(stream, { kind: 'ended', error: publicError(service, call.requestId, error), ...call });
    }
    stream.end();
    return reply;
  });
}

function send(stream: EventStream, event: SubscriptionEvent): void {
  const { kind, requestId } = event;
  if (kind === 'retrying' || kind === 'ended') {
    stream.send(kind, null, problemOf(event.error, requestId));
    return;
  }
  const { id, versions } = event;
  stream.send(kind, id === null ? null : eventIdText(id), { request_id: requestId, versions });
}

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
