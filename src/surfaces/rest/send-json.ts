import type { FastifyReply, FastifyRequest } from 'fastify';
import { privateHeaders } from './problem.js';

/** Sends `body` to its asker alone; as bytes, so that no serializer adds a charset, which JSON does not have. */
export function sendJson(reply: FastifyReply, requestId: string, body: object): FastifyReply {
  return reply
    .headers({ ...privateHeaders(requestId), 'content-type': 'application/json' })
    .send(Buffer.from(JSON.stringify(body)));
}

/** Sends the id of the call and the members of `answer` to the asker alone. */
export function sendAnswer({ call }: FastifyRequest, reply: FastifyReply, answer: object): FastifyReply {
  return sendJson(reply, call.requestId, { request_id: call.requestId, ...answer });
}
