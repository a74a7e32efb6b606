import type { FastifyRequest } from 'fastify';
import { QueryError } from 'osl-compiler';
import { turnAway } from '../../ask/visit.js';
import type { Service } from '../../service/service.js';

/** What `parse` makes of the request. What cannot be read is refused like anything else: once it is known who sent it. */
export async function readRequest<T>(
  service: Service,
  request: FastifyRequest,
  action: string,
  parse: () => T,
): Promise<T> {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof QueryError)) throw error;
    throw await turnAway(service, request.call, action, error, 'identified');
  }
}
